"""What happens on the simulated cluster: scheduling, running, the MPI operator, clean-up."""
