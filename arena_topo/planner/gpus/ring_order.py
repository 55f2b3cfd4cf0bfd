"""The order in which GPUs are handed to a job, so that neighbours in it are neighbours in a ring.

NCCL searches its rings in the order in which the GPUs are visible, and finds better ones when that order is one.
"""

from collections.abc import Sequence

from arena_topo.model.cluster.hardware import Link, LinkGraph
from arena_topo.planner.gpus.locality import positions_of

_MOST_TRIED = 8
_INDIRECT = 100_000.0
"""What a hop without a direct link costs, in GB/s: more than the links of any ring together."""


class RingOrder:
    """Finds ring orders in one machine: most direct links, then most bandwidth, then lowest positions.

    Exact for up to eight GPUs; a larger ring is grown along the widest link at each step.
    """

    def __init__(self, graph: LinkGraph) -> None:
        self._costs = [[_cost(link) for link in row] for row in graph.links]
        self._known: dict[int, tuple[int, ...]] = {}

    def of(self, mask: int) -> tuple[int, ...]:
        """Return the positions in *mask* as a ring, the lowest first."""
        known = self._known.get(mask)
        if known is None:
            known = self._known[mask] = self._find(positions_of(mask))
        return known

    def _find(self, members: Sequence[int]) -> tuple[int, ...]:
        hops = {self._costs[a][b] for a in members for b in members if a < b}
        if len(members) < 4 or len(hops) == 1:
            return tuple(members)
        return self._best(members, min(hops)) if len(members) <= _MOST_TRIED else self._grown(members)

    def _best(self, members: Sequence[int], cheapest: float) -> tuple[int, ...]:
        """Return the cheapest ring, of equally cheap ones the first in order, by branch and bound."""
        best: tuple[int, ...] = ()
        least = float("inf")

        def go(ring: tuple[int, ...], left: Sequence[int], spent: float) -> None:
            nonlocal best, least
            row = self._costs[ring[-1]]
            if not left:
                if round(spent + row[ring[0]], 3) < least:
                    best, least = ring, round(spent + row[ring[0]], 3)
                return
            for at in left:
                cost = spent + row[at]
                if round(cost + cheapest * len(left), 3) < least:
                    go((*ring, at), [each for each in left if each != at], cost)

        go((members[0],), members[1:], 0.0)
        return best

    def _grown(self, members: Sequence[int]) -> tuple[int, ...]:
        ring, left = [members[0]], list(members[1:])
        while left:
            row = self._costs[ring[-1]]
            nearest = min(left, key=row.__getitem__)
            ring.append(nearest)
            left.remove(nearest)
        return tuple(ring)


def cut(graph: LinkGraph, ring: Sequence[int], each: int) -> Sequence[int]:
    """Return *ring* begun where cutting it into pieces of *each* positions keeps the best links within the pieces.

    Workers that cannot see each other's GPUs exchange nothing over the hops that are cut.
    """
    if not 1 < each < len(ring):
        return ring
    hops = [_cost(graph.between(ring[at - 1], position)) for at, position in enumerate(ring)]
    start = max(range(each), key=lambda first: round(sum(hops[first::each]), 3))
    return (*ring[start:], *ring[:start])


def _cost(link: Link) -> float:
    return -link.bandwidth + (0.0 if link.kind.is_direct else _INDIRECT)
