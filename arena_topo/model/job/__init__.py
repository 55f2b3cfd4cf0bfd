"""Values about a job: as specified, as an MPIJob, as seen on the cluster."""
