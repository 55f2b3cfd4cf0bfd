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

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations
from math import inf

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
from arena_topo.planner.gpus.packing.rings import NOTHING, Packing
from arena_topo.planner.gpus.packing.tables import MOST_PACKED, packings

_DECIMALS = 3
"""Rates are rounded to MB/s, so that equal rates compare equal however they were computed."""

Members = Sequence[int]
"""Positions of GPUs in ``GpuNode.gpus``."""
Rule = Callable[[Members], float]
"""From a set inside one island to its busbw, 0 where its direct links carry no collective."""


class SetRates:
    """Rates the sets of GPUs of a machine: as measured, else by direct links, else by the slowest PCIe hop."""

    def __init__(self, graph: LinkGraph, machine: str, model: BandwidthModel) -> None:
        """Take the links of the machine, its type, and what is assumed about bandwidth."""
        self._graph = graph
        self._measured = model.measured(machine)
        self._islands = [island for island in graph.islands() if len(island) > 1]
        self._island_of = {gpu: number for number, island in enumerate(self._islands) for gpu in island}
        self._packings = {
            number: _exact_packing(graph, island)
            for number, island in enumerate(self._islands)
            if len(island) <= MOST_PACKED and not _common_link(graph, island)
        }
        self._rules = [_rule(graph, island, machine, model) for island in self._islands]
        links = (graph.between(a, b) for a, b in combinations(range(graph.size), 2))
        self._slowest_hop = min((usable_of_hop(link) for link in links if _is_known_hop(link)), default=0.0)

    @cached_property
    def proven(self) -> bool:
        """Whether no rate rests on a bound, or on a search for packings that ended early."""
        return all(_is_proven(self._graph, island) for island in self._islands)

    def busbw(self, members: Members) -> float:
        """Return the busbw of the GPUs *members* in GB/s; 0 for fewer than two."""
        if len(members) < 2:
            return 0.0
        measured = _measured_busbw(self._measured, self._graph, members)
        return round(measured if measured is not None else self._predicted(members), _DECIMALS)

    def closed_rings(self, members: Members) -> int:
        """Return how many rings pass through each of *members* once over direct links; 0 where none is packed exactly.

        Behind switches, in full meshes and over PCIe sets of a size have equally many, so there they tell no sets apart.
        """
        islands = {self._island_of.get(gpu) for gpu in members}
        island = islands.pop()
        if islands or island is None or island not in self._packings:
            return 0
        return self._packings[island](members).closed

    def _predicted(self, members: Members) -> float:
        islands = {self._island_of.get(gpu) for gpu in members}
        island = islands.pop()
        # A set that reaches beyond one island, or holds a GPU without direct links, crosses PCIe in any case.
        if not islands and island is not None:
            # The links may join the set and still hold no channel, such as a chain of GPUs before NCCL 2.8.
            over_links = self._rules[island](members)
            if over_links:
                return over_links
        return self._over_pcie(members)

    def _over_pcie(self, members: Members) -> float:
        """Return the rate of the slowest hop that a ring cannot avoid.

        That is the narrowest hop of the widest tree over *members* (Prim's algorithm), in which direct links cost
        nothing; PCIe carries both directions at once, so going around the tree takes no hop twice the same way.

        Of four GPUs with 12 GB/s within the pairs 0-1 and 2-3 and 8 GB/s between the pairs, the tree takes both
        hops of 12 and one of 8: every ring crosses between the pairs, and runs at the pace of 8.
        """
        outside, narrowest = set(members[1:]), inf
        widest_to = {b: self._hop(members[0], b) for b in outside}
        while outside:
            nearest = max(outside, key=widest_to.__getitem__)
            narrowest = min(narrowest, widest_to[nearest])
            outside.remove(nearest)
            for b in outside:
                widest_to[b] = max(widest_to[b], self._hop(nearest, b))
        if narrowest < inf:
            return narrowest
        # Direct links join all members, but carry no collective: some hop goes over PCIe, the widest at best.
        hops = [self._hop(a, b) for a, b in combinations(members, 2)]
        return max((hop for hop in hops if hop < inf), default=0.0)

    def _hop(self, a: int, b: int) -> float:
        link = self._graph.links[a][b]
        if link.kind.is_direct:
            return inf
        # An unknown hop is as slow as the slowest one that is known: no bandwidth is assumed that may not be there.
        return usable_of_hop(link) or self._slowest_hop


def _is_known_hop(link: Link) -> bool:
    return not link.kind.is_direct and link.bandwidth > 0


def _measured_busbw(measured: Measured | None, graph: LinkGraph, members: Members) -> float | None:
    if measured is None:
        return None
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


def _rule(graph: LinkGraph, island: Members, machine: str, model: BandwidthModel) -> Rule:
    """Return the rule by which sets of *island* are rated."""
    link = _common_link(graph, island)
    if link and link.kind is LinkClass.NVSWITCH:
        return lambda members: switched_busbw(link, len(members), machine, model)
    if link and link.kind is LinkClass.XGMI:
        per_peer = direct_count(link) * usable_of_one(link)
        return lambda members: (len(members) - 1) * per_peer
    packing = _exact_packing(graph, island) if len(island) <= MOST_PACKED else _packing_bound(graph)
    return lambda members: _packed_busbw(packing(members), len(members), _slowest_link(graph, members), model)


def _is_proven(graph: LinkGraph, island: Members) -> bool:
    """Whether the rates of *island* are what its rule says, and not bounds or packings that may not be the best."""
    if _common_link(graph, island):
        return True
    return len(island) <= MOST_PACKED and all(packing.exact for packing in packings(_counts(graph, island)))


def _common_link(graph: LinkGraph, island: Members) -> Link | None:
    """Return the link that joins any two GPUs of an island through a switch or in a mesh of XGMI, else None."""
    links = {graph.between(a, b) for a, b in combinations(island, 2)}
    link = links.pop()
    return link if not links and link.kind in {LinkClass.NVSWITCH, LinkClass.XGMI} else None


def _exact_packing(graph: LinkGraph, island: Members) -> Callable[[Members], Packing]:
    counts = _counts(graph, island)
    bit = {gpu: 1 << place for place, gpu in enumerate(island)}
    return lambda members: packings(counts)[sum(bit[gpu] for gpu in members)]


def _packing_bound(graph: LinkGraph) -> Callable[[Members], Packing]:
    """Return upper bounds of packings: no more channels pass through a GPU than it has links."""

    def packing(members: Members) -> Packing:
        fewest = min(sum(direct_count(graph.links[a][b]) for b in members if a != b) for a in members)
        if not fewest or len(graph.islands(members)) > 1:
            return NOTHING
        return Packing(fewest, fewest, 0, exact=False)

    return packing


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


def _counts(graph: LinkGraph, island: Members) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(0 if a == b else direct_count(graph.between(a, b)) for b in island) for a in island)


def _slowest_link(graph: LinkGraph, members: Members) -> float:
    """Return the usable rate of the slowest single link among *members*; every channel runs at its pace."""
    links = (graph.between(a, b) for a, b in combinations(members, 2))
    return min((usable_of_one(link) for link in links if link.kind.is_direct), default=0.0)
