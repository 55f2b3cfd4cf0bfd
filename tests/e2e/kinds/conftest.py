"""The plane of these tests runs the operators of all kinds of jobs."""

import pytest

from tests.controlplane.plane import ControlPlane


@pytest.fixture(scope="session")
def plane(kinds_plane: ControlPlane) -> ControlPlane:
    """Return the plane with the training operator, JobSet and Trainer."""
    return kinds_plane
