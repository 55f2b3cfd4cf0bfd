"""Times, and the planner of a queue, as the tests of waiting jobs write them."""

from datetime import timedelta

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Placement
from arena_topo.model.plan_record import PlanRecord, Stage
from arena_topo.planner.plan import plan
from arena_topo.planner.reservations import Plan
from tests.planner.fleets import NVIDIA


def minutes(count: float) -> timedelta:
    """Return a time of *count* minutes."""
    return timedelta(minutes=count)


def planner_of(workers: int, gpus: int) -> Plan:
    """Return the planner of a gang: its proposal on a cluster, or why it waits."""

    def propose(snapshot: Snapshot) -> PlanRecord:
        verdict = plan(Demand(workers=workers, gpus=gpus, gpu_resource=NVIDIA), snapshot)
        if isinstance(verdict, Placement):
            return PlanRecord(stage=Stage.PROPOSED, slots=verdict.slots, worker_requests={NVIDIA: gpus})
        return PlanRecord(stage=Stage.WAITING, waiting_reason=verdict.summary)

    return propose
