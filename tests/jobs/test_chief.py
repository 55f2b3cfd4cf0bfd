"""One launcher stands for the job, however many a batch Job created."""

import pytest

from arena_topo.jobs.conditions import chief_pod
from tests.objects import pod


def test_the_chief_is_the_newest_launcher_that_started() -> None:
    """A retry that still waits does not hide the one whose log there is."""
    first, second = (
        pod("job-launcher-a", role="launcher"),
        pod("job-launcher-b", role="launcher", phase="Pending"),
    )
    second["metadata"]["creationTimestamp"] = "2026-11-21T01:01:00Z"

    assert first is chief_pod([second, first])
    second["status"]["phase"] = "Running"
    assert second is chief_pod([first, second])
    assert None is chief_pod([pod("job-worker-0")])


@pytest.mark.parametrize(
    "label", ["training.kubeflow.org/job-role", "training.kubeflow.org/replica-type", "mpi_role_type"]
)
def test_every_operators_launcher_is_known(label: str) -> None:
    """Each operator has its own label for the role."""
    launcher = pod("job-launcher")
    launcher["metadata"]["labels"] = {label: "launcher"}

    assert launcher is chief_pod([launcher])
