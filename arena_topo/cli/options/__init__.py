"""Flags that several commands share, and the values that are made of them."""
