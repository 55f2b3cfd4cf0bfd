"""The predicted bus bandwidth of any set of GPUs of one machine."""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from math import inf

from arena_topo.model.cluster.hardware import Link, LinkGraph
from arena_topo.planner.gpus.bandwidth import BandwidthModel, Measured, usable_of_hop
from arena_topo.planner.gpus.canonical import canonical
from arena_topo.planner.gpus.islands import Members, Rule, is_proven, islands, rule_of

_PLACES = 3
"""Rates are rounded to MB/s, so that equal rates compare equal however they were computed."""


class SetRates:
    """Rates the sets of GPUs of a machine: measured, else by direct links, else by its slowest PCIe hop."""

    def __init__(self, graph: LinkGraph, machine: str, model: BandwidthModel) -> None:
        self._graph = graph
        self._measured = model.measured(machine)
        self._rule: dict[int, tuple[int, Rule]] = {}
        self._islands = islands(graph)
        for number, island in enumerate(self._islands):
            rule = rule_of(graph, island, machine, model)
            self._rule.update((member, (number, rule)) for member in island)
        pairs = combinations(range(graph.size), 2)
        hops = [
            usable_of_hop(link) for link in (graph.between(*pair) for pair in pairs) if _is_known_hop(link)
        ]
        self._slowest_hop = min(hops, default=0.0)

    @cached_property
    def proven(self) -> bool:
        """Whether no rate rests on a bound, or on a search for packings that ended early."""
        return all(is_proven(self._graph, island) for island in self._islands)

    def busbw(self, members: Members) -> float:
        """Return the busbw of the GPUs at the positions *members* in GB/s; 0 for fewer than two."""
        if len(members) < 2:
            return 0.0
        measured = _measured_busbw(self._measured, self._graph, members)
        return round(measured if measured is not None else self._predicted(members), _PLACES)

    def _predicted(self, members: Members) -> float:
        ruled = [self._rule.get(member) for member in members]
        first = ruled[0]
        if first and all(each and each[0] == first[0] for each in ruled):
            over_links = first[1](members)
            if over_links:
                return over_links
        return self._over_pcie(members)

    def _over_pcie(self, members: Members) -> float:
        """Return the rate of the slowest hop that a ring cannot avoid.

        That is the narrowest hop of the widest tree over *members*, in which direct links cost nothing; PCIe
        carries both directions at once, so going around the tree takes no hop twice the same way.
        """
        left, narrowest = set(members[1:]), inf
        width = {b: self._hop(members[0], b) for b in left}
        while left:
            widest = max(left, key=width.__getitem__)
            narrowest = min(narrowest, width[widest])
            left.remove(widest)
            for b in left:
                width[b] = max(width[b], self._hop(widest, b))
        if narrowest < inf:
            return narrowest
        hops = [self._hop(a, b) for a, b in combinations(members, 2)]
        return max((hop for hop in hops if hop < inf), default=0.0)

    def _hop(self, a: int, b: int) -> float:
        link = self._graph.links[a][b]
        if link.kind.is_direct:
            return inf
        return usable_of_hop(link) or self._slowest_hop


def _is_known_hop(link: Link) -> bool:
    return not link.kind.is_direct and link.bandwidth > 0


def _measured_busbw(measured: Measured | None, graph: LinkGraph, members: Members) -> float | None:
    if measured is None:
        return None
    if any(len(matrix) == len(members) for matrix, _ in measured.sets):
        words = [["X" if a == b else graph.between(a, b).label for b in members] for a in members]
        form = _form(words)
        for matrix, busbw in measured.sets:
            if len(matrix) == len(members) and _form(matrix) == form:
                return busbw
    return dict(measured.sizes).get(len(members))


def _form(words: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return a value that is equal for matrices of link words that differ in the numbering only."""
    known = sorted({word for row in words for word in row})
    number = {word: at for at, word in enumerate(known)}
    return tuple(known), canonical([[number[word] for word in row] for row in words]).rows
