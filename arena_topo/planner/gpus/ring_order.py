"""The order in which GPUs are handed to a job, so that neighbours in it are neighbours in a ring.

NCCL searches its rings in the order in which the GPUs are visible, and finds better ones when that order is one.
"""

from collections.abc import Sequence

from arena_topo.model.cluster.hardware import Link, LinkGraph
from arena_topo.planner.gpus.locality import SETS_KEPT, Place, positions_of
from arena_topo.planner.memo import Memo

# Eight GPUs have 5,040 rings from a given start.
_MOST_TRIED = 8
_INDIRECT = 100_000.0
"""What a hop without a direct link costs, in GB/s: more than the links of any ring together."""


class RingOrder:
    """Finds ring orders in one machine: most direct links, then most bandwidth, then lowest positions.

    Exact for up to eight GPUs; a larger ring is grown along the widest link at each step. Where links do not distinguish rings,
    GPUs of one NUMA node and of one PCIe root are neighbours.
    """

    def __init__(self, graph: LinkGraph, places: Sequence[Place] = ()) -> None:
        """Take the links of the machine, and the places of its GPUs where they are known."""
        self._places = places
        self._costs = [[_cost(link) for link in row] for row in graph.links]
        self._rings: Memo[int, tuple[int, ...]] = Memo(
            lambda mask: self._find(positions_of(mask)), limit=SETS_KEPT
        )

    def of(self, mask: int) -> tuple[int, ...]:
        """Return the positions in *mask* as a ring, the lowest first."""
        return self._rings[mask]

    def _find(self, members: Sequence[int]) -> tuple[int, ...]:
        costs = {self._costs[a][b] for a in members for b in members if a < b}
        # Up to three GPUs make only one ring, and where all hops cost the same every ring is as good.
        if len(costs) == 1 and self._places:
            return self._by_place(members)
        if len(members) < 4 or len(costs) == 1:
            return tuple(members)
        return self._best(members, min(costs)) if len(members) <= _MOST_TRIED else self._grown(members)

    def _by_place(self, members: Sequence[int]) -> tuple[int, ...]:
        """Return *members* with those of one NUMA node together, and within it those of one root.

        With 0 and 2 on one NUMA node, 1 and 3 on another, the order is 0 2 1 3.
        """
        first_of: dict[object, int] = {}
        for gpu in members:
            numa, root, _ = self._places[gpu]
            first_of.setdefault(numa, gpu)
            first_of.setdefault((numa, root or gpu), gpu)

        def key(gpu: int) -> tuple[int, int, int]:
            numa, root, _ = self._places[gpu]
            return first_of[numa], first_of[numa, root or gpu], gpu

        return tuple(sorted(members, key=key))

    def _best(self, members: Sequence[int], cheapest: float) -> tuple[int, ...]:
        """Return the cheapest ring, of equally cheap ones the first in order, by branch and bound.

        A ring that has spent so much that even *cheapest* hops to the end do not beat the best one so far is given up.
        Four GPUs with links 0-1, 1-2, 2-3 and 3-0 are tried as 0 1 2 3, which costs four links; 0 1 3 2 is given up at
        its second hop, because the hop from 1 to 3 without a link costs more than any ring of links.
        """
        best: tuple[int, ...] = ()
        least = float("inf")

        def extend(ring: tuple[int, ...], left: Sequence[int], spent: float) -> None:
            nonlocal best, least
            row = self._costs[ring[-1]]
            if not left:
                # Rounded, so that the order in which hops are added up does not make one of two equal rings cheaper.
                if round(spent + row[ring[0]], 3) < least:
                    best, least = ring, round(spent + row[ring[0]], 3)
                return
            for gpu in left:
                cost = spent + row[gpu]
                if round(cost + cheapest * len(left), 3) < least:
                    extend((*ring, gpu), [other for other in left if other != gpu], cost)

        # A ring has no first GPU, so all of them are tried from the lowest.
        extend((members[0],), members[1:], 0.0)
        return best

    def _grown(self, members: Sequence[int]) -> tuple[int, ...]:
        ring, left = [members[0]], list(members[1:])
        while left:
            row = self._costs[ring[-1]]
            nearest = min(left, key=row.__getitem__)
            ring.append(nearest)
            left.remove(nearest)
        return tuple(ring)


def rotated_for_workers(
    graph: LinkGraph, ring: Sequence[int], gpus: int, places: Sequence[Place] = ()
) -> Sequence[int]:
    """Return *ring* rotated so that cutting it into workers of *gpus* GPUs keeps the best links within the workers.

    Workers that cannot see each other's GPUs exchange nothing over the hops that are cut. The ring 0 1 2 3 with two
    links on the hops 1-2 and 3-0 and one on the others becomes 1 2 3 0: the workers 1-2 and 3-0 keep the double links.
    Of equally good cuts the one counts whose workers touch the fewest NUMA nodes, and then PCIe roots, of *places*.
    """
    # Workers of one GPU cut every hop, and a single worker cuts none: no rotation is better than another.
    if not 1 < gpus < len(ring):
        return ring
    hops = [_cost(graph.between(ring[index - 1], gpu)) for index, gpu in enumerate(ring)]
    # Starting at index s cuts the hops before s, s + gpus, ...: the most expensive ones may be cut.
    rings = [(*ring[first:], *ring[:first]) for first in range(gpus)]
    start = max(
        range(gpus),
        key=lambda first: (round(sum(hops[first::gpus]), 3), *_kept_together(rings[first], gpus, places)),
    )
    return rings[start]


def _kept_together(ring: Sequence[int], gpus: int, places: Sequence[Place]) -> tuple[int, int]:
    """Return how many NUMA nodes and PCIe roots the workers touch that *ring* is cut into, both negative."""
    if not places:
        return 0, 0
    workers = [ring[start : start + gpus] for start in range(0, len(ring), gpus)]
    numa = sum(len({places[gpu][0] for gpu in worker}) for worker in workers)
    roots = sum(len({places[gpu][1] or gpu for gpu in worker}) for worker in workers)
    return -numa, -roots


def _cost(link: Link) -> float:
    return -link.bandwidth + (0.0 if link.kind.is_direct else _INDIRECT)
