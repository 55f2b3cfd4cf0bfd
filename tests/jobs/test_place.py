"""Waiting for a place: patient, told, and not forever unless asked."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from arena_topo.errors import WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import JobPlanner
from arena_topo.jobs.reserve import Reservation, WaitPolicy, place_job
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, session
from tests.objects import mpijob

FULL = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.AFFINITY, waiting_reason="full")
PLACED = PlanRecord(stage=Stage.CONFIRMED, enforcement=Enforcement.AFFINITY, slots=(Slot(0, "n"),))


@dataclass
class Scripted(Reservation):
    """A reservation whose plans are given."""

    answers: Iterator[PlanRecord] = field(default_factory=lambda: iter(()))

    def acquire(self, plan: object, workers: frozenset[int] | None = None) -> PlanRecord:
        """Return the next answer."""
        del plan, workers
        return next(self.answers)


def reservation(*answers: PlanRecord) -> Scripted:
    """Return a reservation that gets *answers* in turn."""
    opened, _ = session(lambda _: Answer(body={}))
    return Scripted(opened, ApiVersion.V2BETA1, job=mpijob("job"), answers=iter(answers))


def wait_policy(told: list[str], slept: list[float], timeout: float | None) -> WaitPolicy:
    """Return a way to wait whose clock goes by what was slept."""
    waiter = Waiter(told.append, sleep=slept.append)
    return WaitPolicy(waiter=waiter, timeout=timeout, clock=lambda: sum(slept))


PLANNER = JobPlanner(mpijob("job"), PlanOptions(), Enforcement.AFFINITY)


def test_without_wait_a_job_is_looked_at_once() -> None:
    """And stays suspended."""
    assert Stage.WAITING is place_job(reservation(FULL), PLANNER, wait_policy([], [], None)).record.stage


def test_a_waiting_job_is_planned_again_ever_less_often() -> None:
    """The reason is told once."""
    told: list[str] = []
    slept: list[float] = []
    placed = place_job(reservation(FULL, FULL, FULL, PLACED), PLANNER, wait_policy(told, slept, 0))
    assert Stage.CONFIRMED is placed.record.stage
    assert ["waiting for room: full"] == told
    assert sorted(slept) == slept
    assert 3 == len(set(slept))


def test_the_time_that_a_job_may_wait_is_kept() -> None:
    """The error says why there was no place, and what to do."""
    with pytest.raises(WaitTimeout, match="no room after 2s: full") as late:
        place_job(reservation(*[FULL] * 9), PLANNER, wait_policy([], [], 2.0))
    assert "arena-topo resume" in late.value.hint
