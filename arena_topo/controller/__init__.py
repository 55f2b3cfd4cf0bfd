"""The process that places waiting jobs: what it sees, what it decides, and how it writes."""
