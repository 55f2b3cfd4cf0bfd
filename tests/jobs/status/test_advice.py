"""A job's advice is the next command to type."""

from typing import Any

import pytest

from arena_topo.jobs.status.advice import advice
from arena_topo.model.job.job_view import JobStatus
from tests.objects import mpijob, pod

LAUNCHER = pod("job-launcher-x", role="launcher")
WORKERS = [pod("job-worker-0"), pod("job-worker-1")]


def gated(name: str) -> Any:
    """Return a worker that waits at our gate."""
    held = pod(name, phase="Pending", node="")
    held["spec"]["schedulingGates"] = [{"name": "arena-topo.dev/gang"}]
    return held


def crashed(name: str) -> Any:
    """Return a worker that failed."""
    terminated = {"exitCode": 1, "finishedAt": "2026-11-21T01:10:00Z"}
    return pod(name, phase="Failed", containerStatuses=[{"name": "mpi", "state": {"terminated": terminated}}])


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        (JobStatus.RUNNING, [LAUNCHER, *WORKERS], ""),
        (
            JobStatus.PENDING,
            [LAUNCHER, WORKERS[0], gated("job-worker-1")],
            "job-worker-1 was recreated and waits for its place; release it with: arena-topo resume job",
        ),
        (
            JobStatus.PENDING,
            [gated("job-worker-0"), gated("job-worker-1")],
            "the workers wait for their places; if no submit is running any more: arena-topo resume job",
        ),
        (JobStatus.PENDING, [crashed("job-worker-1")], "see arena-topo logs job -i job-worker-1"),
        (JobStatus.SUSPENDED, [], "the job is suspended; continue with: arena-topo resume job"),
        (JobStatus.FAILED, [LAUNCHER, *WORKERS], "see arena-topo logs job"),
        (
            JobStatus.FAILED,
            [LAUNCHER, crashed("job-worker-1")],
            "see arena-topo logs job -i job-worker-1, and arena-topo logs job for the launcher's side",
        ),
        (JobStatus.FAILED, [], "its pods are gone; arena-topo events job shows what is left"),
    ],
    ids=[
        "running",
        "one gated",
        "all gated",
        "pending",
        "suspended",
        "failed",
        "a worker failed",
        "pods are gone",
    ],
)
def test_what_would_help_is_a_command(status: JobStatus, pods: list[Any], expected: str) -> None:
    """Or nothing, where nothing needs to be done."""
    chief = LAUNCHER if LAUNCHER in pods else None

    assert expected == advice(mpijob("job"), pods, status, chief)
