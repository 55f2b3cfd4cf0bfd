"""Whole commands against servers that are slow, broken, or
none: nothing hangs, leaks or fails in a way nobody foresaw.
"""
