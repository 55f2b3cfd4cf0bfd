"""Patches, and who owns which field afterwards."""
