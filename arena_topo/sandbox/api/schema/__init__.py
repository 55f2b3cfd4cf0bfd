"""Kinds, their schemas, and the checks and defaults of objects."""
