"""The best nodes for a gang."""
