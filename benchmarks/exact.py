"""Every placement of a gang on a small cluster, to tell how far from the best a rule's answer is."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import domains, names
from arena_topo.planner.nodes.offers import Offers

Merit = tuple[int, int, float, float, int, int]
"""Level, nodes, busbw and busbw inside the nodes (negative), damage on the nodes used, places left in the domain."""


def merit(fleet: Fleet, gpus: int, places: Sequence[int], taken: dict[int, int]) -> Merit:
    """Return what a placement is worth, the lowest best, given the best GPUs on each of its nodes."""
    offers = Offers(fleet, gpus)
    found = [offers.of(fleet.kinds[at], workers, places[at]) for at, workers in taken.items()]
    first, last = min(taken), max(taken)
    level, left = next(
        (level, sum(places[each.start : each.end]) - sum(taken.values()))
        for level in range(len(names(fleet)))
        for each in domains(fleet, level)
        if each.start <= first and last < each.end
    )
    inside = min(offer.inside for offer in found)
    across = min(offer.busbw for offer in found) if len(found) > 1 else inside
    damage = sum(offer.damage for offer in found)
    return level, len(found), -across, -inside, damage, left if level else 0


def best_merit(fleet: Fleet, gpus: int, places: Sequence[int], workers: int) -> Merit | None:
    """Return the merit of the best of all placements, None where there is none."""
    able = [at for at, count in enumerate(places) if count]
    return min(
        (
            merit(fleet, gpus, places, dict(zip(chosen, split, strict=True)))
            for size in range(1, len(able) + 1)
            for chosen in combinations(able, size)
            for split in _splits([places[at] for at in chosen], workers)
        ),
        default=None,
    )


def _splits(most: Sequence[int], workers: int) -> Iterator[tuple[int, ...]]:
    if not most:
        if not workers:
            yield ()
        return
    for taken in range(1, min(most[0], workers) + 1):
        for rest in _splits(most[1:], workers - taken):
            yield (taken, *rest)
