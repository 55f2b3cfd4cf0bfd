"""Islands: the groups of GPUs of a node that direct links connect, and the rule that rates the sets of each.

=====================  ======================================================================
switches               every set alike (``switched``)
a full mesh of XGMI    every GPU uses its links to the others: (k - 1) links
at most eight GPUs     rings, relayed rings and chains packed exactly (``packing``)
more                   an upper bound: the fewest links that any member has to the others
=====================  ======================================================================

A bridge is an island of two. Boxes with PCIe alone have none.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

from arena_topo.model.cluster.hardware import Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.bandwidth import TREE_EFFICIENCY, BandwidthModel, direct_count, usable_of_one
from arena_topo.planner.gpus.nvswitch import switched_busbw
from arena_topo.planner.gpus.packing.rings import NOTHING, Packing
from arena_topo.planner.gpus.packing.tables import MOST_PACKED, packings

Members = Sequence[int]
Rule = Callable[[Members], float]
"""From the positions of a set inside one island to its busbw, 0 where its direct links carry no collective."""


def islands(graph: LinkGraph) -> list[list[int]]:
    """Return the groups of at least two GPUs that direct links connect, each in order."""
    left, found = set(range(graph.size)), []
    while left:
        group, edge = set[int](), {min(left)}
        while edge:
            group |= edge
            edge = {b for a in edge for b in left if graph.between(a, b).kind.is_direct} - group
        left -= group
        if len(group) > 1:
            found.append(sorted(group))
    return found


def rule_of(graph: LinkGraph, island: Members, machine: str, model: BandwidthModel) -> Rule:
    """Return the rule by which sets of *island* are rated."""
    link = _common_link(graph, island)
    if link and link.kind is LinkClass.NVSWITCH:
        return lambda members: switched_busbw(link, len(members), machine, model)
    if link and link.kind is LinkClass.XGMI:
        each = direct_count(link) * usable_of_one(link)
        return lambda members: (len(members) - 1) * each
    packing = _packed(graph, island) if len(island) <= MOST_PACKED else _bounded(graph)
    return lambda members: _packed_busbw(packing(members), len(members), _slowest(graph, members), model)


def is_proven(graph: LinkGraph, island: Members) -> bool:
    """Whether the rates of *island* are what its rule says, and not bounds or packings that may not be the best."""
    if _common_link(graph, island):
        return True
    return len(island) <= MOST_PACKED and all(each.exact for each in packings(_counts(graph, island)))


def _common_link(graph: LinkGraph, island: Members) -> Link | None:
    """Return the link that joins any two GPUs of an island by a switch or in a mesh of XGMI, else None."""
    links = {graph.between(a, b) for a, b in combinations(island, 2)}
    link = links.pop()
    return link if not links and link.kind in {LinkClass.NVSWITCH, LinkClass.XGMI} else None


def _packed(graph: LinkGraph, island: Members) -> Callable[[Members], Packing]:
    table: list[Sequence[Packing]] = []
    place = {position: at for at, position in enumerate(island)}

    def packing(members: Members) -> Packing:
        if not table:  # only a set that is asked for pays for the table
            table.append(packings(_counts(graph, island)))
        return table[0][sum(1 << place[member] for member in members)]

    return packing


def _bounded(graph: LinkGraph) -> Callable[[Members], Packing]:
    def packing(members: Members) -> Packing:
        least = min(sum(direct_count(graph.links[a][b]) for b in members if a != b) for a in members)
        return Packing(least, least, 0, exact=False) if least and _joined(graph, members) else NOTHING

    return packing


def _packed_busbw(packing: Packing, size: int, each: float, model: BandwidthModel) -> float:
    if not model.relays:
        return packing.closed * each
    rings = packing.relayed * each
    chains = packing.chains * each * TREE_EFFICIENCY * 2 * (size - 1) / size
    return max(rings, chains)


def _counts(graph: LinkGraph, island: Members) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(0 if a == b else direct_count(graph.between(a, b)) for b in island) for a in island)


def _slowest(graph: LinkGraph, members: Members) -> float:
    """Return the usable rate of the slowest single link among *members*; every channel runs at its pace."""
    links = (graph.between(a, b) for a, b in combinations(members, 2))
    return min((usable_of_one(link) for link in links if link.kind.is_direct), default=0.0)


def _joined(graph: LinkGraph, members: Members) -> bool:
    left, edge = set(members[1:]), {members[0]}
    while edge and left:
        edge = {b for a in edge for b in left if graph.links[a][b].kind.is_direct}
        left -= edge
    return not left
