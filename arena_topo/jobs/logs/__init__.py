"""Printing the log of a job: waiting for it to start, and following it through broken connections."""
