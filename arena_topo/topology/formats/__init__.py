"""Texts that describe one machine."""
