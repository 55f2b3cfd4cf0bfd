"""Notations of values: quantities, durations, JSON and YAML with bounds, and what others write."""
