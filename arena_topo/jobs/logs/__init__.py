"""A job's log: found, awaited, followed."""
