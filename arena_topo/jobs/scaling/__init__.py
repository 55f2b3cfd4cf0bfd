"""Elastic jobs that run: workers that come beside the others, and workers that leave."""
