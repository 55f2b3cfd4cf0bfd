"""From a job specification to a job on the cluster."""
