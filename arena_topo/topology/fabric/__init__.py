"""The tree of network domains over the nodes."""
