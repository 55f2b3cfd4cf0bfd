"""Reading jobs: lists of them, what changes about them, and the events around them."""
