"""Controllers of the control plane and the MPI operator."""
