"""Values about a cluster: hardware, nodes, capabilities."""
