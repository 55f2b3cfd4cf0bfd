"""Operators that only some planes run: of the kinds of jobs next to MPIJob, and of queues."""
