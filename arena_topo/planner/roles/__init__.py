"""A gang of unlike roles, placed together or not at all."""
