"""What both reconcilers share: texts are spaced, failures are retried later, and a request is read once."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from arena_topo.controller.objects import AFTER_FAULT, RETRY_AFTER, Action, Faults, Notice
from arena_topo.controller.reconciler import BETWEEN_REASONS, Candidate, Reconciler, Rules
from arena_topo.controller.state import ClusterState, PlannedJob
from arena_topo.errors import DocumentError
from arena_topo.jobs.options import PlanOptions
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.plan_record import PlanRecord, Stage, StartEstimate
from arena_topo.planner.queue import QueueDecision
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
def reconciler(clock: Clock) -> Reconciler[str]:
    """Return one without jobs, and without writes in flight."""
    return Reconciler(Rules(), clock)


WAITS = QueueDecision("one", PlanRecord(stage=Stage.WAITING, waiting_reason="no node is free"), position=1)
NOTHING_WRITTEN = PlanRecord(stage=Stage.WAITING)
SOON = StartEstimate(likely=START + timedelta(hours=1))


def test_the_first_reason_and_the_first_estimate_come_at_once(
    clock: Clock, reconciler: Reconciler[str]
) -> None:
    """Nobody has read anything before; the same is not written again."""
    reason = reconciler.explanation(WAITS, NOTHING_WRITTEN, START)
    assert reason is not None
    assert ("no node is free", 1, None) == (reason.waiting_reason, reason.position, reason.estimate)
    assert None is reconciler.explanation(WAITS, reason, START)
    clock.seconds += 1
    reconciler.estimates = {"one": SOON}
    estimated = reconciler.explanation(WAITS, reason, START)
    assert estimated is not None
    assert SOON == estimated.estimate


def test_a_reason_that_changes_all_the_time_is_written_once_in_a_while(
    clock: Clock, reconciler: Reconciler[str]
) -> None:
    """By what was sent: the last write may still be in flight."""
    assert reconciler.explanation(WAITS, NOTHING_WRITTEN, START)
    clock.seconds += BETWEEN_REASONS - 1
    assert None is reconciler.explanation(WAITS, NOTHING_WRITTEN, START)
    clock.seconds += 1
    assert reconciler.explanation(WAITS, NOTHING_WRITTEN, START)


def test_a_reason_whose_write_failed_is_written_again_as_soon_as_it_may(
    clock: Clock, reconciler: Reconciler[str]
) -> None:
    """Nobody has read it."""
    assert reconciler.explanation(WAITS, NOTHING_WRITTEN, START)
    reconciler.retry("one")
    assert not reconciler.is_due("one")
    clock.seconds += RETRY_AFTER
    assert reconciler.is_due("one")
    assert reconciler.explanation(WAITS, NOTHING_WRITTEN, START)


def test_what_fails_for_one_object_keeps_only_that_one_from_its_decision(
    clock: Clock, reconciler: Reconciler[str]
) -> None:
    """What was decided before it failed is done, and the object is tried again after a minute."""
    faults, told = Faults(clock), Notice(mpijob("odd"), "Placed", "text")

    def actions() -> Iterator[Action]:
        yield told
        raise AttributeError("nobody thought of this")

    reconciler.in_flight["odd"] = "sent"
    assert [told] == list(reconciler.isolated("odd", faults.at(mpijob("odd")), actions()))
    assert {} == reconciler.in_flight
    assert ["internal error: AttributeError: nobody thought of this"] == [
        fault.message for fault in faults.taken()
    ]
    assert (False, True) == (reconciler.is_due("odd"), reconciler.is_due("even"))
    clock.seconds += AFTER_FAULT
    assert reconciler.is_due("odd")


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


def explained(
    reconciler: Reconciler[str], state: ClusterState, job: PlannedJob, options: Asked
) -> list[PlanRecord]:
    """Return what is written onto a job that is the only one to wait and does not fit."""
    records: list[PlanRecord] = []

    def explain(record: PlanRecord) -> Iterator[Action]:
        records.append(record)
        yield from ()

    candidate = Candidate(
        job=job,
        manifest=job.job,
        options=options,
        unplaced=NOTHING_WRITTEN,
        written=NOTHING_WRITTEN,
        since=START,
        reserve_after=timedelta(minutes=5),
        runs_for=None,
        attempt=state.faults.at(job.job),
        place=explain,
        explain=explain,
    )
    assert [] == list(reconciler.schedule([candidate], state, lambda: state.snapshot, list, START))
    return records


def test_a_request_is_read_again_once_its_job_or_the_nodes_change(reconciler: Reconciler[str]) -> None:
    """Most passes find both as they were."""
    state, options = ClusterState(World().latest), Asked()
    job = PlannedJob(ApiVersion.V2BETA1, mpijob("one", workers=9))
    for read in (1, 1):
        explained(reconciler, state, job, options)
        assert read == options.times
    explained(reconciler, state, PlannedJob(ApiVersion.V2BETA1, mpijob("one", workers=9)), options)
    assert 2 == options.times
    explained(reconciler, ClusterState(World(nodes=("a",)).latest), job, options)
    assert 3 == options.times


def test_a_job_whose_request_cannot_be_read_waits_and_says_why(reconciler: Reconciler[str]) -> None:
    """It keeps its position, and no fault of this program is reported."""
    state = ClusterState(World().latest)
    job = PlannedJob(ApiVersion.V2BETA1, mpijob("one"))
    (record,) = explained(reconciler, state, job, Asked(DocumentError("--policy is garbled")))
    assert (1, Stage.WAITING, "--policy is garbled") == (
        record.position,
        record.stage,
        record.waiting_reason,
    )
    assert [] == state.faults.taken()
