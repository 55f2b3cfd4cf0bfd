"""The use cases, one a verb."""
