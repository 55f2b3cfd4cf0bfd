"""What a scheduler that knows no topology would do with a gang: simulated pod by pod, with a fixed seed.

Each pod goes to a node that has room for it: any of them (``random``), or one of those that are least allocated
(``spread``), as LeastAllocated of kube-scheduler's NodeResourcesFit scores them, in whole percents, here of cpu, memory
and GPUs with equal weights; a pod that asks none counts as 100m and 200 MB, as it does there. On its node the gang
gets any of the free GPUs.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isinf
from random import Random

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.plan.comparison import Blind, Chance, Figure
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import names, spanned
from arena_topo.planner.nodes.offers import nics

RULES = ("random", "spread")
_SEED = 20_201_117
_MOST_DRAWS = 200
_LEAST_DRAWS = 20
_MOST_PODS = 50_000
_UNASKED = {"cpu": 100, "memory": 200 * 1000**2}

_Score = Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class _Draw:
    level: int
    nodes: int
    inside: float | None
    across: float | None


def blind(demand: Demand, fleet: Fleet, places: Sequence[int], rule: str, closest: int | None) -> Blind:
    """Return what the scheduler called *rule* gives *demand* on the nodes that have *places*.

    *closest* is the level that the planner reaches, None where it has no place for the gang.
    """
    placed = min(sum(places), demand.workers)
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _MOST_PODS // max(demand.workers, 1)))
    if placed < demand.workers or not placed:
        return Blind(rule, 0, placed)
    chance = Random(_SEED)  # noqa: S311  # a simulation that must repeat, no secret
    chosen = _draws(places, demand.workers, _score(demand, fleet, rule), chance)
    seen = [_judged(demand, fleet, taken, chance) for taken, _ in zip(chosen, range(draws), strict=False)]
    known, levels = names(fleet), Counter(draw.level for draw in seen)
    return Blind(
        rule=rule,
        draws=draws,
        placed=placed,
        levels=tuple(Chance(known[level], levels[level] / draws) for level in sorted(levels)),
        same_level=None if closest is None else sum(draw.level <= closest for draw in seen) / draws,
        nodes=sum(draw.nodes for draw in seen) / draws,
        most_nodes=max(draw.nodes for draw in seen),
        widest=known[max(levels)],
        inside=_figure([draw.inside for draw in seen]),
        across=_figure([draw.across for draw in seen]),
    )


def _draws(places: Sequence[int], workers: int, score: _Score, chance: Random) -> Iterator[dict[int, int]]:
    """Yield, again and again, how many of *workers* each node gets: one by one on a node of the highest *score*."""
    start: dict[int, list[int]] = {}
    for at, room in enumerate(places):
        if room:
            start.setdefault(score(at, 0), []).append(at)
    highest = max(start, default=0)
    while True:
        buckets = {highest: start.get(highest, []).copy()}
        taken: dict[int, int] = {}
        top = highest
        for _ in range(workers):
            while not buckets.get(top):
                top -= 1
                buckets[top] = buckets.get(top, []) + start.get(top, [])
            bucket = buckets[top]
            pick = chance.randrange(len(bucket))
            at, bucket[pick] = bucket[pick], bucket[-1]
            bucket.pop()
            taken[at] = taken.get(at, 0) + 1
            if taken[at] < places[at]:
                buckets.setdefault(min(score(at, taken[at]), top), []).append(at)
        yield taken


def _score(demand: Demand, fleet: Fleet, rule: str) -> _Score:
    if rule == "random":
        return lambda _at, _taken: 0
    asked = {name: demand.requests.get(name) or amount for name, amount in _UNASKED.items()}
    nodes, gpus = fleet.nodes, demand.gpus

    def score(at: int, taken: int) -> int:
        node, pods = nodes[at], taken + 1
        parts = [_percent(node, name, each * pods) for name, each in asked.items()]
        if gpus:
            parts.append(_percent(node, node.gpu_resource, gpus * pods))
        told = [part for part in parts if part is not None]
        return sum(told) // len(told) if told else 0

    return score


def _percent(node: GpuNode, resource: str, more: int) -> int | None:
    """Return how much of *resource* is free once *more* is taken, in whole percents; None where it is not told."""
    total = node.allocatable.get(resource, 0)
    if total <= 0:
        return None
    return max(total - node.requested.get(resource, 0) - more, 0) * 100 // total


def _judged(demand: Demand, fleet: Fleet, taken: dict[int, int], chance: Random) -> _Draw:
    level, _ = spanned(fleet, min(taken), max(taken))
    inside = [_inside(fleet, at, count * demand.gpus, chance) for at, count in sorted(taken.items())]
    rates = [nics(fleet.state(at), count * demand.gpus) for at, count in taken.items()]
    across = min(rates) if len(taken) > 1 and not any(map(isinf, rates)) else None
    told = [rate for rate in inside if rate is not None]
    return _Draw(level, len(taken), min(told) if told and min(told) > 0 else None, across)


def _inside(fleet: Fleet, at: int, count: int, chance: Random) -> float | None:
    """Return the busbw of any *count* free GPUs: None for one, 0 where links or free GPUs are not known."""
    if count < 2:
        return None
    state = fleet.state(at)
    if state.machine is None or state.mask is None:
        return 0.0
    free = [position for position in range(state.machine.size) if state.mask >> position & 1]
    return state.machine.busbw(sum(1 << position for position in chance.sample(free, count)))


def _figure(rates: Sequence[float | None]) -> Figure | None:
    told = [rate for rate in rates if rate is not None]
    return Figure(sum(told) / len(told), min(told), len(told) / len(rates)) if told else None
