"""The tests, importable from the project's root."""
