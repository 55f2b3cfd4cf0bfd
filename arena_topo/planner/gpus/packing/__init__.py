"""How many rings and chains fit into a set of GPUs, with tables of the answers."""
