"""Another place for workers that were made again, where the one that they had is gone."""

from dataclasses import dataclass, replace

from arena_topo.errors import DoesNotFit
from arena_topo.jobs.placement.plan import demand_of, hostnames_of, options_from_annotation, refusal
from arena_topo.jobs.placement.reservation import Desk
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Placement
from arena_topo.model.plan.plan_record import PlanRecord, Stage
from arena_topo.planner.plan import plan
from arena_topo.planner.reservations.conflicts import part, stands


@dataclass(frozen=True, slots=True)
class Replacement:
    """Plans *workers* of a job anew, and leaves the others where they are."""

    job: Object
    record: PlanRecord
    workers: frozenset[int]

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the plan with new places; raises ``DoesNotFit`` where there are none, and the old plan stays."""
        options = options_from_annotation(self.record.requested_options)
        whole = demand_of(self.job, snapshot, options)
        few = replace(whole, workers=len(self.workers), launcher={}, launcher_selector={}, required_level="")
        verdict = plan(few, snapshot, options.model)
        if not isinstance(verdict, Placement):
            raise DoesNotFit(
                f"{plural(len(self.workers), 'worker')} lost their places, and there are no others: {refusal(verdict)}",
                hint="they stay held back; arena-topo resume tries again",
            )
        places = dict(zip(sorted(self.workers), verdict.slots, strict=True))
        return replace(
            self.record,
            stage=Stage.PROPOSED,
            slots=tuple(
                places[slot.worker]._replace(worker=slot.worker) if slot.worker in places else slot
                for slot in self.record.slots
            ),
            hostnames={**self.record.hostnames, **hostnames_of(verdict.slots, snapshot)},
        )


def with_places(desk: Desk, record: PlanRecord, workers: frozenset[int]) -> PlanRecord:
    """Return the confirmed plan of the job of *desk* in which *workers*, who have no node, have places that exist.

    Raises ``DoesNotFit`` where there are none.
    """
    if not workers or _exists(part(record, workers), desk.look()):
        return record
    return desk.settle(Replacement(desk.made, record, workers), workers)


def _exists(record: PlanRecord, snapshot: Snapshot) -> bool:
    open_nodes = {node.name for node in snapshot.nodes if node.ready and not node.unschedulable}
    return {slot.node for slot in record.slots} <= open_nodes and stands(record, snapshot)
