"""From a node of a snapshot to its machine, and to the GPUs of it that are free."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from arena_topo.model.cluster.hardware import Gpu, LinkClass, LinkGraph
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.gpus.locality import Place, place_of
from arena_topo.planner.gpus.machine import Choice, Machine

__all__ = ["Choice", "Machine", "best_within", "free_mask", "indices_of", "machine_of"]

_MOST_REMEMBERED = 200_000


class _Known:
    """The machines made so far.

    A node is looked up by the identity of its links and GPUs, which are kept alive so that no other object gets
    their identity; else by what they say.
    """

    def __init__(self) -> None:
        self.by_identity: dict[tuple[int, int, str, BandwidthModel], Machine | None] = {}
        self.by_content: dict[object, Machine | None] = {}
        self.graphs: dict[int, LinkGraph] = {}
        self.equal: dict[LinkGraph, LinkGraph] = {}
        self.alive: list[tuple[LinkGraph, tuple[Gpu, ...]]] = []


_known = _Known()


def machine_of(node: GpuNode, model: BandwidthModel = DEFAULT_MODEL) -> Machine | None:
    """Return the machine that *node* is, or None where its links are not known.

    Nodes with equal links, equally placed GPUs and one machine type get the same object.
    """
    links = node.links
    if links is None:
        return None
    try:
        return _known.by_identity[id(links), id(node.gpus), node.machine, model]
    except KeyError:
        return _look_up(node, links, model)


def _look_up(node: GpuNode, links: LinkGraph, model: BandwidthModel) -> Machine | None:
    global _known  # noqa: PLW0603  # a long-lived process forgets all at once
    if len(_known.alive) >= _MOST_REMEMBERED:
        _known = _Known()
    known = _known
    known.alive.append((links, node.gpus))
    graph = known.graphs.get(id(links))
    if graph is None:
        graph = known.graphs[id(links)] = known.equal.setdefault(links, links)
    places = tuple(map(place_of, node.gpus))
    content = (id(graph), places, node.machine, model)
    if content not in known.by_content:
        known.by_content[content] = _make(graph, places, node.machine, model)
    machine = known.by_identity[id(links), id(node.gpus), node.machine, model] = known.by_content[content]
    return machine


def _make(graph: LinkGraph, places: Sequence[Place], name: str, model: BandwidthModel) -> Machine | None:
    kinds = {graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)}
    told = graph.size == len(places) > 0 and kinds != {LinkClass.UNKNOWN}
    return Machine(graph, places, name, model) if told else None


def free_mask(node: GpuNode) -> int | None:
    """Return the positions of the healthy GPUs of *node* that no pod uses, as bits; None where they are not known.

    They are not known where the node does not tell its GPUs, or how many are in use and not which, or where more
    of them seem to be free than the node can give.
    """
    if not node.gpus:
        return None
    counted = node.gpu_resource in node.allocatable
    if counted and node.gpu_free == 0:
        return 0
    if node.used is None and node.requested.get(node.gpu_resource, 0):
        return None
    used = node.used or frozenset()
    mask = sum(1 << at for at, gpu in enumerate(node.gpus) if gpu.healthy and gpu.index not in used)
    return None if counted and mask.bit_count() > node.gpu_free else mask


def indices_of(node: GpuNode, positions: Iterable[int]) -> tuple[int, ...]:
    """Return the indices of the GPUs at *positions*, in the same order."""
    return tuple(node.gpus[at].index for at in positions)


def best_within(machine: Machine, free: int, k: int, *, bandwidth_matters: bool = True) -> Choice | None:
    """Return the best set of *k* GPUs among *free*.

    Where bandwidth does not matter (one GPU, no collectives) the set is taken whose leaving hurts least.
    """
    return machine.best(free, k) if bandwidth_matters else machine.preserving(free, k)
