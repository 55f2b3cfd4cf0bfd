"""Waiting for a job ends when it has come far enough, or cannot any more."""

from typing import Any

import pytest

from arena_topo.errors import ExitCode, JobFailed, NotFound, WaitTimeout
from arena_topo.jobs.wait import wait_for
from arena_topo.model.job_view import Goal
from tests.jobs.streams import JOBS, PODS, Streams, event, versioned
from tests.objects import condition, mpijob, pod

JOB = mpijob("job", workers=1)
SUCCEEDED = mpijob("job", workers=1, status={"conditions": [condition("Succeeded")]})
FAILED = mpijob("job", workers=1, status={"conditions": [condition("Failed", message="too slow")]})
RUNNING = [pod("job-launcher-x", role="launcher"), pod("job-worker-0")]


@pytest.mark.parametrize(
    ("jobs", "pods", "goal"),
    [
        ([JOB], RUNNING, Goal.RUNNING),
        ([SUCCEEDED], [], Goal.RUNNING),
        ([SUCCEEDED], [], Goal.SUCCEEDED),
        ([], [], Goal.DELETED),
    ],
    ids=["runs", "ran", "succeeded", "is gone"],
)
def test_a_job_that_is_far_enough_is_not_waited_for(jobs: list[Any], pods: list[Any], goal: Goal) -> None:
    """No stream says anything here."""
    wait_for(Streams({JOBS: [jobs], PODS: [pods]}).session(), "job", goal)


@pytest.mark.parametrize(
    ("change", "goal"),
    [
        (event("MODIFIED", versioned(SUCCEEDED, "8")), Goal.SUCCEEDED),
        (event("DELETED", versioned(JOB, "8")), Goal.DELETED),
    ],
    ids=["succeeds", "is deleted"],
)
def test_a_change_ends_it(change: bytes, goal: Goal) -> None:
    """As soon as it is seen; until then the caller may show that it waits."""
    ticks: list[None] = []
    server = Streams({JOBS: [[JOB]], PODS: [RUNNING]}, {JOBS: [[change]]})
    wait_for(server.session(), "job", goal, timeout=60, tick=lambda: ticks.append(None))
    assert ticks


@pytest.mark.parametrize("goal", [Goal.RUNNING, Goal.SUCCEEDED])
def test_a_job_that_failed_will_not_come_there(goal: Goal) -> None:
    """Its own exit code, and why it failed."""
    with pytest.raises(JobFailed, match="the job job failed: too slow") as caught:
        wait_for(Streams({JOBS: [[FAILED]], PODS: [[]]}).session(), "job", goal)
    assert ExitCode.JOB_FAILED is caught.value.exit_code


def test_a_job_that_is_not_there_cannot_succeed() -> None:
    """And is no timeout."""
    with pytest.raises(NotFound, match="training job job not found"):
        wait_for(Streams({JOBS: [[]], PODS: [[]]}).session(), "job", Goal.SUCCEEDED)


def test_the_time_is_over_with_what_the_job_waits_for() -> None:
    """Exit code 4."""
    with pytest.raises(WaitTimeout, match="not running: it is PENDING: no pods yet") as caught:
        wait_for(Streams({JOBS: [[JOB]], PODS: [[]]}).session(), "job", Goal.RUNNING, timeout=0.001)
    assert ExitCode.TIMEOUT is caught.value.exit_code
