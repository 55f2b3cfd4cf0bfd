"""Old jobs that have ended are pruned, and what runs or waits is not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arena_topo.jobs.lists import old_jobs
from tests.fakes import Answer, Call, session
from tests.jobs.test_job_list import table
from tests.objects import mpijob


def job_of_hours(name: str, hours: float, condition: str = "") -> Any:
    """Return a job that was created so many *hours* ago, with a *condition* that is true."""
    created = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    item = mpijob(name)
    metadata = {**item["metadata"], "namespace": "default", "creationTimestamp": created}
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": created}] if condition else []
    return {**item, "metadata": metadata, "status": {"conditions": conditions}}


JOBS = [
    job_of_hours("young", 1, "Succeeded"),
    job_of_hours("failed", 20, "Failed"),
    job_of_hours("done", 30, "Succeeded"),
    job_of_hours("waits", 40),
]


def jobs_without_pods(call: Call) -> Answer:
    """Serve the jobs, which have no pods."""
    if "includeObject" in call.query:
        return table()
    return Answer(body={"items": JOBS if call.path.endswith("/mpijobs") else []})


@pytest.mark.parametrize(
    ("pending", "names", "waiting"), [(False, ["done", "failed"], 1), (True, ["waits", "done", "failed"], 0)]
)
def test_old_jobs_that_have_ended_are_chosen(pending: bool, names: list[str], waiting: int) -> None:
    """The oldest first; those that wait only if asked."""
    old = old_jobs(session(jobs_without_pods)[0], at_least=10 * 3600, pending=pending)

    assert (names, waiting) == ([view.name for view, _ in old.jobs], old.waiting)
    assert all(age >= 10 * 3600 for _, age in old.jobs)
