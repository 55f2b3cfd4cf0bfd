"""Every placement of a gang on a small cluster, to measure how far from the best a rule's answer is."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from arena_topo.planner.fleet import Fleet, domains_at, level_names
from arena_topo.planner.offers import Use

Score = tuple[int, int, tuple[int, ...], float, float, int, int]
"""Level, nodes, domains of the closer levels, busbw and busbw inside the nodes (negative), damage, places
left.

Damage is that on the nodes used, and the places left are those of the domain.
"""


def score(fleet: Fleet, gpus: int, places: Sequence[int], workers: dict[int, int]) -> Score:
    """Return the score of a placement, the lowest best, given the best GPUs on each of its nodes.

    *workers* are those of each node that is used, by position.
    """
    use = Use.SEVERAL_NODES if len(workers) > 1 else Use.ONE_NODE
    offers = [
        fleet.tables.offer(gpus, use, fleet.state_ids[position], count, places[position])
        for position, count in workers.items()
    ]
    first, last = min(workers), max(workers)
    level, left = next(
        (level, sum(places[domain.start : domain.end]) - sum(workers.values()))
        for level in range(len(level_names(fleet)))
        for domain in domains_at(fleet, level)
        if domain.start <= first and last < domain.end
    )
    inside = min(offer.inside for offer in offers)
    across = min(offer.busbw for offer in offers) if len(offers) > 1 else inside
    damage = sum(offer.damage for offer in offers)
    tiers = range(len(fleet.tiers) + 2 - level, len(fleet.tiers) + 1)
    domains = tuple(len({fleet.nested[tier][0][position] for position in workers}) for tier in tiers)
    # Nodes are one domain each at the closest level: what is left there is damage, and not counted twice.
    return (
        level,
        len(offers),
        domains if len(offers) > 1 else (),
        -across,
        -inside,
        damage,
        left if level else 0,
    )


def best_score(fleet: Fleet, gpus: int, places: Sequence[int], workers: int) -> Score | None:
    """Return the score of the best of all placements, None if there is none."""
    able = [position for position, count in enumerate(places) if count]
    return min(
        (
            score(fleet, gpus, places, dict(zip(chosen, split, strict=True)))
            for size in range(1, len(able) + 1)
            for chosen in combinations(able, size)
            for split in _splits([places[position] for position in chosen], workers)
        ),
        default=None,
    )


def _splits(most: Sequence[int], workers: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to put *workers* on nodes that take *most* each, at least one on every node."""
    if not most:
        if not workers:
            yield ()
        return
    for taken in range(1, min(most[0], workers) + 1):
        for rest in _splits(most[1:], workers - taken):
            yield (taken, *rest)
