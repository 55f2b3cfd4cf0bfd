"""The verbs of the API."""
