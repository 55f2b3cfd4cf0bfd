"""Gangs of unlike roles, and what planning them costs."""
