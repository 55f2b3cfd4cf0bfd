"""How topologies look."""
