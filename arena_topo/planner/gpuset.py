"""From a node of a snapshot to its machine, and to the GPUs of it that are free."""

from collections.abc import Iterable
from itertools import combinations

from arena_topo.model.hardware import Gpu, LinkClass, LinkGraph
from arena_topo.model.snapshot import GpuNode
from arena_topo.planner.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.locality import place_of
from arena_topo.planner.machine import Choice, Machine

__all__ = ["Choice", "Machine", "best_within", "free_mask", "indices_of", "machine_of"]

_MOST_REMEMBERED = 200_000

_Identity = tuple[int, int, str, BandwidthModel]

_by_identity: dict[_Identity, Machine | None] = {}
_by_content: dict[object, Machine | None] = {}
_alive: list[tuple[LinkGraph, tuple[Gpu, ...]]] = []
"""Links and GPUs of the nodes seen: while they live, no other object has their identity."""


def machine_of(node: GpuNode, model: BandwidthModel = DEFAULT_MODEL) -> Machine | None:
    """Return the machine that *node* is, or None where its links are not known.

    Nodes with equal links, equally placed GPUs and one machine type get the same object.
    """
    links = node.links
    if links is None:
        return None
    identity = (id(links), id(node.gpus), node.machine, model)
    try:
        return _by_identity[identity]
    except KeyError:
        if len(_alive) >= _MOST_REMEMBERED:
            _by_identity.clear()
            _alive.clear()
        _alive.append((links, node.gpus))
        machine = _by_identity[identity] = _machine(node, links, model)
        return machine


def _machine(node: GpuNode, links: LinkGraph, model: BandwidthModel) -> Machine | None:
    places = tuple(map(place_of, node.gpus))
    content = (links, places, node.machine, model)
    if content not in _by_content:
        kinds = {links.between(a, b).kind for a, b in combinations(range(links.size), 2)}
        told = links.size == len(places) > 0 and kinds != {LinkClass.UNKNOWN}
        _by_content[content] = Machine(links, places, node.machine, model) if told else None
    return _by_content[content]


def free_mask(node: GpuNode) -> int | None:
    """Return the positions of the healthy GPUs of *node* that no pod uses, as bits; None where they are not known.

    They are not known where the node does not tell its GPUs, or tells how many are in use and not which.
    """
    if not node.gpus:
        return None
    used = node.used
    if used is None:
        if node.gpu_free == 0:
            return 0
        if node.requested.get(node.gpu_resource, 0):
            return None
        used = frozenset()
    return sum(1 << at for at, gpu in enumerate(node.gpus) if gpu.healthy and gpu.index not in used)


def indices_of(node: GpuNode, positions: Iterable[int]) -> tuple[int, ...]:
    """Return the indices of the GPUs at *positions*, in the same order."""
    return tuple(node.gpus[at].index for at in positions)


def best_within(machine: Machine, free: int, k: int, *, bandwidth_matters: bool = True) -> Choice | None:
    """Return the best set of *k* GPUs among *free*.

    Where bandwidth does not matter (one GPU, no collectives) the set is taken whose leaving hurts least.
    """
    return machine.best(free, k) if bandwidth_matters else machine.preserving(free, k)
