"""Nodes and the pods that run on them."""
