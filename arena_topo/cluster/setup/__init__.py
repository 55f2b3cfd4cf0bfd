"""The administrator's one-time part."""
