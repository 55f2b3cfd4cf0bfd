"""Frozen values that every part of the pipe takes and returns."""
