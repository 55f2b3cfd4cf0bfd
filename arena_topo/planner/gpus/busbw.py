"""The predicted bus bandwidth of any set of GPUs of one machine.

A set inside one *island*, a group of GPUs that direct links connect, is rated by the rule of its island:

=====================  ======================================================================
switches               every set of a size alike (``switched_busbw``)
a full mesh of XGMI    every GPU uses its links to the others: (k - 1) links
at most eight GPUs     rings, relayed rings and chains packed exactly (``packing``)
more                   an upper bound: the fewest links that any member has to the others
=====================  ======================================================================

Any other set talks over PCIe. A bridge is an island of two; boxes with PCIe alone have no islands.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import inf
from operator import getitem

from arena_topo.model.cluster.hardware import Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.bandwidth import (
    TREE_EFFICIENCY,
    BandwidthModel,
    Measured,
    direct_count,
    switched_busbw,
    usable_of_hop,
    usable_of_one,
)
from arena_topo.planner.gpus.canonical import canonical
from arena_topo.planner.gpus.every_set import fewest_of_every_set, joined_of_every_set
from arena_topo.planner.gpus.locality import positions_of
from arena_topo.planner.gpus.packing.rings import Packing
from arena_topo.planner.gpus.packing.tables import MOST_PACKED, packings
from arena_topo.planner.gpus.set_values import byte_tables

_DECIMALS = 3
"""Rates are rounded to MB/s, so that equal rates compare equal however they were computed."""

_TABLED = 64
"""The most GPUs whose links are summed beforehand."""

Members = Sequence[int]
"""Positions of GPUs in ``GpuNode.gpus``."""


class SetRates:
    """Rates the sets of GPUs of a machine: as measured, else by direct links, else by the slowest PCIe hop.

    A set is a mask with bit i for position i.
    """

    def __init__(self, graph: LinkGraph, machine: str, model: BandwidthModel) -> None:
        """Take the links of the machine, its type, and what is assumed about bandwidth."""
        self._graph = graph
        self._measured = model.measured(machine)
        links = _DirectLinks(graph)
        self._islands = [
            _Island(graph, links, members, machine, model) for members in graph.islands() if len(members) > 1
        ]
        pairs = (graph.between(a, b) for a, b in combinations(range(graph.size), 2))
        slowest = min((usable_of_hop(link) for link in pairs if _is_known_hop(link)), default=0.0)
        # An unknown hop is as slow as the slowest one that is known: no bandwidth is assumed that may not be there.
        # Direct links cost a ring nothing.
        self._hops = [
            [inf if link.kind.is_direct else usable_of_hop(link) or slowest for link in row]
            for row in graph.links
        ]
        rates = sorted({hop for a, row in enumerate(self._hops) for b, hop in enumerate(row) if a != b})
        # Hops of the slowest rate or more join every set.
        self._narrowest = rates[0] if rates else 0.0
        self._adjacent_by_rate = [
            (rate, [sum(1 << b for b, hop in enumerate(row) if hop >= rate) for row in self._hops])
            for rate in rates[1:]
        ]

    @cached_property
    def proven(self) -> bool:
        """Whether no rate rests on a bound, or on a search for packings that ended early."""
        return all(island.is_proven() for island in self._islands)

    def busbw(self, mask: int) -> float:
        """Return the busbw of the set *mask* in GB/s; 0 for fewer than two."""
        if mask & (mask - 1) == 0:
            return 0.0
        measured = _measured_busbw(self._measured, self._graph, mask) if self._measured else None
        return round(measured if measured is not None else self._predicted(mask), _DECIMALS)

    def every_busbw(self) -> list[float]:
        """Return the busbw of every set by its mask; on a mesh of more GPUs than are packed, all at once."""
        masks, island = range(1 << self._graph.size), self._islands[0] if self._islands else None
        per_link = island.per_link() if island and not self._measured else 0.0
        if not island or not per_link or island.mask != masks[-1]:
            return [self.busbw(mask) for mask in masks]
        fewest, joined = island.fewest_of_every_set()
        over_links = [round(count * per_link, _DECIMALS) for count in range(max(fewest) + 1)]
        return [
            over_links[count] if count and is_joined else self.busbw(mask)
            for mask, count, is_joined in zip(masks, fewest, joined, strict=True)
        ]

    def closed_rings(self, mask: int) -> int:
        """Return how many rings pass through each GPU of *mask* once over direct links; 0 where none is packed exactly.

        Behind switches, in full meshes and over PCIe sets of a size have equally many, so there they do not distinguish sets.
        """
        for island in self._islands:
            if not mask & ~island.mask:
                return island.closed_rings(mask)
        return 0

    def _predicted(self, mask: int) -> float:
        for island in self._islands:
            # The links may join the set and still hold no channel, such as a chain of GPUs before NCCL 2.8.
            if not mask & ~island.mask and (over_links := island.busbw(mask)):
                return over_links
        # A set that reaches beyond one island, or holds a GPU without direct links, crosses PCIe in any case.
        return self._over_pcie(mask)

    def _over_pcie(self, mask: int) -> float:
        """Return the rate of the slowest hop that a ring cannot avoid.

        That is the narrowest hop of the widest tree over the set, in which direct links cost nothing; PCIe carries both
        directions at once, so going around the tree takes no hop twice the same way. It is found from the slowest rate
        up: hops of one rate or more join the set, or some hop is narrower.

        Of four GPUs with 12 GB/s within the pairs 0-1 and 2-3 and 8 GB/s between the pairs, hops of 12 leave the pairs
        apart and hops of 8 join them: every ring crosses between the pairs, and runs at the pace of 8.
        """
        narrowest = self._narrowest
        for rate, adjacent in self._adjacent_by_rate:
            if not joined(mask, adjacent):
                return narrowest
            narrowest = rate
        if narrowest < inf:
            return narrowest
        # Direct links join all members, but carry no collective: some hop goes over PCIe, the widest at best.
        crossing = [self._hops[a][b] for a, b in combinations(positions_of(mask), 2)]
        return max((hop for hop in crossing if hop < inf), default=0.0)


def joined(mask: int, adjacent: Sequence[int]) -> bool:
    """Whether the GPUs of *mask* are connected among themselves; *adjacent* has the neighbours of each as a mask.

    >>> joined(0b0111, [0b0010, 0b0101, 0b0010, 0])  # the chain 0-1-2
    True
    >>> joined(0b0101, [0b0010, 0b0101, 0b0010, 0])  # its ends alone
    False
    """
    frontier = mask & -mask
    unvisited = mask ^ frontier
    while frontier and unvisited:
        gpu = frontier.bit_length() - 1
        reached = adjacent[gpu] & unvisited
        unvisited ^= reached
        frontier ^= 1 << gpu | reached
    return not unvisited


def _is_known_hop(link: Link) -> bool:
    return not link.kind.is_direct and link.bandwidth > 0


def _measured_busbw(measured: Measured, graph: LinkGraph, mask: int) -> float | None:
    members = positions_of(mask)
    # A measurement of such a set goes before one of all sets of its size. Canonical forms are slow to compute, so a set
    # of another size is ruled out first.
    if any(len(matrix) == len(members) for matrix, _ in measured.sets):
        words = [["X" if a == b else graph.between(a, b).label for b in members] for a in members]
        form = _form(words)
        for matrix, busbw in measured.sets:
            if len(matrix) == len(members) and _form(matrix) == form:
                return busbw
    return dict(measured.sizes).get(len(members))


def _form(words: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return a value that is equal for matrices of link words that differ only in how the GPUs are numbered."""
    legend = sorted({word for row in words for word in row})
    number = {word: index for index, word in enumerate(legend)}
    return tuple(legend), canonical([[number[word] for word in row] for row in words]).rows


class _Island:
    """A group of GPUs that direct links connect, and the rule by which its sets are rated."""

    def __init__(
        self, graph: LinkGraph, links: "_DirectLinks", members: Members, machine: str, model: BandwidthModel
    ) -> None:
        self.mask = sum(1 << gpu for gpu in members)
        self._links = links
        self._machine = machine
        self._model = model
        pairs = {graph.between(a, b) for a, b in combinations(members, 2)}
        link = pairs.pop()
        # A switch, or a full mesh of XGMI, joins any two GPUs by the same link.
        is_uniform = not pairs and link.kind in {LinkClass.NVSWITCH, LinkClass.XGMI}
        self._uniform = link if is_uniform else None
        self._members = members
        self._graph = graph
        self._packs = not is_uniform and len(members) <= MOST_PACKED

    @cached_property
    def _packings(self) -> Mapping[int, Packing]:
        """The exact packing of every set."""
        masks, between = [0], self._graph.between
        for gpu in self._members:
            masks += [mask | 1 << gpu for mask in masks]
        counts = tuple(
            tuple(0 if a == b else direct_count(between(a, b)) for b in self._members) for a in self._members
        )
        return dict(zip(masks, packings(counts), strict=True))

    def busbw(self, mask: int) -> float:
        """Return the rate of a set inside the island, 0 where its direct links carry no collective."""
        link, size = self._uniform, mask.bit_count()
        if link and link.kind is LinkClass.NVSWITCH:
            return switched_busbw(link, size, self._machine, self._model)
        if link:
            return (size - 1) * direct_count(link) * usable_of_one(link)
        if self._packs:
            return _packed_busbw(self._packings[mask], size, self._links.slowest(mask), self._model)
        # No more channels pass through a GPU than it has links, so that the fewest of any member bound the set.
        fewest = self._links.fewest(mask)
        return fewest * self._links.slowest(mask) if fewest and self._links.join(mask) else 0.0

    def per_link(self) -> float:
        """Return the rate of a link where sets are bounded by their links, all of one rate; else 0."""
        return 0.0 if self._uniform or self._packs else self._links.even_rate()

    def fewest_of_every_set(self) -> tuple[list[int], bytes]:
        """Return, by mask, the fewest links of any member to the others, and whether direct links connect them."""
        return self._links.fewest_of_every_set()

    def closed_rings(self, mask: int) -> int:
        """Return how many closed rings a set has, 0 where sets are not packed exactly."""
        return self._packings[mask].closed if self._packs else 0

    def is_proven(self) -> bool:
        """Whether the rates are what the rule says, and not bounds or packings that may not be the best."""
        if self._uniform:
            return True
        return self._packs and all(packing.exact for packing in self._packings.values())


class _DirectLinks:
    """The direct links of a machine: a mesh of 16 GPUs has 65,536 sets to look at, and few sets of 256 GPUs are."""

    def __init__(self, graph: LinkGraph) -> None:
        size = range(graph.size)
        self._counts = [
            [0 if a == b else direct_count(link) for b, link in enumerate(row)]
            for a, row in enumerate(graph.links)
        ]
        # Sums for each eight GPUs at once; of many GPUs they would take hundreds of megabytes.
        self._sums = [byte_tables(counts) for counts in self._counts] if graph.size <= _TABLED else []
        self._bytes = -(-graph.size // 8)
        self._adjacent = [sum(1 << b for b in size if counts[b]) for counts in self._counts]
        self._rates = [
            [usable_of_one(link) if link.kind.is_direct else inf for link in row] for row in graph.links
        ]
        self._slowest = min(map(min, self._rates), default=inf)
        self._is_even = {rate for row in self._rates for rate in row} <= {self._slowest, inf}

    def fewest(self, mask: int) -> int:
        """Return the number of links to the others that the one of *mask* with the fewest has."""
        members = positions_of(mask)
        if not self._sums:
            return min(sum(map(self._counts[gpu].__getitem__, members)) for gpu in members)
        sums, parts = self._sums, mask.to_bytes(self._bytes, "little")
        return min([sum(map(getitem, sums[gpu], parts)) for gpu in members])

    def join(self, mask: int) -> bool:
        """Whether direct links within *mask* connect all of it."""
        return joined(mask, self._adjacent)

    def even_rate(self) -> float:
        """Return the usable rate of every link, 0 where they differ."""
        return self._slowest if self._is_even and self._slowest < inf else 0.0

    def fewest_of_every_set(self) -> tuple[list[int], bytes]:
        """Return ``fewest`` and ``join`` of every set by its mask."""
        return fewest_of_every_set(self._counts), joined_of_every_set(self._adjacent)

    def slowest(self, mask: int) -> float:
        """Return the usable rate of the slowest single link within *mask*; every channel runs at its pace."""
        # Where all links have one rate, so do those of the set; without a link it has no channel that would use it.
        if self._is_even:
            return self._slowest
        members = positions_of(mask)
        slowest = min(min(map(self._rates[gpu].__getitem__, members)) for gpu in members)
        return slowest if slowest < inf else 0.0


def _packed_busbw(packing: Packing, size: int, link_rate: float, model: BandwidthModel) -> float:
    """Return the busbw of *size* GPUs over the channels of *packing*, each at *link_rate*.

    A chain is a tree with one GPU per level: its algorithm bandwidth is ``TREE_EFFICIENCY`` of a link, and bus bandwidth
    is 2 (k - 1) / k times that.

    >>> four_v100 = Packing(closed=0, relayed=2, chains=2)
    >>> round(_packed_busbw(four_v100, 4, 22.5, BandwidthModel()), 2)  # 2 chains x 22.5 x 0.92 x 6/4 > 2 rings x 22.5
    62.1
    >>> _packed_busbw(four_v100, 4, 22.5, BandwidthModel(nccl=(2, 7)))  # only closed rings count before NCCL 2.8
    0.0
    """
    if not model.relays:
        return packing.closed * link_rate
    rings = packing.relayed * link_rate
    chains = packing.chains * link_rate * TREE_EFFICIENCY * 2 * (size - 1) / size
    return max(rings, chains)
