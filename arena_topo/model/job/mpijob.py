"""The versions of the MPIJob API."""

from enum import Enum


class ApiVersion(Enum):
    """A version of the MPIJob API; a cluster serves one, the newest is the first."""

    V2BETA1 = "v2beta1"
    V1 = "v1"
    V1ALPHA1 = "v1alpha1"
