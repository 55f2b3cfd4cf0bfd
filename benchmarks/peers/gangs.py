"""Rules by which others put a gang onto nodes, given how many workers each node takes.

Each answers with the workers of every node that it uses, by position in fabric order, or None where it finds no place.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from random import Random

from arena_topo.planner.nodes.fleet import Domain, Fleet

_START: Callable[[Domain], int] = attrgetter("start")
Answer = dict[int, int] | None
Rule = Callable[[Fleet, Sequence[int], int], Answer]


@dataclass(frozen=True, slots=True)
class _Place:
    """A domain or a node with its room."""

    level: int
    domain: Domain
    room: int


def _negative_room(place: _Place) -> int:
    return -place.room


def kueue_best_fit(fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Kueue's topology-aware scheduling, profile BestFit, with the node as its preferred level.

    From the closest level up, the smallest domain that holds the gang; where none does, the largest ones of the top
    level. Then downwards, level by level: the largest domains, and the smallest that takes what is left.
    Source: Kueue's documentation, "Topology Aware Scheduling", and KEP-2724.
    """
    tiers = _tiers(fleet)
    before = [0]
    for count in places:
        before.append(before[-1] + count)
    for level in range(len(tiers) - 1, -1, -1):
        fitting = [
            (room, at)
            for at, each in enumerate(tiers[level])
            if (room := before[each.end] - before[each.start]) >= workers
        ]
        if fitting:
            room, at = min(fitting)
            return dict(_descend(tiers, before, _Place(level, tiers[level][at], room), workers))
    return None


def _tiers(fleet: Fleet) -> list[Sequence[Domain]]:
    """Return the levels from the whole cluster down to the nodes, made once for each fleet."""
    kept: dict[str, list[Sequence[Domain]]] = fleet.kept("peers")
    if not kept:
        nodes = [Domain((node.name,), at, at + 1) for at, node in enumerate(fleet.nodes)]
        kept["tiers"] = [[fleet.cluster], *fleet.domains, nodes]
    return kept["tiers"]


def _descend(
    tiers: Sequence[Sequence[Domain]], before: Sequence[int], place: _Place, workers: int
) -> Iterator[tuple[int, int]]:
    if place.level == len(tiers) - 1:
        yield place.domain.start, workers
        return
    below = tiers[place.level + 1]
    first = bisect_left(below, place.domain.start, key=_START)
    last = bisect_left(below, place.domain.end, lo=first, key=_START)
    within = [
        _Place(place.level + 1, each, before[each.end] - before[each.start]) for each in below[first:last]
    ]
    children = sorted(within, key=lambda each: (-each.room, each.domain.start))
    for at, child in enumerate(children):
        rest = children[at:]
        if child.room >= workers:
            smallest = rest[bisect_right(rest, -workers, key=_negative_room) - 1]
            first_of_them = rest[bisect_left(rest, -smallest.room, key=_negative_room)]
            yield from _descend(tiers, before, first_of_them, workers)
            return
        if child.room:
            yield from _descend(tiers, before, child, child.room)
        workers -= child.room


def first_fit(_fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Fill the nodes in their order."""
    found: dict[int, int] = {}
    for at, room in enumerate(places):
        if room:
            found[at] = min(room, workers)
            workers -= found[at]
            if not workers:
                return found
    return None


def random_nodes(_fleet: Fleet, places: Sequence[int], workers: int) -> Answer:
    """Put each worker on any node with room, with a fixed seed."""
    chance = Random(workers)
    able = [at for at, room in enumerate(places) if room]
    found: dict[int, int] = {}
    for _ in range(workers):
        if not able:
            return None
        pick = chance.randrange(len(able))
        at = able[pick]
        found[at] = found.get(at, 0) + 1
        if found[at] == places[at]:
            able[pick] = able[-1]
            able.pop()
    return found


RULES: dict[str, Rule] = {
    "Kueue TAS best-fit": kueue_best_fit,
    "first fit": first_fit,
    "random": random_nodes,
}
