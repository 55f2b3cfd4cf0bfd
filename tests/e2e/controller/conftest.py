"""A cluster with a controller, and jobs that wait for it."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.controlplane.machines.nodes import NodeSpec
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually


@pytest.fixture(scope="session")
def plane(kinds_plane: ControlPlane) -> ControlPlane:
    """Return the plane with the operators of all kinds: the default one has enough to do."""
    return kinds_plane


@pytest.fixture
def servers(
    plane: ControlPlane, namespace: str, keep_nodes: Callable[[Sequence[NodeSpec]], list[str]]
) -> Iterator[list[str]]:
    """Names of four servers of eight GPUs, two in a rack;
    what was reserved on them is released in the end.
    """
    rack = "topology.kubernetes.io/rack"
    yield keep_nodes([NodeSpec(f"server-{at}", labels={rack: f"r{at // 2}"}) for at in range(4)])
    for job in plane.kube.list(*MPIJOB, namespace):
        plane.kube.delete(*MPIJOB, job["metadata"]["name"], namespace)
    eventually(lambda: not plane.kube.list(*MPIJOB, namespace), "the jobs to go")
