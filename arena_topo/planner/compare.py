"""Scenarios of a gang side by side: any level or a required one, coalesced or not, planned or not."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isinf
from random import Random

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.placement_options import TopologyPolicy
from arena_topo.model.plan import Demand, Infeasible, NodeShare, Placement, Range
from arena_topo.model.reports import Chance, Comparison, Figure, Scenario, TopologyUnaware
from arena_topo.planner.answer import ending_jobs
from arena_topo.planner.fleet import (
    Fleet,
    capacity_for,
    closest_level,
    emptied,
    level_limits,
    level_names,
    level_of,
    make_fleet,
    spanned,
)
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.offers import nic_rate
from arena_topo.planner.plan import plan_on

# What a topology-unaware scheduler would do with a gang: simulated pod by pod, with a fixed seed.
#
# Each pod goes to a node that takes it: any of them (``random``), or one of those that are least allocated
# (``spread``), as LeastAllocated of kube-scheduler's NodeResourcesFit scores them, in whole percents, here of
# cpu, memory and GPUs with equal weights; a pod that requests none counts as 100m and 200 MiB, as it does
# there. On its node the gang gets any of the free GPUs.

_RULES = ("random", "spread")
_SEED = 20_201_117
# Fewer draws for larger gangs, so that a comparison takes no longer.
_MOST_DRAWS = 200
_LEAST_DRAWS = 20
_MOST_PODS = 50_000
_DEFAULT_REQUESTS = {"cpu": 100, "memory": 200 * 1024**2}

Figures = Callable[[Sequence[NodeShare], int], tuple[Range | None, Range | None]]
"""Predicts from the shares of nodes and the GPUs of a pod the busbw of a gang in GB/s, and the images/s of
a benchmark, as far as it can."""

_Score = Callable[[int, int], int]
"""From a node's position and its pods of the gang to the score by which the next pod chooses it."""


@dataclass(frozen=True, slots=True)
class _Draw:
    level: int
    nodes: int
    inside: float | None
    across: float | None
    busbw: float | None
    images: float | None


def _simulated(
    demand: Demand,
    fleet: Fleet,
    places: Sequence[int],
    rule: str,
    *,
    closest: int | None,
    figures: Figures,
) -> TopologyUnaware:
    """Return what the scheduler called *rule* gives *demand* on nodes with *places*, with its *figures*.

    *closest* is the level that the planner reaches, None where it has no place for the gang.
    """
    placed = min(sum(places), demand.workers)
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_PODS // max(demand.workers, 1)))
    # Every pod takes one place, so whether all of them fit does not depend on the draw.
    if placed < demand.workers or not placed:
        return TopologyUnaware(rule, 0, placed)
    rng = Random(_SEED)  # noqa: S311  # a simulation that must repeat, no secret
    drawn = _draws(places, demand.workers, _score(demand, fleet, rule), rng)
    results = [_judged(demand, fleet, taken, rng, figures) for taken in islice(drawn, draws)]
    names, levels = level_names(fleet), Counter(draw.level for draw in results)
    return TopologyUnaware(
        rule=rule,
        draws=draws,
        placed=placed,
        levels=tuple(Chance(names[level], levels[level] / draws) for level in sorted(levels)),
        same_level=None if closest is None else sum(draw.level <= closest for draw in results) / draws,
        nodes=sum(draw.nodes for draw in results) / draws,
        most_nodes=max(draw.nodes for draw in results),
        widest=names[max(levels)],
        inside=_figure([draw.inside for draw in results]),
        across=_figure([draw.across for draw in results]),
        busbw=_figure([draw.busbw for draw in results]),
        images_per_second=_figure([draw.images for draw in results]),
    )


def _draws(places: Sequence[int], workers: int, score: _Score, rng: Random) -> Iterator[list[int]]:
    """Yield, again and again, the node of each of *workers*: one by one where the *score* is highest.

    Nodes are kept in buckets by their score. A pod lowers the score of its node, so the highest bucket only
    falls.
    """
    empty: dict[int, list[int]] = {}
    for position, room in enumerate(places):
        if room:
            empty.setdefault(score(position, 0), []).append(position)
    highest = max(empty, default=0)
    while True:
        buckets = {highest: empty.get(highest, []).copy()}
        taken: dict[int, int] = {}
        drawn: list[int] = []
        top = highest
        for _ in range(workers):
            while not buckets.get(top):
                top -= 1
                buckets[top] = buckets.get(top, []) + empty.get(top, [])
            bucket = buckets[top]
            index = rng.randrange(len(bucket))
            # The last entry fills the gap: taking one out of a bucket of thousands moves nothing else.
            position, bucket[index] = bucket[index], bucket[-1]
            bucket.pop()
            taken[position] = taken.get(position, 0) + 1
            drawn.append(position)
            if taken[position] < places[position]:
                buckets.setdefault(min(score(position, taken[position]), top), []).append(position)
        yield drawn


def _score(demand: Demand, fleet: Fleet, rule: str) -> _Score:
    if rule == "random":
        return lambda _position, _taken: 0
    requests = {name: demand.requests.get(name) or amount for name, amount in _DEFAULT_REQUESTS.items()}
    nodes, gpus = fleet.nodes, demand.gpus

    def score(position: int, taken: int) -> int:
        node, pods = nodes[position], taken + 1
        percents = [_free_percent(node, name, amount * pods) for name, amount in requests.items()]
        if gpus:
            percents.append(_free_percent(node, node.gpu_resource, gpus * pods))
        reported = [percent for percent in percents if percent is not None]
        return sum(reported) // len(reported) if reported else 0

    return score


def _free_percent(node: GpuNode, resource: str, more: int) -> int | None:
    """Return how much of *resource* is free once *more* is taken, in whole percents; None if unknown."""
    total = node.allocatable.get(resource, 0)
    if total <= 0:
        return None
    return max(total - node.requested.get(resource, 0) - more, 0) * 100 // total


def _judged(demand: Demand, fleet: Fleet, drawn: Sequence[int], rng: Random, figures: Figures) -> _Draw:
    taken: dict[int, list[int]] = {}
    for worker, position in enumerate(drawn):
        taken.setdefault(position, []).append(worker)
    level, _ = spanned(fleet, min(taken), max(taken))
    shares = _shares(demand, fleet, taken, rng)
    rates = [nic_rate(fleet.state(position), len(pods) * demand.gpus) for position, pods in taken.items()]
    across = min(rates) if len(taken) > 1 and not any(map(isinf, rates)) else None
    inside = [share.busbw for share in shares if len(share.workers) * demand.gpus > 1]
    busbw, images = figures(shares, demand.gpus)
    return _Draw(
        level,
        len(taken),
        # Links of one node that are not known leave open how slow the slowest node is.
        min((rate for rate in inside if rate), default=None) if all(inside) else None,
        across,
        busbw.likely if busbw else None,
        images.likely if images else None,
    )


def _shares(
    demand: Demand, fleet: Fleet, taken: Mapping[int, Sequence[int]], rng: Random
) -> tuple[NodeShare, ...]:
    """Return what the gang gets of each node: any of its free GPUs for the workers drawn for it."""
    return tuple(
        NodeShare(
            fleet.nodes[position].name,
            tuple(pods),
            *_gpus(fleet, position, len(pods) * demand.gpus, rng),
        )
        for position, pods in sorted(taken.items())
    )


def _gpus(
    fleet: Fleet, position: int, wanted: int, rng: Random
) -> tuple[tuple[int, ...] | None, float | None]:
    """Return the indices of any *wanted* free GPUs and their busbw, None if GPUs or links are unknown."""
    state, gpus = fleet.state(position), fleet.nodes[position].gpus
    if not wanted or state.machine is None or state.mask is None:
        return None, None
    free = positions_of(state.mask & ((1 << state.machine.size) - 1))
    chosen = rng.sample(free, wanted)
    # One GPU has no link to another.
    busbw = state.machine.busbw(sum(1 << gpu for gpu in chosen)) if wanted > 1 else None
    return tuple(gpus[gpu].index for gpu in sorted(chosen)), busbw


def _figure(rates: Sequence[float | None]) -> Figure | None:
    rated = [rate for rate in rates if rate is not None]
    return Figure(sum(rated) / len(rated), min(rated), len(rated) / len(rates)) if rated else None


def _no_figures(_shares: Sequence[NodeShare], _gpus: int) -> tuple[None, None]:
    """Predict nothing."""
    return None, None


def compare(demand: Demand, snapshot: Snapshot, figures: Figures = _no_figures) -> Comparison:
    """Return what each scenario gives *demand* now, and what topology-unaware schedulers would give.

    The required level is the one that *demand* names, or else the one that an empty cluster would give.
    Raises ``UsageError`` for a level that the fabric does not have.
    """
    fleet = make_fleet(snapshot)
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
            _simulated(plain, fleet, places, rule, closest=closest, figures=figures) for rule in _RULES
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
