"""Builds the components from pinned Go modules, once, into the user's cache."""
