"""A good set of GPUs where there are too many to compare: grown from each GPU along the widest links."""

from collections.abc import Callable, Sequence

from arena_topo.model.cluster.hardware import LinkGraph


def grow(graph: LinkGraph, free: Sequence[int], k: int, busbw: Callable[[int], float]) -> int:
    """Return the mask of *k* of the positions *free*: the best by *busbw* of the sets grown from each of them."""
    sets = dict.fromkeys(_grown(graph, free, seed, k) for seed in free)
    return max(sets, key=busbw)


def _grown(graph: LinkGraph, free: Sequence[int], seed: int, k: int) -> int:
    left = {at: 0.0 for at in free if at != seed}
    mask, newest = 1 << seed, seed
    for _ in range(k - 1):
        row = graph.links[newest]
        for at in left:
            left[at] += row[at].bandwidth * (_DIRECT if row[at].kind.is_direct else 1)
        newest = max(left, key=lambda at: (left[at], -at))
        del left[newest]
        mask |= 1 << newest
    return mask


_DIRECT = 1000
"""Any direct link goes before any number of PCIe hops."""
