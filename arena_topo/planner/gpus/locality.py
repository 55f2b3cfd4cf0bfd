"""Tie-breakers between equally fast GPU sets: NUMA nodes, PCIe roots, alignment, NICs, links, positions."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from arena_topo.model.cluster.hardware import Gpu, LinkClass, LinkGraph
from arena_topo.planner.memo import Memo

SETS_KEPT = 1 << 16
"""How many sets of a machine are remembered: all of a machine with sixteen GPUs."""

Place = tuple[int | None, str, tuple[str, ...]]
"""NUMA node, PCIe root and nearest NICs of a GPU."""

Nearness = tuple[int, int, int]
"""The numbers of NUMA nodes and of PCIe roots that a set touches, and of GPUs in its aligned block."""
LastResort = tuple[int, float, tuple[int, ...]]
"""Nearest NICs and link bandwidth of a set (both negative), and its positions."""


def place_of(gpu: Gpu) -> Place:
    """Return where *gpu* sits."""
    # A socket stands for a NUMA node that is not known; less than 0, so that it is none of those that are.
    numa = gpu.numa if gpu.numa is not None or gpu.socket is None else -1 - gpu.socket
    return numa, gpu.pcie_root, gpu.nics


def positions_of(mask: int) -> tuple[int, ...]:
    """Return the positions in *mask*, lowest first.

    >>> positions_of(0b10110)
    (1, 2, 4)
    """
    if mask < 256:
        return _OF_BYTE[mask]
    if mask < 65536:
        return _OF_BYTE[mask & 255] + _OF_SECOND_BYTE[mask >> 8]
    positions = []
    while mask:
        lowest = mask & -mask
        positions.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(positions)


# Most machines have eight GPUs, and nearly all others sixteen at most.
_OF_BYTE = [tuple(i for i in range(8) if mask >> i & 1) for mask in range(256)]
_OF_SECOND_BYTE = [tuple(8 + i for i in positions) for positions in _OF_BYTE]


class Locality:
    """Orders equally fast sets of one machine; less is better.

    Where a switch joins all GPUs, and links do not distinguish sets, *blocks* of 2, 4, 8, ... neighbours count: a set
    should lie in a small block, and leave free blocks whole. Behind a switch for eight GPUs, the pair 2-3 lies in a block
    of two and the pair 1-2 only in the block 0-3 of four; taking 2 when 2, 4 and 5 are free leaves the block 4-5 whole.
    """

    def __init__(self, graph: LinkGraph, places: Sequence[Place]) -> None:
        """Take the links, and the places of the GPUs by position."""
        self._graph = graph
        self._places = places
        self._blocks = _aligned_blocks(graph)
        self._nearness = Memo(self._nearness_of, limit=SETS_KEPT)
        self._whole = Memo(self._whole_blocks, limit=SETS_KEPT)
        self._last_resort = Memo(self._last_resort_of, limit=SETS_KEPT)

    def nearness(self, mask: int) -> Nearness:
        """Return the numbers of NUMA nodes and PCIe roots that a set touches, and of GPUs in its block."""
        return self._nearness[mask]

    def whole_blocks(self, free: int) -> int:
        """Return how many GPUs the whole blocks within *free* have, each counted once in every block size."""
        return self._whole[free]

    def last_resort(self, mask: int) -> LastResort:
        """Return what decides in the end: more nearest NICs, more link bandwidth, lower positions."""
        return self._last_resort[mask]

    def served(self, mask: int) -> int:
        """Return how many GPUs of a set have a NIC of their own beside them.

        Of the GPUs 0 and 1 beside the NICs a and b, and GPU 2 beside c, all three have one; were there no b, two would.
        """
        beside = Counter(self._places[gpu][2] for gpu in positions_of(mask))
        return sum(min(gpus, len(nics)) for nics, gpus in beside.items())

    def interchangeable(self, a: int, b: int) -> bool:
        """Whether nothing but their numbers tells the places of *a* and *b* apart."""
        # The two GPUs of a block of two lie in the same larger blocks as well.
        return self._places[a] == self._places[b] and (not self._blocks or a // 2 == b // 2)

    def _nearness_of(self, mask: int) -> Nearness:
        places = [self._places[gpu] for gpu in positions_of(mask)]
        block = next((size for block, size in self._blocks if mask & ~block == 0), self._graph.size)
        # A root that is not known is not the root of any other GPU: switched machines show no roots at all, or only those
        # of the GPUs beside a NIC.
        roots = {root or f"gpu-{i}" for i, (_, root, _) in zip(positions_of(mask), places, strict=True)}
        return len({numa for numa, _, _ in places}), len(roots), block

    def _whole_blocks(self, free: int) -> int:
        return sum(size for block, size in self._blocks if block & ~free == 0)

    def _last_resort_of(self, mask: int) -> LastResort:
        members = positions_of(mask)
        nics = {nearest[:1] for _, _, nearest in (self._places[gpu] for gpu in members) if nearest}
        bandwidth = sum(self._graph.links[a][b].bandwidth for a, b in combinations(members, 2))
        return -len(nics), -round(bandwidth, 3), members


def _aligned_blocks(graph: LinkGraph) -> list[tuple[int, int]]:
    """Return the masks and sizes of the aligned blocks of a machine behind a switch, the smallest first."""
    kinds = {graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)}
    # Elsewhere the links themselves tell good sets from bad ones.
    if kinds != {LinkClass.NVSWITCH}:
        return []
    blocks, size = [(1 << gpu, 1) for gpu in range(graph.size)], 2
    while size <= graph.size:
        starts = range(0, graph.size - size + 1, size)
        blocks += [(((1 << size) - 1) << start, size) for start in starts]
        size *= 2
    return blocks
