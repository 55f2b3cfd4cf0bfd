"""The clusters of the contract, as fixtures."""

from collections.abc import Iterator

import pytest

from tests.contract.cluster import Cluster, RealCluster, fresh_namespace, gpu_nodes, sandbox
from tests.controlplane.availability import MARKER

_CLUSTERS = [
    pytest.param("sandbox", id="sandbox"),
    pytest.param("plane", id="plane", marks=getattr(pytest.mark, MARKER)),
]


@pytest.fixture(scope="session", params=_CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run the sandbox, or the real control plane."""
    if request.param == "plane":
        real = RealCluster(request.getfixturevalue("plane"))
        yield real
        real.admin.close()
        real.stranger.close()
    else:
        with sandbox(tmp_path_factory.mktemp("contract") / "sandbox") as running:
            yield running


@pytest.fixture
def space(cluster: Cluster) -> Iterator[str]:
    """Name of an empty namespace."""
    with fresh_namespace(cluster) as name:
        yield name


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    """Names of two servers of eight GPUs."""
    with gpu_nodes(cluster, 2) as names:
        yield names
