"""The best set of GPUs inside one node."""
