"""Benchmarks of how GPUs are chosen inside a node."""
