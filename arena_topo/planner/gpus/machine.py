"""One kind of node, and the best set of k GPUs among those that are free in it.

Sets are compared by, in this order: predicted bus bandwidth of the whole set; for a gang over several nodes,
GPUs with a NIC of their own next to them; whether there is a closed ring; what the GPUs that stay free lose
in value (``set_values``); the number of closed rings; NUMA nodes, PCIe roots, alignment, NICs, link bandwidth
(``locality``); lowest positions. Every set is compared, or one of those that differ by interchangeable GPUs
only (``ranking``).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, combinations, groupby, islice
from math import inf

from arena_topo.model.cluster import Gpu, GpuNode, Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.bandwidth import (
    SETS_KEPT,
    Locality,
    Place,
    RingOrder,
    place_of,
    positions_of,
)
from arena_topo.planner.gpus.busbw import SetRates, SetValues
from arena_topo.planner.gpus.packing import Matrix, twins
from arena_topo.planner.memo import Memo

# The sets of GPUs of a node with which the kubelet admits the workers of a gang, and how the workers share
# them.


@dataclass(frozen=True, slots=True)
class ZoneRule:
    """How many GPUs of each NUMA node a gang may take.

    ``zones`` are the positions on each NUMA node, as bits, and ``most`` are as many numbers of GPUs. Where
    ``shares`` is empty every worker's ``gpus`` lie on one NUMA node: of each a multiple of them may be taken,
    up to its most. Else ``shares`` are what each worker gets of each NUMA node, and ``most`` is their sum,
    which is taken exactly.

    Two workers of two GPUs may take 0-1 and 4-5, or four of one side, of eight GPUs on two NUMA nodes:

    >>> rule = ZoneRule(zones=(0b00001111, 0b11110000), most=(4, 4), gpus=2)
    >>> [rule.allows(mask) for mask in (0b00110011, 0b00001111, 0b00010111)]
    [True, True, False]
    """

    zones: tuple[int, ...]
    most: tuple[int, ...]
    gpus: int
    shares: tuple[tuple[int, ...], ...] = ()

    def allows(self, mask: int) -> bool:
        """Whether the kubelet admits workers that together get the set *mask*."""
        counts = [(mask & zone).bit_count() for zone in self.zones]
        if self.shares:
            return tuple(counts) == self.most
        return all(
            count <= most and count % self.gpus == 0 for count, most in zip(counts, self.most, strict=True)
        )

    def first(self, free: int, k: int) -> int:
        """Return an allowed set of *k* of the GPUs *free*, from the first of the NUMA nodes with most."""
        mask = 0
        for zone, most in sorted(zip(self.zones, self.most, strict=True), key=lambda entry: -entry[1]):
            taken = most if self.shares else min(most, k - mask.bit_count())
            mask |= sum(1 << position for position in positions_of(free & zone)[:taken])
        return mask

    def cut(self, ring: Sequence[int]) -> tuple[int, ...]:
        """Return *ring*, positions of an allowed set, cut into shares that the kubelet can give.

        The ring 0 4 1 5 of the example becomes 0 1 4 5: one worker on each NUMA node.
        """
        sides = [[position for position in ring if zone >> position & 1] for zone in self.zones]
        if not self.shares:
            parts = [
                side[start : start + self.gpus] for side in sides for start in range(0, len(side), self.gpus)
            ]
            parts.sort(key=lambda part: ring.index(part[0]))
            return tuple(chain.from_iterable(parts))
        left = list(map(iter, sides))
        return tuple(
            position
            for share in self.shares
            for side, count in zip(left, share, strict=True)
            for position in islice(side, count)
        )


# Which set of k free GPUs is the best, and which comes second.
#
# Every set is compared, or one of those that differ by interchangeable GPUs only. Where these are still too
# many, a good set is grown instead, GPU by GPU.

# Eight GPUs have 256 sets: rating all of them once is cheaper than grouping them by kind each time.
_SMALL = 8
_MOST_COMPARED = 20_000
_MOST_GPUS_COMPARED = 2_200_000
"""GPUs of the machine, counted once for each set: sets of a large machine take longer to compare."""
_DIRECT_WEIGHT = 1000
"""Any direct link goes before any number of PCIe hops."""
_MOST_WIDENED = 1_000_000
"""Links that are added up while sets are grown. That is enough to grow one from each of a hundred GPUs."""


@dataclass(frozen=True, slots=True)
class IsolatedPods:
    """How pods exchange that do not see each other's GPUs: over the NICs nearest to these, also on one node.

    ``nic`` is what each of those NICs gives a pod in GB/s; links count inside a pod, where it ``has_links``.
    """

    nic: float
    has_links: bool

    def rate(self, nics: int, busbw: float) -> float:
        """Return a pod's rate in GB/s for a set with so many *nics* near and *busbw* over its links."""
        inside = busbw if self.has_links else inf
        return round(min(nics * self.nic, inside), _DECIMALS) if nics else inside


_DECIMALS = 3
"""Rates are rounded to MB/s, so that equal rates compare equal however they were computed."""

_Rated = tuple[float, int]
"""The busbw of a set, negative so that less is better, and its mask."""


class _Ranking:
    """Compares the sets of one machine by the whole objective.

    For up to eight GPUs every set is compared, sorted by busbw once; for more, one set of each kind.
    """

    def __init__(
        self,
        values: SetValues,
        locality: Locality,
        closed_rings: Callable[[int], int],
        kinds: Sequence[Sequence[int]],
        size: int,
    ) -> None:
        """Take what sets are compared by, and the classes of interchangeable GPUs in order of position."""
        self._values = values
        self._locality = locality
        self._closed_rings = closed_rings
        self._kinds = kinds
        self._small = size <= _SMALL
        self._most_compared = min(_MOST_COMPARED, _MOST_GPUS_COMPARED // max(size, 1))
        self._sorted: Memo[int, list[_Rated]] = Memo(
            lambda k: self._rated(_combinations_of(kinds, k)), limit=_SMALL
        )

    def can_compare(self, free: int, k: int) -> bool:
        """Whether there are few enough sets of *k* GPUs among *free*."""
        return self._small or _count_of_each_kind(self._kinds, free, k) <= self._most_compared

    def two_best(
        self,
        free: int,
        k: int,
        *,
        across_nodes: bool = False,
        isolated: IsolatedPods | None = None,
        rule: ZoneRule | None = None,
    ) -> tuple[int, int | None]:
        """Return the best and the second best set of *k* GPUs among *free*, None where there is only one.

        *across_nodes*: the set belongs to a gang over several nodes. Only sets that *rule* allows count.
        """
        if self._small:
            rated = [(rate, mask) for rate, mask in self._sorted[k] if mask & ~free == 0]
        else:
            rated = self._rated(_one_of_each_kind(self._kinds, free, k))
        if rule:
            # Interchangeable GPUs are on one NUMA node, so that all sets of a kind are allowed, or none.
            rated = [(rate, mask) for rate, mask in rated if rule.allows(mask)]
        if isolated:
            across_nodes = True
            rated = sorted((-isolated.rate(self._locality.nics(mask), -rate), mask) for rate, mask in rated)
        best: list[int] = []
        # Tie-breakers are slow to compute, so only the sets that share the highest rates get them.
        for _, equally_fast in groupby(rated, key=lambda entry: entry[0]):
            masks = sorted(
                (mask for _, mask in equally_fast),
                key=lambda mask: self._tie_breakers(free, mask, across_nodes=across_nodes),
            )
            best += masks[: 2 - len(best)]
            if len(best) == 2:
                return best[0], best[1]
        return best[0], None

    def _rated(self, masks: Iterator[int]) -> list[_Rated]:
        return sorted((-self._values.busbw(mask), mask) for mask in masks)

    def _tie_breakers(self, free: int, mask: int, *, across_nodes: bool) -> tuple[object, ...]:
        left = free ^ mask
        return (
            # Between nodes the NICs carry everything: one for each GPU is worth more than what stays free.
            -self._locality.served(mask) if across_nodes else 0,
            # Older versions of NCCL, and its low-latency protocols, use only closed rings: without any they
            # leave the links, which no set of the rest makes up for.
            not self._closed_rings(mask),
            -self._values.value(left),
            -self._closed_rings(mask),
            self._locality.nearness(mask),
            -self._locality.whole_blocks(left),
            self._locality.last_resort(mask),
        )


def _combinations_of(kinds: Sequence[Sequence[int]], k: int) -> Iterator[int]:
    """Yield every set of *k* GPUs of the machine."""
    positions = sorted(gpu for kind in kinds for gpu in kind)
    return (sum(1 << gpu for gpu in chosen) for chosen in combinations(positions, k))


def _one_of_each_kind(kinds: Sequence[Sequence[int]], free: int, k: int) -> Iterator[int]:
    """Yield sets of *k* GPUs among *free*: of those that differ by interchangeable GPUs, the lowest.

    With the kinds 0-1-2 and 3-4, all free, one set of each kind stands for the ten pairs:

    >>> [f"{mask:05b}" for mask in _one_of_each_kind([[0, 1, 2], [3, 4]], 0b11111, 2)]
    ['11000', '01001', '00011']
    """
    lowest = [_lowest_sets(free, kind) for kind in kinds]
    most_from = [0]  # at [i]: how many GPUs the kinds from i on have
    for sets in reversed(lowest):
        most_from.append(most_from[-1] + len(sets) - 1)
    most_from.reverse()

    def extend(kind: int, missing: int, chosen: int) -> Iterator[int]:
        if missing == 0:
            yield chosen
        elif missing <= most_from[kind]:
            for taken, mask in enumerate(lowest[kind][: missing + 1]):
                yield from extend(kind + 1, missing - taken, chosen | mask)

    return extend(0, k, 0)


def _count_of_each_kind(kinds: Sequence[Sequence[int]], free: int, k: int) -> int:
    """Return how many sets ``_one_of_each_kind`` yields.

    >>> _count_of_each_kind([[0, 1, 2], [3, 4]], 0b11111, 2)
    3
    """
    ways = [1] + [0] * k  # at [n]: ways to take n GPUs of the kinds so far
    for kind in kinds:
        size = sum(free >> gpu & 1 for gpu in kind)
        ways = [sum(ways[n - taken] for taken in range(min(size, n) + 1)) for n in range(k + 1)]
    return ways[k]


def _lowest_sets(free: int, kind: Sequence[int]) -> list[int]:
    """Return the lowest sets of 0, 1, 2, ... free GPUs of a kind."""
    sets = [0]
    for gpu in kind:
        if free >> gpu & 1:
            sets.append(sets[-1] | 1 << gpu)
    return sets


def _grow(graph: LinkGraph, free: Sequence[int], k: int, busbw: Callable[[int], float]) -> int:
    """Return a good set of *k* of the ascending GPUs *free*: the best by *busbw* of those grown from each.

    On machines of hundreds of GPUs sets are grown from some of them only, evenly spread.
    """
    if k == len(free):
        return sum(1 << gpu for gpu in free)
    weights: Memo[int, list[float]] = Memo(
        lambda gpu: [_weight(link) for link in graph.links[gpu]], limit=graph.size
    )
    seeds = max(1, _MOST_WIDENED // (k * len(free)))
    step = -(-len(free) // seeds)
    sets = dict.fromkeys(_grown_from(seed, weights, free, k) for seed in free[::step])
    return max(sets, key=busbw)


def _grown_from(seed: int, weights: Mapping[int, Sequence[float]], free: Sequence[int], k: int) -> int:
    """Return the set that starts with *seed* and takes the GPU with the widest links to the set each time."""
    left = [gpu for gpu in free if gpu != seed]
    widths = [0.0] * len(left)
    mask, newest = 1 << seed, seed
    for _ in range(k - 1):
        row = weights[newest]
        widths = [width + row[gpu] for width, gpu in zip(widths, left, strict=True)]
        # Of equally wide ones the first.
        place = widths.index(max(widths))
        newest = left.pop(place)
        del widths[place]
        mask |= 1 << newest
    return mask


def _weight(link: Link) -> float:
    return link.bandwidth * (_DIRECT_WEIGHT if link.kind.is_direct else 1)


_MOST_MACHINES = 10_000
_MOST_NODES = 200_000


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """A set of GPUs, and why it is the one.

    ``mask`` has bit i for position i in ``GpuNode.gpus``; ``order`` are the same positions in ring order, in
    which they should be visible. ``busbw`` is the predicted all-reduce bus bandwidth in GB/s: 0.0 for one
    GPU, which has no peer, and where links are not known. ``best`` is the best that so many GPUs can have on
    the empty machine. ``loss`` is the value that the GPUs staying free lose (GB/s, summed over set sizes),
    0.0 where it is not known. ``runner_up`` is the second best set and its busbw, None where there is no
    other. ``exact`` says that all sets were compared, and by proven packings; it is False on machines too
    large and too irregular for that.
    """

    mask: int
    order: tuple[int, ...]
    busbw: float
    best: float
    loss: float
    runner_up: tuple[int, float] | None = None
    exact: bool = True


class Machine:
    """One kind of node: its links, and where its GPUs sit. Machines of equal content are equal.

    ``size`` is the number of GPUs.
    """

    def __init__(self, graph: LinkGraph, places: Sequence[Place], name: str) -> None:
        """Take the links, the places of the GPUs by position, and the machine type."""
        matrix, legend = _numbered(graph)
        self._rates = rates = SetRates(graph, name)
        self.size = graph.size
        self._content = (graph, tuple(places), name)
        # Machines are part of node states, which are looked up once per node, and hashing all links takes
        # long.
        self._hash = hash(self._content)
        self._graph = graph
        self._all = (1 << graph.size) - 1
        labelled = _digest(matrix, legend, name)
        self._values = SetValues(matrix, rates.busbw, labelled, rates.every_busbw)
        locality = Locality(graph, places)
        self._ranking = _Ranking(
            self._values,
            locality,
            rates.closed_rings,
            _kinds(matrix, locality),
            graph.size,
        )
        self._choices = Memo(self._choose, limit=SETS_KEPT)
        self._orders = RingOrder(graph, places)
        # Asked for again with every other number of free GPUs.
        self._grown_masks: Memo[tuple[int, int], int] = Memo(
            lambda question: _grow(graph, positions_of(question[0]), question[1], self.busbw), limit=SETS_KEPT
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Machine) and self._content == other._content)

    def __hash__(self) -> int:
        return self._hash

    def busbw(self, mask: int) -> float:
        """Return the predicted all-reduce bus bandwidth of the set *mask* in GB/s."""
        return self._values.busbw(mask)

    def best(
        self,
        free: int,
        k: int,
        *,
        across_nodes: bool = False,
        isolated: IsolatedPods | None = None,
        rule: ZoneRule | None = None,
    ) -> GpuChoice | None:
        """Return the best set of *k* GPUs among *free*, or None where fewer are free or *k* is not positive.

        *across_nodes*: the set belongs to a gang over several nodes, which NICs serve. *isolated*: it belongs
        to such pods. *rule* allows one set or more.
        """
        free &= self._all
        if not 0 < k <= free.bit_count():
            return None
        return self._choices[free, k, across_nodes, isolated, rule]

    def _choose(self, question: tuple[int, int, bool, IsolatedPods | None, ZoneRule | None]) -> GpuChoice:
        free, k, across_nodes, isolated, rule = question
        # Too many states to value, or too many sets to compare: one good set is grown instead.
        if not self._values.are_few or not self._ranking.can_compare(free, k):
            return self._grown(free, k, rule)
        winner, second = self._ranking.two_best(
            free, k, across_nodes=across_nodes, isolated=isolated, rule=rule
        )
        return GpuChoice(
            mask=winner,
            order=self._orders.of(winner),
            busbw=self.busbw(winner),
            best=self._values.best_busbw(k),
            loss=self.loss(free, winner),
            runner_up=None if second is None else (second, self.busbw(second)),
            exact=self._rates.proven,
        )

    def _grown(self, free: int, k: int, rule: ZoneRule | None) -> GpuChoice:
        mask = self._grown_masks[free, k]
        if rule and not rule.allows(mask):
            mask = rule.first(free, k)
        order, busbw = self._orders.of(mask), self.busbw(mask)
        if self._values.are_few:
            best, loss = self._values.best_busbw(k), self.loss(free, mask)
            return GpuChoice(mask, order, busbw, best, loss, exact=False)
        # A set grown on the empty machine proves nothing: the one grown from the free GPUs may happen to be
        # better.
        best = self.busbw(self._grown_masks[self._all, k])
        return GpuChoice(mask, order, busbw, max(best, busbw), 0.0, exact=False)

    def loss(self, free: int, mask: int) -> float:
        """Return what the GPUs *free* lose in value if *mask* of them are taken; 0.0 if unknown."""
        if not self._values.are_few:
            return 0.0
        return round(self._values.value(free) - self._values.value(free ^ mask), 3)

    def ring(self, mask: int) -> tuple[int, ...]:
        """Return the positions in *mask* in ring order."""
        return self._orders.of(mask)


class MachineCatalog:
    """The machines of a fleet's nodes; equal nodes share one machine, and what it has computed.

    Most nodes share the very objects of their links and GPUs, because one reader made them, so nodes are
    looked up by identity first and by content second. The catalog keeps those objects alive, so that no other
    object gets their identity. It is bounded: when it is full it forgets everything. Machines are equal by
    content, so no answer depends on which object a node gets.
    """

    def __init__(self) -> None:
        """Know no machine yet."""
        self._by_node: dict[tuple[int, int, str], tuple[LinkGraph, tuple[Gpu, ...], Machine | None]] = {}
        self._graph_by_id: dict[int, LinkGraph] = {}
        self._equal_graph: dict[LinkGraph, LinkGraph] = {}
        self._by_content = Memo(self._make, limit=_MOST_MACHINES)

    def machine_of(self, node: GpuNode) -> Machine | None:
        """Return the machine that *node* is, or None where its links are not known."""
        links, gpus = node.links, node.gpus
        if links is None:
            return None
        entry = self._by_node.get((id(links), id(gpus), node.machine))
        if entry is None:
            if len(self._by_node) >= _MOST_NODES:
                self._forget()
            machine = self._by_content[self._graph_id(links), tuple(map(place_of, gpus)), node.machine]
            entry = self._by_node[id(links), id(gpus), node.machine] = links, gpus, machine
        return entry[2]

    def _graph_id(self, links: LinkGraph) -> int:
        """Return one number for all equal link graphs; a graph is hashed only when first seen."""
        graph = self._graph_by_id.get(id(links))
        if graph is None:
            graph = self._graph_by_id[id(links)] = self._equal_graph.setdefault(links, links)
        return id(graph)

    def _make(self, content: tuple[int, tuple[Place, ...], str]) -> Machine | None:
        graph_id, places, name = content
        graph = self._graph_by_id[graph_id]
        kinds = {graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)}
        is_known = graph.size == len(places) > 0 and kinds != {LinkClass.UNKNOWN}
        return Machine(graph, places, name) if is_known else None

    def _forget(self) -> None:
        # All at once, because content is found by the identity of graphs that ``_graph_by_id`` keeps alive.
        self._by_node.clear()
        self._graph_by_id.clear()
        self._equal_graph.clear()
        self._by_content.clear()


def free_mask(node: GpuNode) -> int | None:
    """Return the positions of the healthy, unused GPUs of *node* as bits; None if they are unknown.

    They are not known where the node does not list its GPUs, or says how many are in use and not which, or
    where more of them seem to be free than the node can give.
    """
    if not node.gpus:
        return None
    is_counted = node.gpu_resource in node.allocatable
    # Where nothing is free, it does not matter which pod uses which GPU.
    if is_counted and node.gpu_free == 0:
        return 0
    if node.used is None and node.requested.get(node.gpu_resource, 0):
        return None
    used = node.used or frozenset()
    mask = sum(1 << i for i, gpu in enumerate(node.gpus) if gpu.healthy and gpu.index not in used)
    return None if is_counted and mask.bit_count() > node.gpu_free else mask


def indices_of(node: GpuNode, positions: Iterable[int]) -> tuple[int, ...]:
    """Return the driver's indices of the GPUs at *positions*, in the same order."""
    return tuple(node.gpus[position].index for position in positions)


def _numbered(graph: LinkGraph) -> tuple[Matrix, list[tuple[str, int, float]]]:
    """Return the matrix of links as numbers, and what these stand for; equal for equal kinds of links."""
    size = range(graph.size)
    named = [[_name(graph.links[a][b]) if a != b else ("", 0, 0.0) for b in size] for a in size]
    legend = sorted({name for row in named for name in row})
    number = {name: index for index, name in enumerate(legend)}
    return [[number[name] for name in row] for row in named], legend


def _name(link: Link) -> tuple[str, int, float]:
    return link.kind.value, link.count, link.bandwidth


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _kinds(matrix: Matrix, locality: Locality) -> list[list[int]]:
    """Return the positions by interchangeability: twins in their links whose places do not differ either."""
    class_of = twins(matrix)
    kinds: list[list[int]] = []
    for gpu, name in enumerate(class_of):
        for kind in kinds:
            if class_of[kind[0]] == name and locality.interchangeable(kind[0], gpu):
                kind.append(gpu)
                break
        else:
            kinds.append([gpu])
    return kinds
