"""A snapshot of a real cluster as the objects of a sandbox that shows the same."""
