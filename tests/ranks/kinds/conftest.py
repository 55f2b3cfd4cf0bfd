"""The plane of these tests runs the operators of all kinds of jobs."""

import pytest

from tests.controlplane.plane import ControlPlane
from tests.ranks.jobs import PYTORCHJOB


@pytest.fixture(scope="session")
def plane(kinds_plane: ControlPlane) -> ControlPlane:
    """Return the plane with the training operator, JobSet and Trainer."""
    return kinds_plane


@pytest.fixture
def submitted() -> tuple[str, tuple[str, str]]:
    """Return that the jobs of these tests are PyTorchJobs."""
    return "pytorch", PYTORCHJOB
