"""What tells apart sets of GPUs that are equally fast: NUMA nodes, PCIe roots, alignment, NICs, links, numbers."""

from collections.abc import Sequence
from itertools import combinations

from arena_topo.model.cluster.hardware import Gpu, LinkClass, LinkGraph

Place = tuple[int | None, str, tuple[str, ...]]
"""NUMA node, PCIe root and nearest NICs of a GPU."""

Near = tuple[int, int, int]
Last = tuple[int, float, tuple[int, ...]]


def place_of(gpu: Gpu) -> Place:
    """Return where *gpu* sits."""
    return gpu.numa, gpu.pcie_root, gpu.nics


def positions_of(mask: int) -> tuple[int, ...]:
    """Return the positions in *mask*, lowest first."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)


class Locality:
    """Orders equally fast sets of one machine; less is better.

    Where a switch joins all GPUs, and links tell nothing, *blocks* of 2, 4, 8, ... neighbours count: a set should
    lie in a small one, and leave whole ones whole.
    """

    def __init__(self, graph: LinkGraph, places: Sequence[Place]) -> None:
        self._graph = graph
        self._places = places
        self._blocks = _aligned_blocks(graph)
        self._near: dict[int, Near] = {}
        self._last: dict[int, Last] = {}
        self._whole: dict[int, int] = {0: 0}

    def near(self, mask: int) -> Near:
        """Return the numbers of NUMA nodes and PCIe roots that a set touches, and of GPUs of its block."""
        known = self._near.get(mask)
        if known is None:
            places = [self._places[at] for at in positions_of(mask)]
            block = next((size for block, size in self._blocks if mask & ~block == 0), self._graph.size)
            known = len({place[0] for place in places}), len({place[1] for place in places}), block
            self._near[mask] = known
        return known

    def whole(self, free: int) -> int:
        """Return how many GPUs the whole blocks within *free* have, each counted once in every block size."""
        known = self._whole.get(free)
        if known is None:
            known = self._whole[free] = sum(size for block, size in self._blocks if block & ~free == 0)
        return known

    def last(self, mask: int) -> Last:
        """Return what decides at last: more nearest NICs, more link bandwidth, lower positions."""
        known = self._last.get(mask)
        if known is None:
            members = positions_of(mask)
            nics = {self._places[at][2][:1] for at in members if self._places[at][2]}
            links = sum(self._graph.links[a][b].bandwidth for a, b in combinations(members, 2))
            known = self._last[mask] = -len(nics), -round(links, 3), members
        return known

    def interchangeable(self, a: int, b: int) -> bool:
        """Whether nothing but their numbers tells the places of *a* and *b* apart."""
        return self._places[a] == self._places[b] and (not self._blocks or a // 2 == b // 2)


def _aligned_blocks(graph: LinkGraph) -> list[tuple[int, int]]:
    kinds = {graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)}
    if kinds != {LinkClass.NVSWITCH}:
        return []
    blocks, size = [(1 << at, 1) for at in range(graph.size)], 2
    while size <= graph.size:
        whole = range(0, graph.size - size + 1, size)
        blocks += [(((1 << size) - 1) << start, size) for start in whole]
        size *= 2
    return blocks
