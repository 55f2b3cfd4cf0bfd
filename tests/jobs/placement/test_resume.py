"""Other places for workers that were made again, and nothing else of the plan changes."""

from dataclasses import replace

from arena_topo.jobs.placement.resume import Replacement
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import PlanRecord, Stage
from tests.objects import mpijob
from tests.planner.fleets import cluster, node

RECORD = PlanRecord(
    stage=Stage.CONFIRMED, slots=(Slot(0, "gone", (0,)), Slot(1, "n2", (3,))), hostnames={"n2": "host-n2"}
)


def test_only_the_lost_worker_gets_another_place() -> None:
    """Workers keep their numbers; of all nodes only those of the plan have their hostnames in it."""
    nodes = [replace(node(name), hostname=f"host-{name}") for name in ("n1", "n2", "n3")]
    found = Replacement(mpijob("job", workers=2), RECORD, frozenset({0}))(cluster(nodes))

    assert Stage.PROPOSED is found.stage
    assert [0, 1] == [slot.worker for slot in found.slots]
    assert ("n1", RECORD.slots[1]) == (found.slots[0].node, found.slots[1])
    assert {"n1": "host-n1", "n2": "host-n2"} == found.hostnames
