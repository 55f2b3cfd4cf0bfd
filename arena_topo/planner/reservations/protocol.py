"""The steps by which a job gets its reservation, apart from whoever carries them out."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.plan_record import PlanRecord, Stage
from arena_topo.planner.reservations.conflicts import Decision, Promise, decide, part, reserved


@dataclass(frozen=True, slots=True)
class Look:
    """Asks for the cluster as it is, and then for the promises: the answer is ``Seen``."""


@dataclass(frozen=True, slots=True)
class Read:
    """Asks for the promises that others have now: the answer is a list of ``Promise``."""


@dataclass(frozen=True, slots=True)
class Write:
    """Puts the plan onto the job, in place of the one before."""

    record: PlanRecord


@dataclass(frozen=True, slots=True)
class Pause:
    """Lets the others go on for a moment."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster, and what was promised on it; workers bound after the snapshot count as not bound."""

    snapshot: Snapshot
    promises: Sequence[Promise]


Step = Look | Read | Write | Pause
Plan = Callable[[Snapshot], PlanRecord]

_LOOKS = 10


def negotiate(
    order: Callable[[], tuple[str, str]], plan: Plan, workers: frozenset[int] | None = None
) -> Generator[Step, Any, PlanRecord]:
    """Plan, propose and confirm, step by step; return the plan that was confirmed, or why the job waits.

    *order* tells the job's age once it exists. *plan* makes a proposal for a snapshot, or a record in stage
    ``WAITING``. *workers* are those that have no node yet, None for all of them: the snapshot counts the others.
    Whoever drives this does what each step asks and sends the answer back.
    """
    while True:
        seen: Seen = yield Look()
        record = plan(reserved(seen.snapshot, seen.promises))
        yield Write(record)
        if record.stage is Stage.WAITING:
            return record
        for _ in range(_LOOKS):
            promises: Sequence[Promise] = yield Read()
            decision = decide(part(record, workers), order(), promises, seen.snapshot)
            if decision is Decision.CONFIRM:
                confirmed = replace(record, stage=Stage.CONFIRMED)
                yield Write(confirmed)
                return confirmed
            if decision is Decision.REPLAN:
                break
            yield Pause()
