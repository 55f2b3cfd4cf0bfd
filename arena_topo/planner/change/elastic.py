"""Gangs that may have fewer members than they could use: the largest that fits, with one at least as large as must be.

A gang of 4 to 8 workers of 8 GPUs has to be in one rack, and the emptiest rack has room for six: six are placed.
"""

from dataclasses import replace

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Placement, Step, Verdict
from arena_topo.planner.explain.remedies import best_of_level
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fit import capacity_for
from arena_topo.planner.nodes.fleet import Fleet, make_fleet
from arena_topo.planner.nodes.levels import level_limits, level_words
from arena_topo.planner.plan import plan_on


def plan_elastic(
    demand: Demand, least: int, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL
) -> Verdict:
    """Return the placement of as many workers of *demand* as fit, of *least* at least, or why these do not fit.

    Raises ``UsageError`` for a level that the fabric does not have.
    """
    if not 0 < least <= demand.workers:
        raise ValueError(f"{least} of {demand.workers} workers cannot be the least")
    return plan_elastic_on(demand, least, make_fleet(snapshot, model))


def plan_elastic_on(demand: Demand, least: int, fleet: Fleet) -> Verdict:
    """Return what ``plan_elastic`` does, on a fleet that is laid out already."""
    widest = level_limits(demand, fleet).widest
    most, _ = best_of_level(fleet, capacity_for(demand, fleet), widest)
    # No level holds more; with a launcher, or where only the level of the empty cluster will do, fewer may be the most.
    for workers in range(min(demand.workers, most), least - 1, -1):
        answer = plan_on(replace(demand, workers=workers), fleet)
        if isinstance(answer, Placement):
            return replace(answer, why=(_members(demand, fleet, least, workers, most), *answer.why))
    return plan_on(replace(demand, workers=least), fleet)


def _members(demand: Demand, fleet: Fleet, least: int, workers: int, most: int) -> Step:
    level = level_words(fleet)[level_limits(demand, fleet).widest]
    if workers == demand.workers:
        bound = "no more are asked for"
    elif workers == most:
        bound = f"no {level} has room for {workers + 1}"
    else:
        bound = f"{workers + 1} have no place together"
    return Step("members", f"{workers} of {least} to {demand.workers} workers", bound=bound)
