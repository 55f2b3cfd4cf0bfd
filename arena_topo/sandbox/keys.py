"""Annotation and label keys that only the sandbox knows."""

LOST = "sandbox.arena-topo.dev/lost"
"""Annotation that makes a node lost: its kubelet falls silent and its pods are evicted."""
SILENT = "silent"
"""Value of that annotation with which the pods stay, as they do in the first minutes."""
TIER_PREFIX = "sandbox.arena-topo.dev/"
"""Prefix of the labels that stand for a tier whose own label key a snapshot does not have."""
