"""What both deciders share: texts are spaced, failures are tried later, and a request is read once."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from arena_topo.controller.decider import Candidate, WaitingQueue, Writes
from arena_topo.controller.estimates import FleetPlanner
from arena_topo.controller.kept import AFTER_FAULT, BETWEEN_REASONS, RETRY_AFTER, Action, Faults, Notice
from arena_topo.controller.ledger import PlannedJob
from arena_topo.controller.state import ClusterState
from arena_topo.errors import DocumentError
from arena_topo.jobs.options import PlanOptions
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.plan_record import PlanRecord, Stage
from arena_topo.model.start_estimate import StartEstimate
from arena_topo.planner.queue import Turn
from tests.controller.world import START, World
from tests.objects import mpijob


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        """Return what the test has set."""
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


@pytest.fixture
def writes(clock: Clock) -> Writes[str]:
    """Return writes, none of which is in flight."""
    return Writes(clock)


@pytest.fixture
def queue(writes: Writes[str]) -> WaitingQueue:
    """Return an empty queue."""
    return WaitingQueue(writes, FleetPlanner())


WAITS = Turn("one", PlanRecord(stage=Stage.WAITING, waiting_reason="no node is free"), position=1)
NOTHING_WRITTEN = PlanRecord(stage=Stage.WAITING)
SOON = StartEstimate(likely=START + timedelta(hours=1))


def test_the_first_reason_and_the_first_estimate_come_at_once(clock: Clock, queue: WaitingQueue) -> None:
    """Nobody has read anything before; the same is not written again."""
    reason = queue.explanation(WAITS, NOTHING_WRITTEN, START)
    assert reason is not None
    assert ("no node is free", 1, None) == (reason.waiting_reason, reason.position, reason.estimate)
    assert None is queue.explanation(WAITS, reason, START)
    clock.seconds += 1
    queue.estimates = {"one": SOON}
    estimated = queue.explanation(WAITS, reason, START)
    assert estimated is not None
    assert SOON == estimated.estimate


def test_a_reason_that_changes_all_the_time_is_written_once_in_a_while(
    clock: Clock, queue: WaitingQueue
) -> None:
    """By what was sent: the last write may still be in flight."""
    assert queue.explanation(WAITS, NOTHING_WRITTEN, START)
    clock.seconds += BETWEEN_REASONS - 1
    assert None is queue.explanation(WAITS, NOTHING_WRITTEN, START)
    clock.seconds += 1
    assert queue.explanation(WAITS, NOTHING_WRITTEN, START)


def test_a_reason_whose_write_failed_is_written_again_as_soon_as_it_may(
    clock: Clock, writes: Writes[str], queue: WaitingQueue
) -> None:
    """Nobody has read it."""
    assert queue.explanation(WAITS, NOTHING_WRITTEN, START)
    writes.failed("one")
    assert not writes.is_due("one")
    clock.seconds += RETRY_AFTER
    assert writes.is_due("one")
    assert queue.explanation(WAITS, NOTHING_WRITTEN, START)


def test_what_fails_for_one_object_keeps_only_that_one_from_its_decision(
    clock: Clock, writes: Writes[str]
) -> None:
    """What was decided before it failed is done, and the object is tried again after a minute."""
    faults, told = Faults(clock), Notice(mpijob("odd"), "Placed", "text")

    def actions() -> Iterator[Action]:
        yield told
        raise AttributeError("nobody thought of this")

    writes.in_flight["odd"] = "sent"
    assert [told] == list(writes.isolated("odd", faults.at(mpijob("odd")), actions()))
    assert {} == writes.in_flight
    assert ["internal error: AttributeError: nobody thought of this"] == [
        fault.message for fault in faults.taken()
    ]
    assert (False, True) == (writes.is_due("odd"), writes.is_due("even"))
    clock.seconds += AFTER_FAULT
    assert writes.is_due("odd")


class Asked:
    """What a user asks for, and how often that was read."""

    def __init__(self, error: Exception | None = None) -> None:
        self.times, self.error = 0, error

    def __call__(self) -> PlanOptions:
        """Return the options, or raise what keeps them from being read."""
        self.times += 1
        if self.error:
            raise self.error
        return PlanOptions()


def scheduled(queue: WaitingQueue, state: ClusterState, job: PlannedJob, options: Asked) -> Turn:
    """Return what a job gets that waits alone."""
    candidate = Candidate(
        job=job,
        manifest=job.job,
        options=options,
        record=NOTHING_WRITTEN,
        since=START,
        runs_for=None,
        attempt=state.faults.at(job.job),
    )
    (turn,) = queue.schedule([candidate], state, state.snapshot, list, START)
    return turn


def test_a_request_is_read_again_once_its_job_or_the_nodes_change(queue: WaitingQueue) -> None:
    """Most passes find both as they were."""
    state, options = ClusterState(World().latest), Asked()
    job = PlannedJob(ApiVersion.V2BETA1, mpijob("one", workers=9))
    for read in (1, 1):
        scheduled(queue, state, job, options)
        assert read == options.times
    scheduled(queue, state, PlannedJob(ApiVersion.V2BETA1, mpijob("one", workers=9)), options)
    assert 2 == options.times
    scheduled(queue, ClusterState(World(nodes=("a",)).latest), job, options)
    assert 3 == options.times


def test_a_job_whose_request_cannot_be_read_waits_and_says_why(queue: WaitingQueue) -> None:
    """It keeps its position, and no fault of this program is reported."""
    state = ClusterState(World().latest)
    job = PlannedJob(ApiVersion.V2BETA1, mpijob("one"))
    turn = scheduled(queue, state, job, Asked(DocumentError("--policy is garbled")))
    assert (1, Stage.WAITING, "--policy is garbled") == (
        turn.position,
        turn.record.stage,
        turn.record.waiting_reason,
    )
    assert [] == state.faults.taken()
