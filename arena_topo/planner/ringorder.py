"""The order in which GPUs are handed to a job, so that neighbours in it are neighbours in a ring.

NCCL searches its rings in the order in which the GPUs are visible, and finds better ones when that order is one.
"""

from collections.abc import Sequence
from itertools import pairwise, permutations

from arena_topo.model.hardware import LinkGraph

_MOST_TRIED = 8


def ring_order(graph: LinkGraph, members: Sequence[int]) -> tuple[int, ...]:
    """Return *members*, lowest first, as a ring: most direct links, then most bandwidth, then lowest positions.

    Exact for up to eight GPUs; a larger ring is grown along the widest link at each step.
    """
    if len(members) < 3 or _all_alike(graph, members):
        return tuple(members)
    if len(members) > _MOST_TRIED:
        return _grown(graph, members)
    first, *others = members
    rings = (
        (first, *rest)
        for rest in permutations(others)
        if rest[0] < rest[-1]  # each ring in one direction only
    )
    return min(rings, key=lambda ring: (_cost(graph, ring), ring))


def _cost(graph: LinkGraph, ring: Sequence[int]) -> tuple[int, float]:
    links = [graph.links[a][b] for a, b in pairwise((*ring, ring[0]))]
    indirect = sum(not link.kind.is_direct for link in links)
    return indirect, -round(sum(link.bandwidth for link in links), 3)


def _all_alike(graph: LinkGraph, members: Sequence[int]) -> bool:
    return len({graph.links[a][b] for a in members for b in members if a != b}) == 1


def _grown(graph: LinkGraph, members: Sequence[int]) -> tuple[int, ...]:
    ring, left = [members[0]], list(members[1:])
    while left:
        row = graph.links[ring[-1]]
        widest = max(left, key=lambda b: (row[b].kind.is_direct, row[b].bandwidth, -b))
        ring.append(widest)
        left.remove(widest)
    return tuple(ring)
