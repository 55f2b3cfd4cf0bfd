"""A snapshot as a document, written and read."""
