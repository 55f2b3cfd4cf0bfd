"""The planner for one snapshot after the other of the same cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from arena_topo.jobs.placement.demand import Question
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Verdict
from arena_topo.model.plan.roles import GangVerdict
from arena_topo.planner.gpus.bandwidth import BandwidthModel
from arena_topo.planner.memo import Memo
from arena_topo.planner.nodes.fleet import Fleets
from arena_topo.planner.plan import plan_on
from arena_topo.planner.roles.plan_gang import plan_gang_on

_MOST_MODELS = 4
"""Bandwidth models with a fleet of their own; nearly all jobs have the same."""


@dataclass(slots=True)
class FleetPlanner:
    """Answers what the planner answers, on the fleet that is kept from one snapshot to the next; for one thread."""

    _fleets: Memo[BandwidthModel, Fleets] = field(default_factory=lambda: Memo(Fleets, limit=_MOST_MODELS))

    def __call__(self, asked: Question, snapshot: Snapshot, options: PlanOptions) -> Verdict | GangVerdict:
        """Return where the pods of *asked* go in *snapshot*, without the steps that lead there, or why they cannot."""
        fleet = self._fleets[options.model].of(snapshot)
        return (
            plan_on(asked, fleet, advises=False, explains=False)
            if isinstance(asked, Demand)
            else plan_gang_on(asked, fleet)
        )

    def prepare(self, snapshot: Snapshot) -> Iterator[None]:
        """Make the next answer in *snapshot* a quick one, bit by bit: yield after each."""
        for fleets in list(self._fleets.values()):
            yield from fleets.approach(snapshot)
