"""A plan for workers that come beside those that a job has."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from arena_topo.errors import DoesNotFit
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.options import PlanOptions, options_from_annotation
from arena_topo.jobs.placement.propose import hostnames_of, waiting_reason
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.notation.words import plural
from arena_topo.model.objects import Object
from arena_topo.model.plan.change import Growth
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible
from arena_topo.model.plan.plan_record import Enforcement, PlanRecord, Stage
from arena_topo.planner.change.grow import Grown, grow
from arena_topo.planner.reservations.conflicts import OtherPlan, without_reserved


def demand_of_member(job: Object, record: PlanRecord, snapshot: Snapshot) -> tuple[Demand, PlanOptions]:
    """Return what a worker of *job* asks for, planned as *record* was, and the options of that plan."""
    options = options_from_annotation(record.requested_options)
    demand = demand_of(job, snapshot, options)
    return replace(demand, needs_hostname=record.enforcement is not Enforcement.NONE), options


@dataclass(slots=True)
class GrowthPlanner:
    """Plans *most* more workers of *job*, or as many of them as fit where *fewer* will do.

    *record* is its confirmed plan; ``bound`` are the workers that have a node. ``growth`` is the last answer.
    """

    job: Object
    record: PlanRecord
    bound: frozenset[int]
    most: int
    fewer: bool = False
    growth: Growth | None = field(default=None, init=False)

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the plan with the places of more workers; raises ``DoesNotFit`` where there are none."""
        demand, options = demand_of_member(self.job, self.record, snapshot)
        # A worker that is about to start holds nothing yet, and its own job's plan is none of the others'.
        own = OtherPlan(order=("", ""), record=self.record, bound=self.bound)
        free = without_reserved(snapshot, [own])

        def grown(more: int) -> Grown:
            return grow(demand, self.record.slots, more, free, options.model)

        found = largest(grown, self.most) if self.fewer else grown(self.most)
        if isinstance(found, Infeasible):
            name, more = self.job["metadata"]["name"], 1 if self.fewer else self.most
            raise DoesNotFit(
                f"there is no place for {plural(more, 'more worker')} of {name}: {waiting_reason(found)}",
                hint="it stays as it is; "
                + (
                    f"retry when jobs have ended: arena-topo scale {name} --grow"
                    if self.fewer
                    else f"arena-topo scale {name} --grow takes as many as there is room for"
                ),
            )
        self.growth = found
        return replace(
            self.record,
            stage=Stage.PROPOSED,
            slots=(*self.record.slots, *found.slots),
            hostnames={**self.record.hostnames, **hostnames_of(found.slots, snapshot)},
            level=found.after.level,
            domain=found.after.domain,
        )


def largest(grown: Callable[[int], Grown], most: int) -> Grown:
    """Return the largest growth of at most *most* workers that fits, or why not even one does.

    Where some number fits, so does every smaller one. For example, of at most 7 with room for 2: 7, 3, 1 and 2 are tried.
    """
    found = grown(most)
    if isinstance(found, Growth):
        return found
    fits, too_many = 0, most
    best: Grown = found
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        answer = grown(middle)
        if isinstance(answer, Growth):
            fits, best = middle, answer
        else:
            too_many = middle
            # The fewest that do not fit show best what is missing.
            best = best if isinstance(best, Growth) else answer
    return best
