"""How far a job has come, by the view of it."""

import pytest

from arena_topo.errors import JobFailed
from arena_topo.jobs.status import has_reached
from arena_topo.model.job_view import Goal, JobStatus, JobView
from tests.objects import viewed


def seen(status: JobStatus, message: str = "") -> JobView:
    """Return the view of a job in *status*."""
    return viewed(status=status, message=message, advice="see the log")


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
