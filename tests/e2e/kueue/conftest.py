"""A plane with Kueue, its queues with our admission check, and the controller that answers it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import NodeSpec, remove_pods
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.kueue.queues import CHECK, delete_queue, queue
from tests.e2e.pinning import install_policy

KINDS = (
    MPIJOB,
    ("kubeflow.org/v1", "PyTorchJob"),
    ("kubeflow.org/v1", "TFJob"),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"),
)
"""The kinds of jobs that the plane runs."""


@pytest.fixture(scope="session")
def plane(kueue_plane: ControlPlane) -> ControlPlane:
    """Return the plane with Kueue, the training operator and JobSet."""
    return kueue_plane


@pytest.fixture(autouse=True)
def policy(plane: ControlPlane) -> None:
    """Have the admission policy and our admission check on the plane, as an admin installs them."""
    install_policy(plane, "--kueue")


def _has_none(kube: Kube, kind: tuple[str, str], namespace: str) -> bool:
    return not kube.list(*kind, namespace)


@pytest.fixture
def servers(
    plane: ControlPlane, namespace: str, keep_nodes: Callable[[Sequence[NodeSpec]], list[str]]
) -> Iterator[list[str]]:
    """Names of four servers of eight GPUs, two in a rack."""
    rack = "topology.kubernetes.io/rack"
    yield keep_nodes([NodeSpec(f"server-{at}", labels={rack: f"r{at // 2}"}) for at in range(4)])
    for kind in KINDS:
        for job in plane.kube.list(*kind, namespace):
            plane.kube.delete(*kind, job["metadata"]["name"], namespace)
    for kind in KINDS:
        eventually(partial(_has_none, plane.kube, kind, namespace), "the jobs to go")
    eventually(lambda: not remove_pods(plane.kube, namespace), "the pods to go")


@pytest.fixture
def queued(kube: Kube, namespace: str, servers: list[str]) -> Iterator[str]:
    """Name of a LocalQueue whose quota is the 32 GPUs of the
    servers, with our check; urgent jobs preempt others.
    """
    del servers
    queue(kube, namespace, 32, checks=[CHECK], preemption={"withinClusterQueue": "LowerPriority"})
    yield namespace
    delete_queue(kube, namespace)


@pytest.fixture
def urgent(kube: Kube, namespace: str) -> Iterator[str]:
    """Name of a PriorityClass above the default."""
    item = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": namespace}}
    kube.create({**item, "value": 1000})
    yield namespace
    kube.delete("scheduling.k8s.io/v1", "PriorityClass", namespace)
