"""Where others put a gang, given how many workers each node takes: first fit, and Kueue's topology-aware scheduling.

They are our own implementations of what their projects publish. Each answers with the workers of every node that it uses, by
position in fabric order, or None where it finds no place.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from arena_topo.planner.groups.units import Parts, Stage
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.levels import capacity_of

_START: Callable[[Domain], int] = attrgetter("start")
Answer = dict[int, int] | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A domain or a node with its places."""

    level: int
    domain: Domain
    places: int


def _negative_places(candidate: _Candidate) -> int:
    return -candidate.places


def kueue_best_fit(parts: Parts, places: Sequence[int], workers: int) -> Answer:
    """Kueue's topology-aware scheduling, profile BestFit, with the node as its preferred level.

    From the closest level up, the smallest domain that holds the gang; where none does, the largest ones of the top
    level. Then downwards, level by level: the largest domains, and the smallest that takes what is left.
    Source: Kueue's documentation, "Topology Aware Scheduling", and KEP-2724.
    """
    tiers = parts[::-1]
    before = capacity_of(places).before
    found = _best_fit(tiers, before, workers, len(tiers) - 1)
    return None if found is None else {domain.start: count for domain, count in found}


def kueue_slices(parts: Parts, places: Sequence[int], slices: int, stage: Stage) -> Answer:
    """Kueue's rule for pods in *slices*, each of which has to be in one domain (``podset-slice-required-topology``).

    *stage* says how many pods a slice has, at which level, and how many slices the domains of that level hold.
    """
    tiers = parts[::-1]
    finest = len(tiers) - 1 - stage.level
    found = _best_fit(tiers, stage.before, slices, finest)
    if found is None:
        return None
    before = capacity_of(places).before
    return {
        node.start: count
        for domain, held in found
        for node, count in _descend(
            tiers, before, _Candidate(finest, domain, 0), held * stage.workers, len(tiers) - 1
        )
    }


def _best_fit(
    tiers: Parts, before: Sequence[int], count: int, finest: int
) -> list[tuple[Domain, int]] | None:
    """Return the domains of the level *finest* that take *count* places, with the places taken in each."""
    for level in range(finest, -1, -1):
        fitting = [
            (held, number)
            for number, domain in enumerate(tiers[level])
            if (held := before[domain.end] - before[domain.start]) >= count
        ]
        if fitting:
            held, number = min(fitting)
            return list(_descend(tiers, before, _Candidate(level, tiers[level][number], held), count, finest))
    return None


def _descend(
    tiers: Parts,
    before: Sequence[int],
    candidate: _Candidate,
    count: int,
    finest: int,
) -> Iterator[tuple[Domain, int]]:
    if candidate.level == finest:
        yield candidate.domain, count
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
        if child.places >= count:
            smallest = rest[bisect_right(rest, -count, key=_negative_places) - 1]
            first_of_them = rest[bisect_left(rest, -smallest.places, key=_negative_places)]
            yield from _descend(tiers, before, first_of_them, count, finest)
            return
        if child.places:
            yield from _descend(tiers, before, child, child.places, finest)
        count -= child.places


def first_fit(places: Sequence[int], workers: int) -> Answer:
    """Fill the nodes in their order."""
    taken: dict[int, int] = {}
    for position, count in enumerate(places):
        if count:
            taken[position] = min(count, workers)
            workers -= taken[position]
            if not workers:
                return taken
    return None
