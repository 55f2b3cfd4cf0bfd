"""Commands about arena-topo itself, its sandbox and its agent."""
