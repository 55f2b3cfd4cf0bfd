"""What a test holds back in a pod by an annotation, until it takes the annotation away.

Each has found a fault: names that resolve late, an sshd that starts late, an end that is reported late.
"""

from enum import StrEnum

from tests.controlplane.kube import Object

_ROLE = "training.kubeflow.org/job-role"


class Knob(StrEnum):
    """The annotations; the value is the role (``worker``, ``launcher``) whose pods are meant."""

    NAMES = "arena-topo.dev/test-hold-names"
    """The pod's resolver knows no other pod."""
    PROCESS = "arena-topo.dev/test-hold-process"
    """The container is reported as running, its process has not begun."""
    READY = "arena-topo.dev/test-hold-ready"
    """The container runs, and is not reported as ready."""
    STATUS = "arena-topo.dev/test-hold-status"
    """The end of the containers is not reported."""


def held(pod: Object, knob: Knob) -> bool:
    """Whether *knob* holds *pod* back."""
    meta = pod["metadata"]
    role = (meta.get("annotations") or {}).get(knob)
    return role is not None and role == (meta.get("labels") or {}).get(_ROLE)
