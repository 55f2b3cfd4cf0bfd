"""The network between nodes, as a tree of domains."""
