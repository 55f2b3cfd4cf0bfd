"""Waiting for a place: patient, told, and not for ever unless asked."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from arena_topo.errors import DocumentError, NotFound, UsageError, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.placement.place import Planner, Waiting, plan_of, resume_job, settle
from arena_topo.jobs.placement.plan import PlanOptions
from arena_topo.jobs.placement.reservation import Desk
from arena_topo.kube.session import Session
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import PLAN
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import Enforcement, PlanRecord, Stage, encode
from tests.fakes import Answer, Call, missing, session, unserved
from tests.objects import mpijob

FULL = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.AFFINITY, waiting_reason="full")
PLACED = PlanRecord(stage=Stage.CONFIRMED, enforcement=Enforcement.AFFINITY, slots=(Slot(0, "n"),))


@dataclass
class Scripted(Desk):
    """A desk whose answers are given."""

    answers: Iterator[PlanRecord] = field(default_factory=lambda: iter(()))

    def settle(self, plan: object, workers: frozenset[int] | None = None) -> PlanRecord:
        """Return the next answer."""
        del plan, workers
        return next(self.answers)


def desk(*answers: PlanRecord) -> Scripted:
    """Return a desk that answers in turn."""
    opened, _ = session(lambda _: Answer(body={}))
    made = Scripted(opened, ApiVersion.V2BETA1, lambda _: {}, mpijob("job"))
    made.answers = iter(answers)
    return made


def waiting(told: list[str], slept: list[float], timeout: float | None) -> Waiting:
    """Return a way to wait whose clock goes by what was slept."""
    waiter = Waiter(told.append, sleep=slept.append)
    return Waiting(waiter=waiter, timeout=timeout, clock=lambda: sum(slept))


PLANNER = Planner(mpijob("job"), PlanOptions(), Enforcement.AFFINITY)


def test_without_wait_a_job_is_looked_at_once() -> None:
    """And stays held back."""
    assert Stage.WAITING is settle(desk(FULL), PLANNER, waiting([], [], None)).record.stage


def test_a_waiting_job_is_planned_again_ever_less_often() -> None:
    """The reason is told once."""
    told: list[str] = []
    slept: list[float] = []
    settled = settle(desk(FULL, FULL, FULL, PLACED), PLANNER, waiting(told, slept, 0))
    assert Stage.CONFIRMED is settled.record.stage
    assert ["waiting for a place: full"] == told
    assert sorted(slept) == slept
    assert 3 == len(set(slept))


def test_the_time_that_a_job_may_wait_is_kept() -> None:
    """The error says why there was no place, and what to do."""
    with pytest.raises(WaitTimeout, match="no place after 2 seconds: full") as late:
        settle(desk(*[FULL] * 9), PLANNER, waiting([], [], 2.0))
    assert "arena-topo resume" in late.value.hint


def opened(annotations: dict[str, str]) -> Session:
    """Return a session with a cluster that has the job, and nothing else."""
    job = mpijob("job")
    job["metadata"]["annotations"] = annotations

    def answer(call: Call) -> Answer:
        if "/v2beta1/" in call.path:
            return Answer(body=job)
        return missing("files") if "configmaps" in call.path else unserved()

    return session(answer)[0]


def test_a_job_without_a_plan_cannot_be_resumed() -> None:
    """And it is said which jobs have one."""
    with pytest.raises(UsageError, match="the job job has no plan"):
        resume_job(opened({}), "job", waiting([], [], None))


def test_a_plan_of_a_newer_tool_is_left_alone() -> None:
    """Nothing is guessed."""
    with pytest.raises(DocumentError, match="job job: the annotation"):
        plan_of({"metadata": {"name": "job", "annotations": {PLAN: '{"v":9}'}}})


def test_a_job_that_was_half_created_is_told() -> None:
    """What is missing cannot be made again: only the user has the file."""
    half = PlanRecord(
        stage=Stage.PROPOSED, companion_paths=("/api/v1/namespaces/default/configmaps/job-files",)
    )
    with pytest.raises(
        NotFound, match="half created: /api/v1/namespaces/default/configmaps/job-files is missing"
    ):
        resume_job(opened({PLAN: encode(half)}), "job", waiting([], [], None))
