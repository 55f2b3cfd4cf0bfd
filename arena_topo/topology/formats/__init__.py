"""Readers of texts that describe one machine, one module for each format."""
