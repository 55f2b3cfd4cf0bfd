"""The plane of these tests runs the operators of all kinds of jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.ranks.conftest import StartNodes
from tests.ranks.jobs import PYTORCHJOB, Jobs


@pytest.fixture(scope="session")
def plane(kinds_plane: ControlPlane) -> ControlPlane:
    """Return the plane with the training operator, JobSet and Trainer."""
    return kinds_plane


@pytest.fixture
def jobs(
    plane: ControlPlane,
    kubeconfig: Path,
    namespace: str,
    start_nodes: StartNodes,  # noqa: ARG001  # it ends after the jobs
) -> Iterator[Jobs]:
    """Return what submits PyTorchJobs; they and their pods are gone before the nodes are."""
    jobs = Jobs(Arena(kubeconfig), plane.kube, namespace, "pytorch", PYTORCHJOB)
    yield jobs
    jobs.remove_all()
