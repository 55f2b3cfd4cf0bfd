"""The ways of asking for a gang side by side: any level or a required one, coalesced or not, planned or blind."""

from dataclasses import replace
from math import isinf

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.comparison import Comparison, Way
from arena_topo.model.plan.demand import Demand, TopologyPolicy
from arena_topo.model.plan.placement import Infeasible, Placement
from arena_topo.planner.advise.unaware_scheduler import RULES, blind
from arena_topo.planner.explain.remedies import ending_jobs
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fit import places
from arena_topo.planner.nodes.fleet import Fleet, emptied, fleet_of
from arena_topo.planner.nodes.levels import bounds, closest_level, level_of, names, room
from arena_topo.planner.nodes.offers import nics
from arena_topo.planner.plan import plan_on


def compare(demand: Demand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Comparison:
    """Return what each way of asking for *demand* gives now, and what blind schedulers would.

    The required level is the one that *demand* names, or else the one that an empty cluster would give. Raises
    ``UsageError`` for a level that the fabric does not have.
    """
    fleet = fleet_of(snapshot, model)
    target = _target(demand, fleet)
    plain = replace(demand, policy=TopologyPolicy.BEST_EFFORT, required_level="", coalesce=False)
    shapes = (False, True) if demand.gpus and demand.workers > 1 else (False,)
    ways = [_way(replace(plain, coalesce=each), fleet) for each in shapes]
    if target:
        strict = replace(plain, required_level=target, preferred_level="")
        ways += [_way(replace(strict, coalesce=each), fleet) for each in shapes]
    closest = names(fleet).index(ways[0].level) if ways[0].fits else None
    free = places(plain, fleet)
    return Comparison(
        workers=demand.workers,
        gpus=demand.gpus,
        ways=tuple(ways),
        blind=tuple(blind(plain, fleet, free, rule, closest) for rule in RULES),
        notes=() if target else ("the gang would not fit on the cluster even if it were empty",),
    )


def _target(demand: Demand, fleet: Fleet) -> str:
    """Return the level to require, empty where not even the empty cluster holds the gang."""
    known = names(fleet)
    if demand.required_level:
        return known[level_of(fleet, demand.required_level, "--require-topology")]
    empty = emptied(fleet)
    ideal = closest_level(empty, room(places(demand, empty)), demand.workers, bounds(demand, empty))
    return "" if ideal is None else known[ideal]


def _way(demand: Demand, fleet: Fleet) -> Way:
    answer = plan_on(demand, fleet)
    asked = Way(demand.required_level, demand.coalesce, demand.workers, demand.gpus, fits=False)
    if isinstance(answer, Infeasible):
        jobs = ending_jobs(demand, fleet, bounds(demand, fleet))
        return replace(asked, reason=answer.summary, waits_for=jobs.alone[:1] or jobs.together)
    inside = [share.busbw for share in answer.shares if len(share.workers) * answer.gpus > 1]
    return replace(
        asked,
        workers=answer.workers,
        gpus=answer.gpus,
        fits=True,
        level=answer.level,
        domain=answer.domain,
        nodes=len(answer.shares),
        inside=min((rate for rate in inside if rate), default=None) if all(inside) else None,
        across=_across(answer, fleet),
        isolated=bool(answer.gpus) and any(len(share.workers) > 1 for share in answer.shares),
    )


def _across(answer: Placement, fleet: Fleet) -> float | None:
    if len(answer.shares) == 1:
        return None
    workers = {share.node: len(share.workers) for share in answer.shares}
    rates = [
        nics(fleet.state(at), workers[node.name] * answer.gpus)
        for at, node in enumerate(fleet.nodes)
        if node.name in workers
    ]
    return None if any(map(isinf, rates)) else min(rates)
