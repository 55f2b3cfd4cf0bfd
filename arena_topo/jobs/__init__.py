"""Use cases about jobs, one room per step."""
