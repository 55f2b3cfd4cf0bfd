"""Rules by which others put a gang onto nodes, given how many workers each node takes.

Each answers with the workers of every node that it uses, by position in fabric order, or None where it finds no place.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from random import Random

from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import capacity_of

_START: Callable[[Domain], int] = attrgetter("start")
Answer = dict[int, int] | None
Rule = Callable[[Fleet, Sequence[int], int], Answer]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A domain or a node with its places."""

    level: int
    domain: Domain
    places: int


def _negative_places(candidate: _Candidate) -> int:
    return -candidate.places


def kueue_best_fit(fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Kueue's topology-aware scheduling, profile BestFit, with the node as its preferred level.

    From the closest level up, the smallest domain that holds the gang; where none does, the largest ones of the top
    level. Then downwards, level by level: the largest domains, and the smallest that takes what is left.
    Source: Kueue's documentation, "Topology Aware Scheduling", and KEP-2724.
    """
    tiers = _tiers(fleet)
    before = capacity_of(places).before
    for level in range(len(tiers) - 1, -1, -1):
        fitting = [
            (count, number)
            for number, domain in enumerate(tiers[level])
            if (count := before[domain.end] - before[domain.start]) >= workers
        ]
        if fitting:
            count, number = min(fitting)
            return dict(_descend(tiers, before, _Candidate(level, tiers[level][number], count), workers))
    return None


@lru_cache(maxsize=4)
def _tiers(fleet: Fleet) -> list[Sequence[Domain]]:
    """Return the levels from the whole cluster down to the nodes."""
    nodes = [Domain((node.name,), position, position + 1) for position, node in enumerate(fleet.nodes)]
    return [[fleet.cluster], *fleet.domains, nodes]


def _descend(
    tiers: Sequence[Sequence[Domain]], before: Sequence[int], candidate: _Candidate, workers: int
) -> Iterator[tuple[int, int]]:
    if candidate.level == len(tiers) - 1:
        yield candidate.domain.start, workers
        return
    below = tiers[candidate.level + 1]
    first = bisect_left(below, candidate.domain.start, key=_START)
    last = bisect_left(below, candidate.domain.end, lo=first, key=_START)
    within = [
        _Candidate(candidate.level + 1, domain, before[domain.end] - before[domain.start])
        for domain in below[first:last]
    ]
    children = sorted(within, key=lambda child: (-child.places, child.domain.start))
    for index, child in enumerate(children):
        rest = children[index:]
        # The smallest that takes what is left, and of equals the first.
        if child.places >= workers:
            smallest = rest[bisect_right(rest, -workers, key=_negative_places) - 1]
            first_of_them = rest[bisect_left(rest, -smallest.places, key=_negative_places)]
            yield from _descend(tiers, before, first_of_them, workers)
            return
        if child.places:
            yield from _descend(tiers, before, child, child.places)
        workers -= child.places


def first_fit(_fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Fill the nodes in their order."""
    taken: dict[int, int] = {}
    for position, count in enumerate(places):
        if count:
            taken[position] = min(count, workers)
            workers -= taken[position]
            if not workers:
                return taken
    return None


def random_nodes(_fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Put each worker on any node that takes one, with a fixed seed."""
    rng = Random(workers)
    able = [position for position, count in enumerate(places) if count]
    taken: dict[int, int] = {}
    for _ in range(workers):
        if not able:
            return None
        index = rng.randrange(len(able))
        position = able[index]
        taken[position] = taken.get(position, 0) + 1
        if taken[position] == places[position]:
            # The last entry fills the gap: removing one from the middle would move all that follow.
            able[index] = able[-1]
            able.pop()
    return taken


RULES: dict[str, Rule] = {
    "Kueue TAS best-fit": kueue_best_fit,
    "first fit": first_fit,
    "random": random_nodes,
}
