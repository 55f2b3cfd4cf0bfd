"""The steps by which a job gets its reservation, apart from whoever carries them out.

Jobs A and B, A the older one, want three GPUs each on a node of four, and both are submitted at once:

====  =================================================  ====================================================
step  A                                                  B
====  =================================================  ====================================================
1     looks: no other plans                              looks: no other plans
2     writes: proposes GPUs 0, 1, 2                      writes: proposes GPUs 0, 1, 2
3     reads: B's proposal is in the way, but is younger  reads: A's proposal is in the way, and is older
4     pauses                                             looks again: one GPU is left beside A's proposal
5     reads: B waits and holds nothing                   writes: waiting
6     writes: confirmed
====  =================================================  ====================================================

Had B looked only after A's step 2, it would have planned beside A's proposal from the start.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.plan_record import PlanRecord, Stage
from arena_topo.planner.reservations.conflicts import (
    Decision,
    OtherPlan,
    decide,
    limited_to,
    without_reserved,
)


@dataclass(frozen=True, slots=True)
class Look:
    """Asks for a snapshot of the cluster, and after it for the plans of other jobs: the answer is ``Seen``."""


@dataclass(frozen=True, slots=True)
class Read:
    """Asks for the current plans of other jobs: the answer is a list of ``OtherPlan``."""


@dataclass(frozen=True, slots=True)
class Write:
    """Asks to put the plan onto the job, in place of the previous one.

    The answer to a confirmed plan is ``EXPIRED`` where the proposal before it is so old that others may have planned over
    it; nothing was written then.
    """

    record: PlanRecord


@dataclass(frozen=True, slots=True)
class Pause:
    """Asks to give the other submitters a moment."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster, and what other jobs plan on it; workers bound after the snapshot count as not bound yet."""

    snapshot: Snapshot
    other_plans: Sequence[OtherPlan]


class Expiry(Enum):
    """That a proposal is too old to be confirmed."""

    EXPIRED = "expired"


Step = Look | Read | Write | Pause
Plan = Callable[[Snapshot], PlanRecord]

# Whoever is in the way has not yielded after so many looks: the job looks at the cluster again and plans around it.
_LOOKS = 10


def negotiate(
    order: Callable[[], tuple[str, str]], plan: Plan, workers: frozenset[int] | None = None
) -> Generator[Step, Any, PlanRecord]:
    """Plan, propose and confirm, step by step; return the plan that was confirmed, or why the job waits.

    *order* returns the job's age once it exists. *plan* makes a proposal for a snapshot, or a record in stage
    ``WAITING``. *workers* are those that have no node yet, None for all of them: the snapshot counts the others.
    The driver of this generator does what each step asks and sends the answer back.
    """
    while True:
        seen: Seen = yield Look()
        record = plan(without_reserved(seen.snapshot, seen.other_plans))
        yield Write(record)
        if record.stage is Stage.WAITING:
            return record
        for _ in range(_LOOKS):
            other_plans: Sequence[OtherPlan] = yield Read()
            # Bound workers are in the snapshot already, and would be in the way of themselves.
            decision = decide(limited_to(record, workers), order(), other_plans, seen.snapshot)
            if decision is Decision.CONFIRM:
                confirmed = replace(record, stage=Stage.CONFIRMED)
                if (yield Write(confirmed)) is not Expiry.EXPIRED:
                    return confirmed
                # Proposed anew it is seen by everybody, and everybody who planned over it is seen by the next read.
                yield Write(record)
                continue
            if decision is Decision.REPLAN:
                break
            yield Pause()
