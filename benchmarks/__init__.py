"""Measurements as ratios against a peer in the same run; nothing here is a test."""
