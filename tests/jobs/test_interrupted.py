"""After Ctrl-C the user learns what is left, and how to continue or undo it."""

from typing import Any

import pytest

from arena_topo.jobs.submit import left_behind
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, Call, missing, session
from tests.objects import condition, mpijob, pod, with_plan

SLOTS = (Slot(0, "n1", (0,)), Slot(1, "n1", (1,)))
CONFIRMED = PlanRecord(stage=Stage.CONFIRMED, slots=SLOTS, enforcement=Enforcement.GATES)
GATED = pod("job-worker-0", phase="Pending") | {
    "spec": {"schedulingGates": [{"name": "arena-topo.dev/gang"}]}
}


def job_with_plan(record: PlanRecord | None, **extra: Any) -> Any:
    """Return the job with a plan."""
    job = mpijob("job", workers=2, **extra)
    return with_plan(job, record) if record else job


def left(job: Any, pods: list[Any] | None = None, *, was_created: bool = True) -> str:
    """Return what is said of a cluster that has *job*, None for no job, and *pods*."""

    def answer(call: Call) -> Answer:
        if call.path.endswith("/pods"):
            return Answer(body={"items": pods or []})
        return Answer(body=job) if job else missing("job")

    return left_behind(session(answer)[0], "job", was_created=was_created)


def test_nothing_is_left_where_nothing_was_created() -> None:
    """The server was asked."""
    assert "nothing was created: there is no job job" == left(None, was_created=False)
    assert "the job job is gone" == left(None)


@pytest.mark.parametrize(
    ("record", "pods"),
    [
        (PlanRecord(stage=Stage.WAITING, waiting_reason="full"), []),
        (PlanRecord(stage=Stage.PROPOSED, slots=SLOTS), []),
        (CONFIRMED, []),
        (CONFIRMED, [pod("job-worker-1")]),
        (CONFIRMED, [GATED, pod("job-worker-1")]),
    ],
)
def test_a_job_that_nobody_starts_is_resumed(record: PlanRecord, pods: list[Any]) -> None:
    """Without a confirmed plan, or with workers behind the gate that this process would have opened."""
    expected = (
        "the job job is there and waits, nothing runs: arena-topo resume job continues, "
        "arena-topo delete job undoes it"
    )
    assert expected == left(job_with_plan(record), pods)


@pytest.mark.parametrize(
    ("record", "pods"),
    [
        (None, []),
        (PlanRecord(stage=Stage.CONFIRMED, slots=SLOTS, enforcement=Enforcement.ADMISSION), []),
        (CONFIRMED, [pod("job-worker-0"), pod("job-worker-1")]),
    ],
)
def test_a_job_that_has_started_goes_on_by_itself(record: PlanRecord | None, pods: list[Any]) -> None:
    """The terminal is not needed any more."""
    expected = "the job job continues without this terminal: arena-topo logs -f job follows it"
    assert left(job_with_plan(record), pods).startswith(expected)


def test_a_job_that_has_ended_needs_nothing() -> None:
    """Ctrl-C came a moment too late."""
    job = job_with_plan(None, status={"conditions": [condition("Succeeded")]})
    assert "the job job has ended meanwhile; arena-topo get job shows it" == left(job)
