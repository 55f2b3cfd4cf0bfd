"""The state of a submitted job, from its API objects."""
