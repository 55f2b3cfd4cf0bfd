"""What happens on the simulated cluster: controllers, operators, the scheduler and kubelets."""
