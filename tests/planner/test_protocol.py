"""Any interleaving of submitters: no GPU is reserved twice, and anyone who fits gets a place."""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from arena_topo.planner.plan import plan
from arena_topo.planner.reservations import (
    Expiry,
    Look,
    OtherPlan,
    Pause,
    Read,
    Seen,
    Step,
    Write,
    negotiate,
    without_reserved,
)
from tests.planner.fleets import NVIDIA, PAIRS, cluster, node


@dataclass
class Server:
    """The API server as far as the protocol knows it: an empty cluster, and the plans that jobs carry."""

    snapshot: Snapshot
    plans: dict[int, PlanRecord] = field(default_factory=dict)

    def other_plans(self, but: int) -> list[OtherPlan]:
        """Return the plans of all jobs but one."""
        return [
            OtherPlan(order=_order(job), record=record) for job, record in self.plans.items() if job != but
        ]

    def confirmed(self) -> list[tuple[str, int]]:
        """Return every GPU that is reserved."""
        return [
            (slot.node, gpu)
            for record in self.plans.values()
            if record.stage is Stage.CONFIRMED
            for slot in record.slots
            for gpu in slot.gpus or ()
        ]


def _order(job: int) -> tuple[str, str]:
    """Return an order that has nothing to do with who wrote
    first: many jobs share the instant of their creation.
    """
    return f"2026-01-01T00:00:{job % 2:02}Z", f"uid-{job * 7919 % 1000}-{job}"


@dataclass
class Submitter:
    """One process that submits a job, and may be stopped before any step."""

    job: int
    demand: Demand
    server: Server
    steps: Generator[Step, Any, PlanRecord] = field(init=False)
    answer: Any = None
    done: bool = False

    def __post_init__(self) -> None:
        self.steps = negotiate(lambda: _order(self.job), self._plan)

    def _plan(self, snapshot: Snapshot) -> PlanRecord:
        verdict = plan(self.demand, snapshot)
        if not isinstance(verdict, Placement):
            return PlanRecord(stage=Stage.WAITING)
        return PlanRecord(
            stage=Stage.PROPOSED, slots=verdict.slots, worker_requests={NVIDIA: self.demand.gpus}
        )

    def advance(self) -> None:
        """Take one step."""
        try:
            step = self.steps.send(self.answer)
        except StopIteration:
            self.done = True
            return
        match step:
            case Look():
                self.answer = Seen(self.server.snapshot, self.server.other_plans(self.job))
            case Read():
                self.answer = self.server.other_plans(self.job)
            case Write(record):
                self.server.plans[self.job] = record
                self.answer = None
            case Pause():
                self.answer = None


def _cluster(nodes: int) -> Snapshot:
    return cluster([node(f"n{index}", links=PAIRS) for index in range(nodes)])


def _run(submitters: list[Submitter], rng: Random, server: Server) -> None:
    steps = 0
    while left := [submitter for submitter in submitters if not submitter.done]:
        rng.choice(left).advance()
        given = Counter(server.confirmed())
        assert not [gpu for gpu, times in given.items() if times > 1]
        steps += 1
        assert steps < 20_000, "they never come to an end"


def test_the_older_of_two_proposals_is_confirmed() -> None:
    """The example of the module, step by step: both look
    before either has written, and the younger one waits.
    """
    server = Server(_cluster(1))
    a, b = (Submitter(job, Demand(3, 1), server) for job in range(2))
    for submitter in (a, b, a, b):
        submitter.advance()
    assert [Stage.PROPOSED, Stage.PROPOSED] == [record.stage for record in server.plans.values()]
    assert server.plans[0].slots == server.plans[1].slots

    for submitter in (a, b, a, b, b, a, a):
        submitter.advance()
    assert [Stage.CONFIRMED, Stage.WAITING] == [record.stage for record in server.plans.values()]


@pytest.mark.parametrize("seed", range(300))
def test_two_submitters_are_never_given_the_same_gpu(seed: int) -> None:
    """Two gangs of three GPUs on a node of four: one is
    confirmed, the other waits, in whatever order they step.
    """
    server = Server(_cluster(1))
    submitters = [Submitter(job, Demand(3, 1), server) for job in range(2)]
    _run(submitters, Random(seed), server)
    assert [Stage.CONFIRMED, Stage.WAITING] == sorted(
        (record.stage for record in server.plans.values()), key=lambda stage: stage.value
    )


@pytest.mark.parametrize("seed", range(8))
def test_fifty_submitters_share_what_there_is(seed: int) -> None:
    """Fifty gangs over eight nodes: nothing is reserved twice,
    and those who wait and try again get what is left.
    """
    server, rng = Server(_cluster(8)), Random(seed)
    submitters = [
        Submitter(job, Demand(rng.choice([1, 2, 3]), rng.choice([1, 2])), server) for job in range(50)
    ]
    _run(submitters, rng, server)
    waiting = [submitter for submitter in submitters if server.plans[submitter.job].stage is Stage.WAITING]
    again = [Submitter(submitter.job, submitter.demand, server) for submitter in waiting]
    for submitter in again:
        _run([submitter], rng, server)
    for submitter in again:
        if server.plans[submitter.job].stage is Stage.WAITING:
            left = without_reserved(server.snapshot, server.other_plans(submitter.job))
            assert isinstance(plan(submitter.demand, left), Infeasible)
    assert again


def test_a_submitter_that_died_keeps_what_it_proposed_until_it_is_resumed() -> None:
    """A proposal that nobody confirms is given way to once it is stale."""
    server = Server(_cluster(1))
    dead = Submitter(0, Demand(3, 1), server)
    for _ in range(2):
        dead.advance()
    assert Stage.PROPOSED is server.plans[0].stage
    stale = replace(server.other_plans(1)[0], stale=True)
    server.other_plans = lambda but: [stale] if but else []  # type: ignore[method-assign]
    other = Submitter(1, Demand(3, 1), server)
    _run([other], Random(0), server)
    assert Stage.WAITING is server.plans[1].stage


def test_a_proposal_that_expired_is_proposed_anew_and_read_again() -> None:
    """Nothing is confirmed before everybody has been read once more."""
    snapshot = _cluster(1)
    record = PlanRecord(stage=Stage.PROPOSED, slots=(Slot(0, snapshot.nodes[0].name, (0,)),))
    steps = negotiate(lambda: ("1", "x"), lambda _: record)
    assert isinstance(next(steps), Look)
    asked: list[Step] = []
    answers: list[Any] = [Seen(snapshot, []), None, [], Expiry.EXPIRED, None, []]
    asked += [steps.send(answer) for answer in answers]
    stages = [step.record.stage.value if isinstance(step, Write) else type(step).__name__ for step in asked]
    assert ["proposed", "Read", "confirmed", "proposed", "Read", "confirmed"] == stages
