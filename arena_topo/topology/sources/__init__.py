"""Readers of cluster objects, one module for each source."""
