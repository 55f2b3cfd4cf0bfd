"""A whole gang onto a cluster: ``plan`` answers with a place for every worker, or with why there is none.

A plan is a function of the demand and the fleet: the same question on the same fleet has the same answer, whatever
was asked before. What is kept between questions (``memo``) only saves time.
"""

from collections.abc import Iterator
from dataclasses import replace

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, GangDemand, Infeasible, Placement, TopologyPolicy, Verdict
from arena_topo.model.text.words import plural
from arena_topo.planner.assign import placement
from arena_topo.planner.choice import Problem, choose_domain
from arena_topo.planner.explain import gang_words, infeasible, no_launcher, too_wide
from arena_topo.planner.fleet import (
    Capacity,
    Fleet,
    LevelLimits,
    aligned,
    capacity_for,
    closest_level,
    emptied,
    launcher_fits,
    launcher_hosts,
    level_limits,
    level_names,
    level_words,
    make_fleet,
    reshaped,
)
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.groups import place_groups


def plan(demand: Demand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Verdict:
    """Return the place of every worker of *demand* on the cluster in *snapshot*, or why the gang has none.

    Chosen in this order: it fits; the closest fabric level; the fewest nodes; the highest predicted busbw; the least
    damage to what stays free; the first by name. The answer does not depend on the order of anything in *snapshot*.
    Raises ``UsageError`` for a level that the fabric does not have.
    """
    return plan_on(demand, make_fleet(snapshot, model))


def plan_on(demand: Demand, fleet: Fleet, *, advises: bool = True, explains: bool = True) -> Verdict:
    """Return what ``plan`` does, on a fleet that is laid out already.

    Where it *advises* nothing what would help is left out: it is tried on the fleet, which takes a hundred times as long as
    to find that there is no place. Where it does not *explain* a placement, that has no steps.
    """
    if demand.coalesce and demand.gpus:
        return _coalesced(demand, fleet, advises=advises)
    return plan_shape(demand, fleet, advises=advises, explains=explains)


def plan_shape(demand: Demand, fleet: Fleet, *, advises: bool = True, explains: bool = True) -> Verdict:
    """Return what ``plan`` does, for workers of exactly the shape that *demand* has."""
    fleet = aligned(fleet, demand)
    answer = _place(demand, fleet, capacity_for(demand, fleet), advises=advises, explains=explains)
    if isinstance(answer, Infeasible) or demand.launcher is None:
        return answer
    if launcher_fits(demand, fleet, answer):
        return answer
    # The workers took the launcher's room: keep it free on one node after the other, and place them again.
    for host in launcher_hosts(demand, fleet):
        capacity = capacity_for(demand, fleet, reserved=(host, demand.launcher))
        answer = _place(demand, fleet, capacity, advises=False, explains=explains)
        if isinstance(answer, Placement) and launcher_fits(demand, fleet, answer):
            return answer
    return no_launcher(demand)


def _coalesced_shapes(demand: Demand) -> Iterator[Demand]:
    """Yield *demand* in every shape of as many GPUs in all, the largest pods first; none smaller than asked.

    A pod that takes the ranks of several workers asks for as much cpu, memory and devices as they did together.

    >>> [(shape.workers, shape.gpus) for shape in _coalesced_shapes(Demand(workers=4, gpus=2))]
    [(1, 8), (2, 4), (4, 2)]
    """
    ranks = demand.workers * demand.gpus
    for workers in range(1, demand.workers + 1):
        if ranks % workers == 0:
            yield reshaped(demand, ranks // workers)


def _place(demand: Demand, fleet: Fleet, capacity: Capacity, *, advises: bool, explains: bool) -> Verdict:
    limits = policy_limits(demand, fleet)
    level = closest_level(fleet, capacity, demand.workers, limits)
    if level is None:
        return infeasible(demand, fleet, capacity, limits, advises=advises)
    if demand.policy is TopologyPolicy.RESTRICTED:
        # An empty cluster of the same nodes: taints, cordons and unhealthy GPUs stay, only pods go.
        empty = emptied(fleet)
        ideal = closest_level(empty, capacity_for(demand, empty), demand.workers, limits)
        if ideal is not None and ideal < level:
            answer = too_wide(gang_words(demand), fleet, level, ideal)
            wait = f"wait until a {level_words(fleet)[ideal]} has {plural(demand.workers, 'place')}"
            return replace(answer, remedies=(*answer.remedies, wait))
    if demand.parallel:
        return place_groups(demand, demand.parallel, fleet, capacity, limits)
    problem = Problem(fleet, capacity, demand.workers, demand.gpus, objective=demand.objective)
    return placement(demand, fleet, capacity, choose_domain(problem, level), explains=explains)


def policy_limits(demand: Demand | GangDemand, fleet: Fleet) -> LevelLimits:
    """Return the levels that will do for *demand*. Raises ``UsageError`` for a level that the fabric does not have."""
    limits = level_limits(demand, fleet)
    # Without a policy all levels count as the widest one, and only the number of nodes decides.
    return LevelLimits(limits.widest, limits.widest) if demand.policy is TopologyPolicy.NONE else limits


def _coalesced(demand: Demand, fleet: Fleet, *, advises: bool) -> Verdict:
    """Return the best placement of *demand* as fewer, larger pods that are all alike.

    The closest level first, then the fewest nodes, then the fewest pods; the shape that was asked for is among them.
    """
    best: tuple[tuple[int, int, int], Placement] | None = None
    for shape in _coalesced_shapes(demand):
        answer = plan_shape(shape, fleet, advises=False)
        if isinstance(answer, Placement):
            merit = (level_names(fleet).index(answer.level), len(answer.shares), answer.workers)
            if best is None or merit < best[0]:
                best = merit, answer
    if best is None:
        # No shape fits: the reasons and remedies are those of the shape that was asked for.
        return plan_shape(replace(demand, coalesce=False), fleet, advises=advises)
    return replace(best[1], coalesced=best[1].workers != demand.workers)
