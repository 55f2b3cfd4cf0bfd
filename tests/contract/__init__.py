"""What arena-topo relies on of any cluster, held by the sandbox and by a real control plane."""
