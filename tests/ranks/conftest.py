"""Fixtures of tests that let ranks run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.e2e.arena import Arena
from tests.ranks.cluster import RankCluster
from tests.ranks.fabric import Fabric, two_tiers
from tests.ranks.images import ImageSpec, build_images
from tests.ranks.jobs import Jobs

StartNodes = Callable[[Fabric], RankCluster]


@pytest.fixture(scope="session")
def rank_images(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ImageSpec]:
    """Make the images of all rank clusters of a run."""
    return build_images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def start_nodes(plane: ControlPlane, rank_images: Mapping[str, ImageSpec]) -> Iterator[StartNodes]:
    """Return a function that starts the nodes of a fabric, which run pods until the test ends."""
    with ExitStack() as stack:
        yield lambda fabric: stack.enter_context(RankCluster(plane, fabric, rank_images))


@pytest.fixture
def nodes(start_nodes: StartNodes) -> RankCluster:
    """Two nodes of four GPUs each under one switch."""
    return start_nodes(two_tiers([4, 4]))


@pytest.fixture
def submitted() -> tuple[str, tuple[str, str]]:
    """Return the word that submits the jobs of a test, and their kind."""
    return "mpi", MPIJOB


@pytest.fixture
def jobs(
    plane: ControlPlane,
    kubeconfig: Path,
    namespace: str,
    submitted: tuple[str, tuple[str, str]],
    start_nodes: StartNodes,  # noqa: ARG001  # it ends after the jobs
) -> Iterator[Jobs]:
    """Return what submits jobs in the test's namespace; they and their pods are gone before the nodes are."""
    jobs = Jobs(Arena(kubeconfig), plane.kube, namespace, *submitted)
    yield jobs
    jobs.remove_all()
