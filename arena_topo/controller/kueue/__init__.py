"""Kueue's queues: which Workloads wait for our admission check, and what it answers."""
