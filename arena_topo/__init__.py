"""Gang-scheduled, topology-aware MPI training jobs on any Kubernetes cluster."""

__version__ = "0.1.0"
