"""Findings about a cluster, for people."""
