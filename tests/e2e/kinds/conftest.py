"""The plane of these tests runs the operators of all kinds of jobs."""

from collections.abc import Iterator

import pytest

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import OTHER_KINDS
from arena_topo.model.kind import api_version
from tests.controlplane.kube import Kube
from tests.controlplane.plane import ControlPlane


@pytest.fixture(scope="session")
def plane(kinds_plane: ControlPlane) -> ControlPlane:
    """Return the plane with the training operator, JobSet and Trainer."""
    return kinds_plane


@pytest.fixture(autouse=True)
def _jobs_end_with_their_test(kube: Kube, namespace: str) -> Iterator[None]:
    """Delete the jobs of the test's namespace: nobody else
    does, and their plans would reserve nodes of the next test.
    """
    yield
    for kind in (ApiVersion.V2BETA1, *OTHER_KINDS):
        for job in kube.list(api_version(kind), kind.kind, namespace):
            kube.delete(api_version(kind), kind.kind, job["metadata"]["name"], namespace)
