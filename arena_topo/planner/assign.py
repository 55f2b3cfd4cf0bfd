"""From the chosen nodes to a place for every worker: ranks in fabric order, GPUs in ring order."""

from itertools import repeat
from math import isinf
from typing import NamedTuple

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import NodeShare, Placement, Slot
from arena_topo.planner.explain.steps import why
from arena_topo.planner.gpus.node_machine import Choice, indices_of
from arena_topo.planner.gpus.ring_order import cut
from arena_topo.planner.nodes.domain_choice import Choosing
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import Room, names, spanned
from arena_topo.planner.nodes.offers import Offer


def placement(demand: Demand, fleet: Fleet, space: Room, chosen: Choosing) -> Placement:
    """Return the placement of *demand* on the nodes of *chosen*."""
    shares: list[NodeShare] = []
    slots: list[Slot] = []
    parts: dict[tuple[int, int], _Part] = {}
    for at, offer in zip(chosen.pick.nodes, chosen.pick.offers, strict=True):
        node, first = fleet.nodes[at], len(slots)
        key = id(offer), id(node.gpus)
        part = parts.get(key)
        if part is None:
            part = _part(fleet, at, offer, demand.gpus)
            if offer.choice:
                parts[key] = part
        workers = range(first, first + len(part.each))
        shares.append(NodeShare(node.name, tuple(workers), part.gpus, part.busbw, part.best, fleet.paths[at]))
        slots += map(Slot, workers, repeat(node.name), part.each)
    level, domain = spanned(fleet, chosen.pick.nodes[0], chosen.pick.nodes[-1])
    return Placement(
        slots=tuple(slots),
        shares=tuple(shares),
        level=names(fleet)[level],
        domain=domain.name,
        workers=demand.workers,
        gpus=demand.gpus,
        why=why(demand, fleet, space, chosen),
    )


class _Part(NamedTuple):
    """What an offer takes of a node: its GPUs in ring order, their busbw, and the GPUs of each worker.

    Nodes with the same GPUs have equal ones.
    """

    gpus: tuple[int, ...] | None
    busbw: float | None
    best: float | None
    each: tuple[tuple[int, ...] | None, ...]


def _part(fleet: Fleet, at: int, offer: Offer, each: int) -> _Part:
    """Return what *offer* takes of the node at *at* for workers of *each* GPUs, neighbours in the ring."""
    node, choice, workers = fleet.nodes[at], offer.choice, range(offer.workers)
    gpus = _chosen(node, choice, each) if choice else _first_free(fleet, at, offer.workers * each)
    split = [None if gpus is None else gpus[place * each : (place + 1) * each] for place in workers]
    if choice is None or isinf(offer.inside):
        return _Part(gpus, None, None, tuple(split))
    return _Part(gpus, choice.busbw, choice.best, tuple(split))


def _chosen(node: GpuNode, choice: Choice, each: int) -> tuple[int, ...]:
    """Return the GPUs of *choice* in ring order, cut between workers of *each* where that costs least."""
    ring = cut(node.links, choice.order, each) if node.links else choice.order
    return indices_of(node, ring)


def _first_free(fleet: Fleet, at: int, count: int) -> tuple[int, ...] | None:
    """Return the first free GPUs of a node that does not tell its links: as good as any; None if those are unknown."""
    free = fleet.state(at).mask if count else None
    if free is None:
        return None
    return indices_of(fleet.nodes[at], [bit for bit in range(free.bit_length()) if free >> bit & 1][:count])
