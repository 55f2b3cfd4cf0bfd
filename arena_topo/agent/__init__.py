"""The agent of a node: reads its GPUs and their users, and publishes both as an annotation of the node."""
