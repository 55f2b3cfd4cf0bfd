"""Bandwidth and throughput of a placement."""
