"""How far a job has come, by the view of it."""

from datetime import UTC, datetime

import pytest

from arena_topo.errors import JobFailed
from arena_topo.jobs.status import has_reached
from arena_topo.model.job_view import Goal, JobStatus, JobView


def seen(status: JobStatus, message: str = "") -> JobView:
    """Return the view of a job in *status*."""
    created = datetime(2026, 11, 21, tzinfo=UTC)
    return JobView(
        name="job",
        namespace="default",
        uid="u",
        version="v2beta1",
        status=status,
        priority="",
        created=created,
        duration=1.0,
        ended=None,
        instances=(),
        requested_gpus=0,
        allocated_gpus=0,
        message=message,
        advice="see the log",
    )


@pytest.mark.parametrize(
    ("status", "goal", "reached"),
    [
        (JobStatus.PENDING, Goal.RUNNING, False),
        (JobStatus.SUSPENDED, Goal.RUNNING, False),
        (JobStatus.RUNNING, Goal.RUNNING, True),
        (JobStatus.RUNNING, Goal.SUCCEEDED, False),
        (JobStatus.SUCCEEDED, Goal.RUNNING, True),
        (JobStatus.SUCCEEDED, Goal.SUCCEEDED, True),
    ],
)
def test_a_job_that_has_succeeded_was_running(status: JobStatus, goal: Goal, reached: bool) -> None:
    """And one that runs has not succeeded yet."""
    assert reached is has_reached(seen(status), goal)


@pytest.mark.parametrize("goal", [Goal.RUNNING, Goal.SUCCEEDED])
def test_a_job_that_failed_comes_nowhere(goal: Goal) -> None:
    """The error says why, and what to do next."""
    with pytest.raises(JobFailed, match=r"^the job job failed: ranks died$") as caught:
        has_reached(seen(JobStatus.FAILED, "ranks died"), goal)

    assert "see the log" == caught.value.hint
