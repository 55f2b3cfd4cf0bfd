"""All about a job on one page, and its events as a table."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.model.job_view import Instance, JobEvent, JobStatus, PlannedWorker, PlanView
from arena_topo.output.job import fitted_events, job_page
from arena_topo.output.text import tabulate
from tests.objects import viewed
from tests.output.golden import golden, too_wide

NOW = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
EVENT = JobEvent(
    "pod/job-worker-0", "Warning", "FailedScheduling", "0/2 nodes\x1b[31m", NOW - timedelta(minutes=3)
)
LONG = replace(EVENT, message="0/2 nodes are available: the gang has no place on any of the racks")
WORKER = Instance("job-worker-0", "Pending", False, 1, 60, NOW, reason="Unschedulable: 0/2 nodes")
PLAN = PlanView("0 of 1 worker where planned (gates)", workers=(PlannedWorker("job-worker-0", "n1", (0, 3)),))
WAITS = viewed(
    status=JobStatus.PENDING,
    instances=(WORKER,),
    allocated_gpus=0,
    message="too full",
    advice="arena-topo resume job",
    plan=PLAN,
)
VIEWS: dict[str, Callable[[], str]] = {
    "story": lambda: job_page(WAITS, [EVENT], NOW),
    "story-50": lambda: job_page(replace(WAITS, advice=""), [LONG], NOW, width=50),
    "story-nothing": lambda: job_page(viewed(status=JobStatus.PENDING), [], NOW),
    "story-forbidden": lambda: job_page(WAITS, None, NOW),
    "story-events": lambda: tabulate(fitted_events([EVENT], NOW).rows),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_page_answers_each_question(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is, why it waits, what to do, where it should be, where it is, and what happened, in what room there is."""
    monkeypatch.setattr("arena_topo.output.job.local_time", lambda moment: str(moment or "-"))
    text = VIEWS[name]()

    assert golden(f"job/{name}.txt", text) == text
    assert "-50" not in name or [] == too_wide(text, 50)
