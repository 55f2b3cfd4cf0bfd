"""The flags of one kind of job each, and what they describe."""
