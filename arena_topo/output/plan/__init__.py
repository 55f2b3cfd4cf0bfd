"""How plans, comparisons of plans, and the fragmentation of free GPUs look."""
