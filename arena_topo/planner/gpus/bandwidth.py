"""What the planner assumes about bandwidth: usable rates of links, and the order of equally fast GPU sets.

Every figure is bus bandwidth as nccl-tests defines it, in GB/s (10^9 bytes, one direction), of large
all-reduces by NCCL 2.17 or later: since 2.8 it relays through member GPUs and uses its trees inside a node,
since 2.17 it reduces inside NVSwitches (NVLink SHARP).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from arena_topo.model.cluster import Gpu, Link, LinkClass, LinkGraph
from arena_topo.planner.memo import Memo

TREE_EFFICIENCY = 0.92
"""What NCCL's tuner leaves of a tree's bandwidth (``src/graph/tuning.cc``)."""

_USABLE = {
    LinkClass.NVLINK: 0.9,  # eight V100: 135.5 GB/s over six rings of 25; Ampere has ``_AMPERE_NVLINK``
    LinkClass.NVSWITCH: 0.9,  # only where a switch shows no uniform clique; else ``switched_busbw``
    LinkClass.BRIDGE: 208 / 300,  # two A100 PCIe over NV12
    LinkClass.XGMI: 48 / 64,  # MI300X, as RCCL counts
    LinkClass.C2C: 0.9,
}
_PCIE_USABLE = (
    8.0 / 8.3
)  # V100: 8 GB/s is the median of pairs over PCIe, 8.3 the nominal rate between sockets
# GB/s of one NVLink from the second to the fourth generation, for links whose rate is not known.
_NVLINK_RATE = 25.0


_AMPERE = re.compile(r"A(100|800)(?!\d)")
_AMPERE_NVLINK = 232 / 300
"""Of A100's twelve links, in any wiring: 232 GB/s behind switches, and 220 were measured on a mesh of
four (forums.developer.nvidia.com/t/224173, all-to-all)."""


def usable_of_one(link: Link, machine: str = "") -> float:
    """Return the usable rate of one of the direct links bundled in *link* in machines of the type *machine*.

    >>> usable_of_one(Link(LinkClass.NVLINK, 2, 50.0))
    22.5
    >>> round(12 * usable_of_one(Link(LinkClass.NVLINK, 4, 100.0), "4xA100-SXM4"))
    232
    """
    nominal = link.bandwidth / max(link.count, 1) or _NVLINK_RATE
    is_ampere = link.kind is LinkClass.NVLINK and _AMPERE.search(machine)
    return nominal * (_AMPERE_NVLINK if is_ampere else _USABLE[link.kind])


def usable_of_hop(link: Link) -> float:
    """Return the usable rate of a PCIe or CPU hop; 0 where the link is not known."""
    return link.bandwidth * _PCIE_USABLE


def direct_count(link: Link) -> int:
    """Return how many direct links *link* bundles."""
    return max(link.count, 1) if link.kind.is_direct else 0


@dataclass(frozen=True, slots=True)
class _Generation:
    """A generation of NVSwitches.

    ``usable`` is the share of the nominal bandwidth that rings reach, ``growth`` the factor that NVLink SHARP
    adds by the size of the set.
    """

    usable: float
    growth: Mapping[int, float] = field(default_factory=dict)


_HOPPER_GROWTH = {5: 420 / 370, 6: 440 / 370, 7: 460 / 370, 8: 480 / 370}
# How much of Hopper's growth eight B200 were measured to have, over the 40.1 GB/s that each of their 18 links
# reaches.
_BLACKWELL_SHARE = (830 / (18 * 40.1) - 1) / (480 / 370 - 1)
_UP_TO_AMPERE = _Generation(_AMPERE_NVLINK)
_HOPPER = _Generation(370 / 450, _HOPPER_GROWTH)
_BLACKWELL = _Generation(
    40.1 / 50, {size: 1 + (growth - 1) * _BLACKWELL_SHARE for size, growth in _HOPPER_GROWTH.items()}
)
_GENERATIONS = ((re.compile(r"G?B[23]00"), _BLACKWELL), (re.compile(r"G?H(20|100|200|800)\b"), _HOPPER))
# Both have 18 links per GPU; one link has 25 GB/s in Hopper and 50 GB/s in Blackwell.
_HOPPER_LINKS = 18
_BLACKWELL_LINK = 50.0


def switched_busbw(link: Link, size: int, machine: str) -> float:
    """Return the busbw of *size* GPUs that each reach the NVSwitches over *link*.

    *machine* is the machine type. Behind switches every set is as good as any other of its size: rings use
    all links of a GPU. From Hopper on the switches reduce (NVLink SHARP), which pays more the more GPUs take
    part. The rates are fitted to published nccl-tests: 8 x A100 232 GB/s; H100 370 over rings with 2 to 4
    GPUs, 420, 440, 460, 480 with 5 to 8; 8 x H800 215; 8 x B200 830, where only eight GPUs were measured and
    the growth below is taken to be proportional to Hopper's.

    >>> h100 = Link(LinkClass.NVSWITCH, 18, 450.0)
    >>> [round(switched_busbw(h100, size, "8xH100")) for size in (2, 4, 5, 8)]
    [370, 370, 420, 480]
    """
    generation = _generation(link, machine)
    # Nothing larger than eight GPUs was measured: a larger set gains as much as eight.
    growth = generation.growth.get(min(size, max(_HOPPER_GROWTH)), 1.0)
    return link.bandwidth * generation.usable * growth


def _generation(link: Link, machine: str) -> _Generation:
    for pattern, generation in _GENERATIONS:
        if pattern.search(machine):
            return generation
    # An unknown product: the number and the rate of its links tell the generation of its switches.
    if link.count < _HOPPER_LINKS:
        return _UP_TO_AMPERE
    return _BLACKWELL if link.bandwidth >= _HOPPER_LINKS * _BLACKWELL_LINK else _HOPPER


# Tie-breakers between equally fast GPU sets: NUMA nodes, PCIe roots, alignment, NICs, links, positions.

SETS_KEPT = 1 << 16
"""How many sets of a machine are remembered: all of a machine with sixteen GPUs."""

Place = tuple[int | None, str, tuple[str, ...]]
"""NUMA node, PCIe root and nearest NICs of a GPU."""

_Nearness = tuple[int, int, int]
"""The numbers of NUMA nodes and of PCIe roots that a set touches, and of GPUs in its aligned block."""
_LastResort = tuple[int, float, tuple[int, ...]]
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

    Where a switch joins all GPUs, and links do not distinguish sets, *blocks* of 2, 4, 8, ... neighbours
    count: a set should lie in a small block, and leave free blocks whole. Behind a switch for eight GPUs, the
    pair 2-3 lies in a block of two and the pair 1-2 only in the block 0-3 of four; taking 2 when 2, 4 and 5
    are free leaves the block 4-5 whole.
    """

    def __init__(self, graph: LinkGraph, places: Sequence[Place]) -> None:
        """Take the links, and the places of the GPUs by position."""
        self._graph = graph
        self._places = places
        self._blocks = _aligned_blocks(graph)
        self._nearness = Memo(self._nearness_of, limit=SETS_KEPT)
        self._whole = Memo(self._whole_blocks, limit=SETS_KEPT)
        self._last_resort = Memo(self._last_resort_of, limit=SETS_KEPT)

    def nearness(self, mask: int) -> _Nearness:
        """Return the numbers of NUMA nodes and PCIe roots that a set touches, and of GPUs in its block."""
        return self._nearness[mask]

    def whole_blocks(self, free: int) -> int:
        """Return how many GPUs the whole blocks within *free* have, each counted once in every block size."""
        return self._whole[free]

    def last_resort(self, mask: int) -> _LastResort:
        """Return what decides in the end: more nearest NICs, more link bandwidth, lower positions."""
        return self._last_resort[mask]

    def served(self, mask: int) -> int:
        """Return how many GPUs of a set have a NIC of their own next to them.

        Of the GPUs 0 and 1 next to the NICs a and b, and GPU 2 next to c, all three have one; were there no
        b, two would.
        """
        nearby = Counter(self._places[gpu][2] for gpu in positions_of(mask))
        return sum(min(gpus, len(nics)) for nics, gpus in nearby.items())

    def nics(self, mask: int) -> int:
        """Return how many NICs are nearest to a GPU of a set."""
        return len({nic for gpu in positions_of(mask) for nic in self._places[gpu][2]})

    def interchangeable(self, a: int, b: int) -> bool:
        """Whether the places of *a* and *b* differ only in their numbers."""
        # The two GPUs of a block of two lie in the same larger blocks as well.
        return self._places[a] == self._places[b] and (not self._blocks or a // 2 == b // 2)

    def _nearness_of(self, mask: int) -> _Nearness:
        places = [self._places[gpu] for gpu in positions_of(mask)]
        block = next((size for block, size in self._blocks if mask & ~block == 0), self._graph.size)
        # A root that is not known is not the root of any other GPU: switched machines show no roots at all,
        # or only those of the GPUs next to a NIC.
        roots = {root or f"gpu-{i}" for i, (_, root, _) in zip(positions_of(mask), places, strict=True)}
        return len({numa for numa, _, _ in places}), len(roots), block

    def _whole_blocks(self, free: int) -> int:
        return sum(size for block, size in self._blocks if block & ~free == 0)

    def _last_resort_of(self, mask: int) -> _LastResort:
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


# The order in which GPUs are handed to a job, so that neighbours in it are neighbours in a ring.
#
# NCCL searches its rings in the order in which the GPUs are visible, and finds better ones when that order is
# one.

# Eight GPUs have 5,040 rings from a given start.
_MOST_TRIED = 8
_INDIRECT = 100_000.0
"""What a hop without a direct link costs, in GB/s: more than the links of any ring together."""


class RingOrder:
    """Finds ring orders in one machine: most direct links, then most bandwidth, then lowest positions.

    Exact for up to eight GPUs; a larger ring is grown along the widest link at each step. Where links do not
    distinguish rings, GPUs of one NUMA node and of one PCIe root are neighbours.
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

        A ring that has spent so much that even *cheapest* hops to the end do not beat the best one so far is
        given up. Four GPUs with links 0-1, 1-2, 2-3 and 3-0 are tried as 0 1 2 3, which costs four links; 0 1
        3 2 is given up at its second hop, because the hop from 1 to 3 without a link costs more than any ring
        of links.
        """
        best: tuple[int, ...] = ()
        least = float("inf")

        def extend(ring: tuple[int, ...], left: Sequence[int], spent: float) -> None:
            nonlocal best, least
            row = self._costs[ring[-1]]
            if not left:
                # Rounded, so that the order in which hops are added up does not make one of two equal rings
                # cheaper.
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
    """Return *ring* rotated so that workers of *gpus* GPUs each keep the best links when it is cut.

    Workers that cannot see each other's GPUs exchange nothing over the hops that are cut. The ring 0 1 2 3
    with two links on the hops 1-2 and 3-0 and one on the others becomes 1 2 3 0: the workers 1-2 and 3-0 keep
    the double links. Of equally good cuts the one counts whose workers touch the fewest NUMA nodes, and then
    PCIe roots, of *places*.
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
