"""A whole gang onto a cluster: ``plan`` answers with a place for every worker, or with why there is none."""

from dataclasses import replace

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.demand import Demand, TopologyPolicy
from arena_topo.model.plan.placement import Infeasible, Placement, Verdict
from arena_topo.planner.assign import placement
from arena_topo.planner.explain.infeasible import infeasible, no_launcher, too_wide
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.domain_choice import choose
from arena_topo.planner.nodes.fit import fitting, places
from arena_topo.planner.nodes.fleet import Fleet, emptied, fleet_of
from arena_topo.planner.nodes.launcher import hosts, launcher_fits
from arena_topo.planner.nodes.levels import Bounds, Room, bounds, closest_level, names, room
from arena_topo.planner.nodes.node_choice import Problem
from arena_topo.planner.nodes.offers import Offers
from arena_topo.planner.nodes.shapes import shapes


def plan(demand: Demand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Verdict:
    """Return the place of every worker of *demand* on the cluster in *snapshot*, or why the gang has none.

    Chosen in this order: it fits; the closest fabric level; the fewest nodes; the highest predicted busbw; the least
    damage to what stays free; the first by name. The answer does not depend on the order of anything in *snapshot*.
    Raises ``UsageError`` for a level that the fabric does not have.
    """
    return plan_on(demand, fleet_of(snapshot, model))


def plan_on(demand: Demand, fleet: Fleet) -> Verdict:
    """Return what ``plan`` does, on a fleet that is already there."""
    if demand.coalesce and demand.gpus:
        return _coalesced(demand, fleet)
    return decide(demand, fleet)


def decide(demand: Demand, fleet: Fleet) -> Verdict:
    """Return what ``plan`` does, for workers of just the shape that *demand* has."""
    space = room(*fitting(demand, fleet))
    answer = _place(demand, fleet, space)
    if isinstance(answer, Infeasible) or not (demand.launcher or demand.launcher_selector):
        return answer
    if launcher_fits(demand, fleet, answer):
        return answer
    for at in hosts(demand, fleet):
        lessened = room(*fitting(demand, fleet, reserved=(at, demand.launcher)))
        answer = _place(demand, fleet, lessened)
        if isinstance(answer, Placement) and launcher_fits(demand, fleet, answer):
            return answer
    return no_launcher(demand)


def _place(demand: Demand, fleet: Fleet, space: Room) -> Verdict:
    limits = _limits(demand, fleet)
    level = closest_level(fleet, space, demand.workers, limits)
    if level is None:
        return infeasible(demand, fleet, space, limits)
    if demand.policy is TopologyPolicy.RESTRICTED:
        empty = emptied(fleet)
        ideal = closest_level(empty, room(places(demand, empty)), demand.workers, limits)
        if ideal is not None and ideal < level:
            return too_wide(demand, fleet, level, ideal)
    offers = Offers(fleet, demand.gpus, matters=demand.bandwidth_matters)
    return placement(demand, fleet, space, choose(Problem(demand.workers, space, offers), level))


def _limits(demand: Demand, fleet: Fleet) -> Bounds:
    limits = bounds(demand, fleet)
    return Bounds(limits.widest, limits.widest) if demand.policy is TopologyPolicy.NONE else limits


def _coalesced(demand: Demand, fleet: Fleet) -> Verdict:
    """Return the best placement of *demand* as fewer, larger pods that are all alike.

    The closest level first, then the fewest nodes, then the fewest pods; the shape that was asked is among them.
    """
    best: tuple[tuple[int, int, int], Placement] | None = None
    for shape in shapes(demand):
        answer = decide(shape, fleet)
        if isinstance(answer, Placement):
            merit = (_depth(answer, fleet), len(answer.shares), answer.workers)
            if best is None or merit < best[0]:
                best = merit, answer
    if best is None:
        return decide(replace(demand, coalesce=False), fleet)
    return replace(best[1], coalesced=best[1].workers != demand.workers)


def _depth(answer: Placement, fleet: Fleet) -> int:
    return names(fleet).index(answer.level)
