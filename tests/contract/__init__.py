"""What arena-topo relies on in any cluster; the sandbox and a real control plane both keep this contract."""
