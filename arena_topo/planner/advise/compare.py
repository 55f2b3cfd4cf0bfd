"""Scenarios of a gang side by side: any level or a required one, coalesced or not, planned or topology-unaware."""

from collections.abc import Sequence
from dataclasses import replace
from math import isinf

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.comparison import Comparison, Scenario
from arena_topo.model.plan.demand import Demand, TopologyPolicy
from arena_topo.model.plan.placement import Infeasible, NodeShare, Placement
from arena_topo.planner.advise.unaware_scheduler import RULES, Figures, simulated
from arena_topo.planner.explain.remedies import ending_jobs
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fit import capacity_for
from arena_topo.planner.nodes.fleet import Fleet, emptied, make_fleet
from arena_topo.planner.nodes.levels import closest_level, level_limits, level_names, level_of
from arena_topo.planner.nodes.node_state import nic_rate
from arena_topo.planner.plan import plan_on


def no_figures(_shares: Sequence[NodeShare], _gpus: int) -> tuple[None, None]:
    """Predict nothing."""
    return None, None


def compare(
    demand: Demand,
    snapshot: Snapshot,
    model: BandwidthModel = DEFAULT_MODEL,
    figures: Figures = no_figures,
) -> Comparison:
    """Return what each scenario gives *demand* now, with its *figures*, and what topology-unaware schedulers would give.

    The required level is the one that *demand* names, or else the one that an empty cluster would give. Raises
    ``UsageError`` for a level that the fabric does not have.
    """
    fleet = make_fleet(snapshot, model)
    required = _level_to_require(demand, fleet)
    plain = replace(demand, policy=TopologyPolicy.BEST_EFFORT, required_level="", coalesce=False)
    # Only the ranks of several workers with GPUs can be put into one pod.
    coalescing = (False, True) if demand.gpus and demand.workers > 1 else (False,)
    scenarios = [_scenario(replace(plain, coalesce=coalesce), fleet, figures) for coalesce in coalescing]
    if required:
        strict = replace(plain, required_level=required, preferred_level="")
        scenarios += [
            _scenario(replace(strict, coalesce=coalesce), fleet, figures) for coalesce in coalescing
        ]
    closest = level_names(fleet).index(scenarios[0].level) if scenarios[0].fits else None
    places = capacity_for(plain, fleet).places
    return Comparison(
        workers=demand.workers,
        gpus=demand.gpus,
        ways=tuple(scenarios),
        blind=tuple(
            simulated(plain, fleet, places, rule, closest=closest, figures=figures) for rule in RULES
        ),
        notes=() if required else ("the gang would not fit on the cluster even if it were empty",),
    )


def _level_to_require(demand: Demand, fleet: Fleet) -> str:
    """Return the level to require, empty where not even the empty cluster holds the gang."""
    names = level_names(fleet)
    if demand.required_level:
        return names[level_of(fleet, demand.required_level, "--require-topology")]
    empty = emptied(fleet)
    ideal = closest_level(empty, capacity_for(demand, empty), demand.workers, level_limits(demand, empty))
    return "" if ideal is None else names[ideal]


def _scenario(demand: Demand, fleet: Fleet, figures: Figures) -> Scenario:
    answer = plan_on(demand, fleet)
    unplaced = Scenario(demand.required_level, demand.coalesce, demand.workers, demand.gpus, fits=False)
    if isinstance(answer, Infeasible):
        jobs = ending_jobs(demand, fleet, level_limits(demand, fleet))
        return replace(unplaced, reason=answer.summary, waits_for=jobs.alone[:1] or jobs.together)
    inside = [share.busbw for share in answer.shares if len(share.workers) * answer.gpus > 1]
    busbw, images = figures(answer.shares, answer.gpus)
    return replace(
        unplaced,
        workers=answer.workers,
        gpus=answer.gpus,
        fits=True,
        level=answer.level,
        domain=answer.domain,
        nodes=len(answer.shares),
        inside=min((rate for rate in inside if rate), default=None) if all(inside) else None,
        across=_across(answer, fleet),
        isolated=bool(answer.gpus) and any(len(share.workers) > 1 for share in answer.shares),
        busbw=busbw,
        images_per_second=images,
        groups=answer.groups,
    )


def _across(answer: Placement, fleet: Fleet) -> float | None:
    if len(answer.shares) == 1:
        return None
    workers = {share.node: len(share.workers) for share in answer.shares}
    rates = [
        nic_rate(fleet.state(position), workers[node.name] * answer.gpus)
        for position, node in enumerate(fleet.nodes)
        if node.name in workers
    ]
    # NICs of unknown rate on one node leave open how fast the whole gang is.
    return None if any(map(isinf, rates)) else min(rates)
