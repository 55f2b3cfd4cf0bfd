"""What stands in for machines: fake nodes, pods, kubelets, logs and wires that can be cut."""
