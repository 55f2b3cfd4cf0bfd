"""The clusters of these tests run the controllers of all kinds of jobs that the sandbox serves."""

from collections.abc import Iterator

import pytest

from tests.contract.cluster import CLUSTERS, Cluster, chosen


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run the sandbox, or the real control plane with the operators of all kinds."""
    with chosen(request, "kinds_plane", tmp_path_factory.mktemp("kinds")) as running:
        yield running
