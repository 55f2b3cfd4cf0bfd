"""Whose turn it is: no GPU is given twice, nobody starves, and
anyone who starts early delays nobody who waits for longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot, Taint
from arena_topo.model.plan_record import PlanRecord, Stage
from arena_topo.planner.queue import (
    HeadReservation,
    QueuePass,
    Returned,
    RunningJob,
    WaitingJob,
    decide_queue,
)
from arena_topo.planner.reservations import OtherPlan, without_reserved
from tests.planner.fleets import NVIDIA, cluster, node
from tests.planner.times import minutes, planner_of

START = datetime(2026, 1, 1, tzinfo=UTC)
SERVERS = cluster([node(name) for name in "abcd"])


@dataclass(frozen=True)
class Job:
    """A job of the simulation: ``known`` tells that its end is known before it starts."""

    name: str
    workers: int
    gpus: int
    lasts: int = 10
    known: bool = True
    comes: int = 0

    def waiting(self) -> WaitingJob:
        """Return the job as it waits."""
        came = START + minutes(self.comes)
        return WaitingJob(
            uid=self.name,
            name=self.name,
            order=(came.isoformat(), self.name),
            since=came,
            plan=planner_of(self.workers, self.gpus),
            runs_for=minutes(self.lasts) if self.known else None,
            question=f"{self.workers}x{self.gpus} {self.lasts if self.known else None}",
        )


@dataclass
class Simulation:
    """Jobs that come, wait, run and end on four servers of eight GPUs; ``owners`` says who has which GPU."""

    jobs: Sequence[Job]
    reserve_after: timedelta = timedelta()
    started: dict[str, datetime] = field(default_factory=dict)
    promised: dict[str, datetime] = field(default_factory=dict)
    owners: dict[tuple[str, int], str] = field(default_factory=dict)
    running: dict[str, tuple[Job, PlanRecord]] = field(default_factory=dict)
    kept: HeadReservation | None = None
    returned: Returned = field(default_factory=Returned)
    largest_load: int = 0

    def run(self) -> None:
        """Go from event to event until nothing happens any more."""
        now = START
        while True:
            self._end(now)
            self._pass(now)
            later = [START + minutes(job.comes) for job in self.jobs]
            later += [self.started[name] + minutes(job.lasts) for name, (job, _) in self.running.items()]
            following = [instant for instant in later if instant > now]
            if not following:
                return
            now = min(following)

    def _end(self, now: datetime) -> None:
        for name, (job, _) in list(self.running.items()):
            if self.started[name] + minutes(job.lasts) <= now:
                del self.running[name]
                self.owners = {gpu: owner for gpu, owner in self.owners.items() if owner != name}

    def _pass(self, now: datetime) -> None:
        waiting = [
            job for job in self.jobs if job.name not in self.started and START + minutes(job.comes) <= now
        ]
        running = [
            RunningJob(
                OtherPlan(order=("", name), record=record, name=name),
                self.started[name] + minutes(job.lasts) if job.known else None,
            )
            for name, (job, record) in self.running.items()
        ]
        left = without_reserved(SERVERS, [one.plan for one in running])
        asked, ask = (
            [job.waiting() for job in waiting],
            partial(decide_queue, now=now, reserve_after=self.reserve_after),
        )
        turns = ask(asked, left, running, reservation=self.kept, returned=self.returned)
        # What is known of the last pass makes the next one quicker, and no other one.
        forgotten = replace(self.kept, last=None) if self.kept else None
        assert ask(asked, left, running, reservation=forgotten) == turns
        self.kept = turns.reservation
        if self.kept and self.kept.starts:
            self.promised.setdefault(self.kept.uid, self.kept.starts)
        by_name = {job.name: job for job in waiting}
        for turn in turns.decisions:
            if turn.record.stage is Stage.PROPOSED:
                self._start(by_name[turn.uid], turn.record, now)

    def _start(self, job: Job, record: PlanRecord, now: datetime) -> None:
        gpus = [(slot.node, gpu) for slot in record.slots for gpu in slot.gpus or ()]
        assert job.workers * job.gpus == len(set(gpus)), "a plan that does not have what the job asked for"
        taken = {gpu: self.owners[gpu] for gpu in gpus if gpu in self.owners}
        assert not taken, f"{job.name} was given GPUs of others: {taken}"
        self.owners.update(dict.fromkeys(gpus, job.name))
        self.started[job.name] = now
        self.running[job.name] = job, record
        self.largest_load = max(self.largest_load, len(self.owners))


SHAPES = st.sampled_from([(1, 1), (1, 2), (2, 1), (1, 4), (2, 4), (1, 8), (2, 8), (3, 8), (4, 8)])


@st.composite
def some_jobs(draw: st.DrawFn, *, known: bool | None = None) -> list[Job]:
    """Return jobs of any sizes that come at any times."""
    count = draw(st.integers(1, 12))
    return [
        Job(
            f"job-{at:02}",
            *draw(SHAPES),
            lasts=draw(st.integers(1, 30)),
            known=draw(st.booleans()) if known is None else known,
            comes=draw(st.integers(0, 40)),
        )
        for at in range(count)
    ]


@given(some_jobs(), st.sampled_from([0, 5, 1000]))
def test_every_job_runs_and_no_gpu_is_given_twice(jobs: list[Job], after: int) -> None:
    """Whatever comes and ends when: each fits on the idle cluster, so each has run in the end."""
    simulation = Simulation(jobs, minutes(after))
    simulation.run()
    assert {job.name for job in jobs} == set(simulation.started)


@given(some_jobs(known=True))
def test_nobody_delays_the_head(jobs: list[Job]) -> None:
    """Where all ends are known, a job for which a place is kept starts when it was said to, or earlier."""
    simulation = Simulation(jobs)
    simulation.run()
    late = {
        name: (simulation.started[name], said)
        for name, said in simulation.promised.items()
        if simulation.started[name] > said
    }
    assert {} == late


@given(some_jobs(), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_the_question(jobs: list[Job], random: Random) -> None:
    """Shuffled jobs and nodes get the same turns."""
    shuffled, nodes = list(jobs), list(SERVERS.nodes)
    random.shuffle(shuffled)
    random.shuffle(nodes)

    def turns(some: list[Job], snapshot: Snapshot) -> QueuePass:
        now = START + minutes(60)
        return decide_queue([job.waiting() for job in some], snapshot, [], now=now, reserve_after=timedelta())

    assert turns(jobs, SERVERS).decisions == turns(shuffled, cluster(nodes)).decisions


@pytest.mark.parametrize("known", [True, False])
def test_a_stream_of_small_jobs_does_not_starve_a_large_one(known: bool) -> None:
    """One of 2 GPUs comes each minute and lasts twenty: the
    one of all 32 starts once those before it have ended.
    """
    small = [Job(f"small-{at:03}", 1, 2, 20, known, at) for at in range(200)]
    simulation = Simulation([*small, Job("large", 4, 8, 10, known, 30)], minutes(5))
    simulation.run()
    assert simulation.started["large"] <= START + minutes(30 + 5 + 20)


def test_without_a_kept_place_the_large_one_starves() -> None:
    """The same stream, with nothing kept: it starts when no small one comes any more."""
    small = [Job(f"small-{at:03}", 1, 2, 20, known=True, comes=at) for at in range(200)]
    simulation = Simulation([*small, Job("large", 4, 8, 10, comes=30)], timedelta.max)
    simulation.run()
    assert simulation.started["large"] > START + minutes(200)


def test_fifty_jobs_of_mixed_sizes_on_32_gpus() -> None:
    """All run, at most 32 GPUs at a time and all of them at some,
    and the largest wait no longer than the queue before them.
    """
    shapes = [(1, 1), (4, 8), (2, 2), (1, 8), (2, 8), (1, 4), (3, 8), (2, 1), (1, 2), (4, 4)]
    jobs = [Job(f"job-{at:02}", *shapes[at % 10], lasts=5 + at % 7, comes=at % 5) for at in range(50)]
    simulation = Simulation(jobs)
    simulation.run()
    assert 50 == len(simulation.started)
    assert 32 == simulation.largest_load
    largest = [job for job in jobs if (job.workers, job.gpus) == (4, 8)]
    work = sum(job.workers * job.gpus * job.lasts for job in jobs) / 32
    assert max(simulation.started[job.name] for job in largest) <= START + minutes(2 * work)


def test_a_job_that_waits_says_why_and_where_it_stands() -> None:
    """The head for lack of room, and one that would fit because of the head."""
    running = [RunningJob(OtherPlan(order=("", "r"), record=planner_of(1, 8)(SERVERS), name="r"))]
    left = without_reserved(SERVERS, [running[0].plan])
    jobs = [Job("big", 4, 8).waiting(), Job("small", 1, 8, known=False, comes=1).waiting()]
    turns = decide_queue(jobs, left, running, now=START + minutes(9), reserve_after=minutes(5))
    assert [("big", 1), ("small", 2)] == [(turn.uid, turn.position) for turn in turns.decisions]
    assert "do not fit" in turns.decisions[0].record.waiting_reason
    assert "free capacity is reserved for" in turns.decisions[1].record.waiting_reason
    assert None is not turns.reservation
    assert ("big", None) == (turns.reservation.name, turns.reservation.starts)


NAMED = "free capacity is reserved for the job team-a/big, which has waited longer"
UNNAMED = "free capacity is reserved for a job that has waited longer"


@pytest.mark.parametrize(
    ("names_others", "expected"), [(False, [NAMED, UNNAMED, NAMED]), (True, [NAMED, NAMED, NAMED])]
)
def test_the_head_is_named_to_jobs_of_its_namespace(*, names_others: bool, expected: list[str]) -> None:
    """To others where that is allowed; also where all of them ask for the same."""
    running = [RunningJob(OtherPlan(order=("", "r"), record=planner_of(1, 8)(SERVERS), name="r"))]
    left = without_reserved(SERVERS, [running[0].plan])
    head = replace(Job("big", 4, 8).waiting(), name="team-a/big")
    others = [
        replace(Job(uid, 1, 8, known=False, comes=1).waiting(), name=f"{namespace}/{uid}", question="1 of 8")
        for uid, namespace in (("one", "team-a"), ("three", "team-b"), ("two", "team-a"))
    ]
    turns = decide_queue(
        [head, *others],
        left,
        running,
        now=START + minutes(9),
        reserve_after=minutes(5),
        names_others=names_others,
    )
    assert expected == [turn.record.waiting_reason for turn in turns.decisions[1:]]


def test_no_place_is_kept_for_a_job_that_would_not_fit_after_all_have_ended() -> None:
    """What holds the rest has no end that anybody knows of: the others must not wait for it."""
    busy = cluster([node("a", range(8)), node("b")])
    jobs = [Job("big", 2, 8).waiting(), Job("small", 1, 8, known=False, comes=1).waiting()]
    turns = decide_queue(jobs, busy, [], now=START + minutes(9), reserve_after=timedelta())
    assert (None, Stage.PROPOSED) == (turns.reservation, turns.decisions[1].record.stage)


@pytest.mark.parametrize(
    "shut",
    [{"unschedulable": True}, {"ready": False}, {"taints": (Taint("example.com/repair", "", "NoSchedule"),)}],
)
def test_no_place_is_kept_on_a_node_that_was_shut_since_then(shut: dict[str, Any]) -> None:
    """The first node to be free is cordoned while the head waits for it: its place moves to the next one."""
    now = START + minutes(9)
    running = []
    for place, end in zip(planner_of(4, 8)(SERVERS).slots, (10, 20, 30, 40), strict=True):
        record = PlanRecord(stage=Stage.CONFIRMED, slots=(place,), worker_requests={NVIDIA: 8})
        running.append(RunningJob(OtherPlan(order=("", place.node), record=record), now + minutes(end)))

    def kept_on(
        snapshot: Snapshot, before: HeadReservation | None
    ) -> tuple[list[str], HeadReservation | None]:
        left = without_reserved(snapshot, [one.plan for one in running])
        head = Job("head", 1, 8).waiting()
        kept = decide_queue(
            [head], left, running, now=now, reserve_after=minutes(5), reservation=before
        ).reservation
        return [slot.node for slot in kept.record.slots] if kept else [], kept

    nodes, before = kept_on(SERVERS, None)
    assert ["a"] == nodes
    first, *others = SERVERS.nodes
    assert ["b"] == kept_on(replace(SERVERS, nodes=(replace(first, **shut), *others)), before)[0]
