"""Lists as tables."""
