"""The clusters of the contract, as fixtures."""

from collections.abc import Iterator

import pytest

from tests.contract.cluster import CLUSTERS, Cluster, chosen, fresh_namespace, gpu_nodes


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run the sandbox, or the real control plane."""
    with chosen(request, "plane", tmp_path_factory.mktemp("contract")) as running:
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
