"""One kind of node, and the best set of k GPUs among those that are free in it.

Sets are compared by, in this order: predicted bus bandwidth of the whole set; for a gang over several nodes, GPUs
with a NIC of their own beside them; what the GPUs that stay free lose in value (``set_values``); closed rings; NUMA nodes, PCIe roots, alignment,
NICs, link bandwidth (``locality``); lowest positions.
Every set is compared, or one of those that differ by interchangeable GPUs only (``ranking``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations

from arena_topo.model.cluster.hardware import Gpu, Link, LinkClass, LinkGraph
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.gpus.busbw import SetRates
from arena_topo.planner.gpus.canonical import Matrix, twins
from arena_topo.planner.gpus.locality import SETS_KEPT, Locality, Place, place_of, positions_of
from arena_topo.planner.gpus.ranking import Ranking, grow
from arena_topo.planner.gpus.ring_order import RingOrder
from arena_topo.planner.gpus.set_values import SetValues
from arena_topo.planner.gpus.zone_rule import ZoneRule
from arena_topo.planner.memo import Memo

_MOST_MACHINES = 10_000
_MOST_NODES = 200_000


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """A set of GPUs, and why it is the one.

    ``mask`` has bit i for position i in ``GpuNode.gpus``; ``order`` are the same positions in ring order, in which
    they should be visible. ``busbw`` is the predicted all-reduce bus bandwidth in GB/s: 0.0 for one GPU, which has
    no peer, and where links are not known. ``best`` is the best that so many GPUs can have on the empty machine.
    ``loss`` is the value that the GPUs staying free lose (GB/s, summed over set sizes), 0.0 where it is not known.
    ``runner_up`` is the second best set and its busbw, None where there is no other. ``exact`` says that all sets
    were compared, and by proven packings; it is False on machines too large and too irregular for that.
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

    def __init__(self, graph: LinkGraph, places: Sequence[Place], name: str, model: BandwidthModel) -> None:
        """Take the links, the places of the GPUs by position, the machine type and the bandwidth model."""
        matrix, legend = _numbered(graph)
        self._rates = rates = SetRates(graph, name, model)
        self.size = graph.size
        self._content = (graph, tuple(places), name, model)
        # Machines are part of node states, which are looked up once per node, and hashing all links takes long.
        self._hash = hash(self._content)
        self._graph = graph
        self._all = (1 << graph.size) - 1
        labelled = _digest(matrix, legend, name, model)
        self._values = SetValues(matrix, rates.busbw, labelled, rates.every_busbw)
        locality = Locality(graph, places)
        self._ranking = Ranking(
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
            lambda question: grow(graph, positions_of(question[0]), question[1], self.busbw), limit=SETS_KEPT
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Machine) and self._content == other._content)

    def __hash__(self) -> int:
        return self._hash

    def busbw(self, mask: int) -> float:
        """Return the predicted all-reduce bus bandwidth of the set *mask* in GB/s."""
        return self._values.busbw(mask)

    def best(
        self, free: int, k: int, *, across_nodes: bool = False, rule: ZoneRule | None = None
    ) -> GpuChoice | None:
        """Return the best set of *k* GPUs among *free*, or None where fewer are free or *k* is not positive.

        *across_nodes*: the set belongs to a gang over several nodes, which NICs serve. *rule* allows one set or more.
        """
        free &= self._all
        return self._choices[free, k, across_nodes, rule] if 0 < k <= free.bit_count() else None

    def _choose(self, question: tuple[int, int, bool, ZoneRule | None]) -> GpuChoice:
        free, k, across_nodes, rule = question
        # Too many states to value, or too many sets to compare: one good set is grown instead.
        if not self._values.are_few or not self._ranking.can_compare(free, k):
            return self._grown(free, k, rule)
        winner, second = self._ranking.two_best(free, k, across_nodes=across_nodes, rule=rule)
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
        # A set grown on the empty machine is no proof: the one grown from the free GPUs may happen to be better.
        best = self.busbw(self._grown_masks[self._all, k])
        return GpuChoice(mask, order, busbw, max(best, busbw), 0.0, exact=False)

    def loss(self, free: int, mask: int) -> float:
        """Return what the GPUs *free* lose in value when *mask* of them are taken; 0.0 where it is not known."""
        if not self._values.are_few:
            return 0.0
        return round(self._values.value(free) - self._values.value(free ^ mask), 3)

    def ring(self, mask: int) -> tuple[int, ...]:
        """Return the positions in *mask* in ring order."""
        return self._orders.of(mask)


class MachineCatalog:
    """The machines of a fleet's nodes; equal nodes share one machine, and what it has computed.

    Most nodes share the very objects of their links and GPUs, because one reader made them, so nodes are looked up by
    identity first and by content second. The catalog keeps those objects alive, so that no other object gets their
    identity. It is bounded: when it is full it forgets everything. Machines are equal by content, so no answer
    depends on which object a node gets.
    """

    def __init__(self, model: BandwidthModel = DEFAULT_MODEL) -> None:
        """Take the bandwidth model of all machines."""
        self.model = model
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
        """Return one number for all equal link graphs; a graph is hashed only when its object is first seen."""
        graph = self._graph_by_id.get(id(links))
        if graph is None:
            graph = self._graph_by_id[id(links)] = self._equal_graph.setdefault(links, links)
        return id(graph)

    def _make(self, content: tuple[int, tuple[Place, ...], str]) -> Machine | None:
        graph_id, places, name = content
        graph = self._graph_by_id[graph_id]
        kinds = {graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)}
        is_known = graph.size == len(places) > 0 and kinds != {LinkClass.UNKNOWN}
        return Machine(graph, places, name, self.model) if is_known else None

    def _forget(self) -> None:
        # All at once, because content is found by the identity of graphs that ``_graph_by_id`` keeps alive.
        self._by_node.clear()
        self._graph_by_id.clear()
        self._equal_graph.clear()
        self._by_content.clear()


def free_mask(node: GpuNode) -> int | None:
    """Return the positions of the healthy GPUs of *node* that no pod uses, as bits; None where they are not known.

    They are not known where the node does not list its GPUs, or says how many are in use and not which, or where
    more of them seem to be free than the node can give.
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
    """Return the matrix of links as numbers, and what the numbers stand for; equal for equal kinds of links."""
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
    """Return the positions by interchangeability: twins in links whose places do not differ either."""
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
