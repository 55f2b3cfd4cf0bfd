"""Slices: every k pods of a role in one domain of a level, and every j of these k in one domain of a finer level.

Pods are indexed in fabric order, so that a role is sliced where each domain takes a whole number of slices. A rack with
places for 11 pods takes two slices of 4; a block whose racks take 11 and 7 pods takes three of them, though not four.

How many slices each domain takes is decided for the fewest nodes, and then the fewest domains, by dynamic programming over
the domains. Take nodes of four places, two in one rack and three in another, and six slices of two pods: the second rack
alone takes them on three nodes. Split over both they need three nodes too, and two racks, so they stay together.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.roles.board import Board, Seat

_MOST_STEPS = 20_000
_Parts = list[tuple[Domain, int]]
_Way = tuple[tuple[int, int], _Parts]
"""What a way costs, in nodes and in domains, and its parts."""
_NOTHING: _Way = ((0, 0), [])
_Slices = Sequence[tuple[int, int]]


def sliced(board: Board, seat: Seat, span: Domain, places: Sequence[int]) -> _Parts:
    """Return domains in *span* with the pods that each takes, whole slices of *seat*; none where there is no way.

    *places* are those of the nodes of *span*.
    """
    found = _Slicer.of(board, places, span.start).split(seat.slices, span, seat.role.pods)
    return found[1] if found else []


def sliceable(board: Board, seat: Seat, span: Domain) -> int:
    """Return how many pods of *seat* fit into *span* in whole slices."""
    if seat.whole == 1:
        return _Slicer(board, seat.capacity.places, seat.capacity.before, 0).most(seat.slices, span)
    places = [width // seat.whole * seat.whole for width in seat.capacity.places[span.start : span.end]]
    return _Slicer.of(board, places, span.start).most(seat.slices, span)


def sliceable_by_domain(board: Board, seat: Seat, level: int, domains: Sequence[Domain]) -> list[int]:
    """Return how many pods of *seat* fit into each of *domains* of *level* in whole slices."""
    if len(seat.slices) != 1 or seat.slices[0][1] >= level:
        return [sliceable(board, seat, domain) for domain in domains]
    # The parts that the slices keep to are added up once for the whole fleet.
    (pods, finer), before = seat.slices[0], seat.capacity.before
    if seat.whole > 1:
        places = (width // seat.whole * seat.whole for width in seat.capacity.places)
        before = list(accumulate(places, initial=0))
    parts = board.parts(finer, board.fleet.cluster)
    starts = [part.start for part in parts]
    held = ((before[part.end] - before[part.start]) // pods * pods for part in parts)
    kept = list(accumulate(held, initial=0))
    return [
        kept[bisect_left(starts, domain.end)] - kept[bisect_left(starts, domain.start)] for domain in domains
    ]


def fewest_nodes(places: Sequence[int], pods: int) -> int:
    """Return the least number of nodes with *places* that take so many *pods*, 0 where all of them do not.

    >>> fewest_nodes([2, 4, 1], 5)
    2
    """
    if max(places, default=0) >= pods:
        return 1
    for count, width in enumerate(sorted(places, reverse=True), 1):
        pods -= width
        if pods <= 0:
            return count
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class _Slicer:
    """Slices on nodes with ``places``, the first of which is at ``start``; ``before`` each node are so many places."""

    board: Board
    places: Sequence[int]
    before: Sequence[int]
    start: int

    @classmethod
    def of(cls, board: Board, places: Sequence[int], start: int) -> "_Slicer":
        return cls(board, places, list(accumulate(places, initial=0)), start)

    def most(self, slices: _Slices, span: Domain) -> int:
        """Return how many pods fit into *span* in whole *slices*, the coarsest first."""
        if not slices:
            return self.before[span.end - self.start] - self.before[span.start - self.start]
        (pods, level), *finer = slices
        return sum(self.most(finer, part) // pods * pods for part in self.board.parts(level, span))

    def split(self, slices: _Slices, span: Domain, pods: int) -> _Way | None:
        """Return the cheapest way to put *pods* into *span* in whole *slices*, None where there is none."""
        if not slices:
            count = fewest_nodes(self._of(span), pods)
            return ((count, 1), [(span, pods)]) if count else None
        (size, level), *finer = slices
        parts = [
            (part, most) for part in self.board.parts(level, span) if (most := self.most(finer, part) // size)
        ]
        wanted = pods // size
        if sum(most for _, most in parts) < wanted:
            return None
        # Each domain takes any number of slices, beside any number before it.
        if len(parts) * wanted * wanted > _MOST_STEPS:
            return self._widest_first(slices, parts, wanted)
        best: dict[int, _Way] = {0: _NOTHING}
        for part, most in parts:
            ways = {0: _NOTHING} | {
                count: way
                for count in range(1, min(most, wanted) + 1)
                if (way := self.split(finer, part, count * size))
            }
            extended: dict[int, _Way] = {}
            for placed, way in best.items():
                (nodes, domains), placed_parts = way
                for count, ((more_nodes, more_domains), added) in ways.items():
                    total = placed + count
                    # The counts ascend.
                    if total > wanted:
                        break
                    # Few ways are kept, and only their parts are put together.
                    cost = nodes + more_nodes, domains + more_domains
                    if total not in extended or cost < extended[total][0]:
                        extended[total] = cost, placed_parts + added
            best = extended
        return best.get(wanted)

    def _widest_first(self, slices: _Slices, parts: Sequence[tuple[Domain, int]], wanted: int) -> _Way | None:
        """Return the way that fills the domains with the most slices, and as the last the tightest that will do."""
        (size, _), *finer = slices
        left, way = sorted(parts, key=lambda part: (-part[1], part[0].start)), _NOTHING
        while wanted:
            entry = left[0]
            if entry[1] >= wanted:
                entry = next(other for other in reversed(left) if other[1] >= wanted)
            left.remove(entry)
            count = min(entry[1], wanted)
            added = self.split(finer, entry[0], count * size)
            if added is None:
                return None
            wanted, way = wanted - count, _joined(way, added)
        return way

    def _of(self, span: Domain) -> Sequence[int]:
        return self.places[span.start - self.start : span.end - self.start]


def _joined(way: _Way, added: _Way) -> _Way:
    return (way[0][0] + added[0][0], way[0][1] + added[0][1]), way[1] + added[1]
