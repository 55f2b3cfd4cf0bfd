"""Readers, one module per source."""
