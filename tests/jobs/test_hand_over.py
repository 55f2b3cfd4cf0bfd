"""A job that is left to the controller: its answer, and how long it is waited for."""

import pytest

from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.reserve import PlacedJob, answered
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from tests.fakes import Answer, in_turn, missing, session
from tests.objects import mpijob, with_plan

UNANSWERED = PlanRecord(stage=Stage.WAITING, waiting_reason="not yet")
QUEUED = PlanRecord(stage=Stage.WAITING, waiting_reason="full", position=2)
JOB = mpijob("job")
PLACED = PlanRecord(stage=Stage.CONFIRMED, slots=(Slot(0, "n"),))


def ask(*answers: Answer, timeout: float | None = None) -> tuple[PlacedJob, list[str]]:
    """Return what is answered in the end, and what was waited for; half a second passes with each look."""
    said: list[str] = []
    seconds = [0.0]

    def pass_time(pause: float) -> None:
        seconds[0] += pause

    waiter = Waiter(said.append, pass_time)
    served = ServedJob(ApiVersion.V2BETA1, with_plan(JOB, UNANSWERED))
    opened = session(in_turn(*answers))[0]
    return answered(opened, served, timeout, waiter, clock=lambda: seconds[0]), said


def test_a_place_is_the_answer() -> None:
    """Whatever was told before."""
    placed, said = ask(Answer(body=with_plan(JOB, UNANSWERED)), Answer(body=with_plan(JOB, PLACED)))
    assert (PLACED, True) == (placed.record, placed.queued)
    assert ["waiting for room: not yet"] == said


def test_a_number_in_the_queue_is_the_answer_where_nobody_waits() -> None:
    """With a limit the job's place is waited for."""
    assert QUEUED == ask(Answer(body=with_plan(JOB, QUEUED)))[0].record
    answers = Answer(body=with_plan(JOB, QUEUED)), Answer(body=with_plan(JOB, PLACED))
    assert PLACED == ask(*answers, timeout=0)[0].record


def test_a_controller_that_says_nothing_is_not_waited_for() -> None:
    """The job is there, and is placed once it says something."""
    answers = [Answer(body=with_plan(JOB, UNANSWERED)) for _ in range(100)]
    assert UNANSWERED == ask(*answers)[0].record


def test_the_time_of_the_user_ends() -> None:
    """The error says that the job keeps waiting."""
    with pytest.raises(WaitTimeout, match="no room after 2 seconds: full") as caught:
        ask(*[Answer(body=with_plan(JOB, QUEUED)) for _ in range(10)], timeout=2)
    assert "the controller starts it" in caught.value.hint


def test_a_job_that_is_gone_is_an_error() -> None:
    """Somebody deleted it meanwhile."""
    with pytest.raises(NotFound, match="job not found"):
        ask(missing("job"))
