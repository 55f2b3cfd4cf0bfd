"""Operators that only some planes run: of the kinds of jobs beside MPIJob, and of queues."""
