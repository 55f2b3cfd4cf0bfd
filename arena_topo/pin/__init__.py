"""Enforcing a placement: one module per kind of pin."""
