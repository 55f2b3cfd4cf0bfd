"""From the chosen nodes to a place for every worker: ranks in fabric order, GPUs in ring order."""

from math import isinf

from arena_topo.model.demand import Demand
from arena_topo.model.placement import NodeShare, Placement, Slot
from arena_topo.planner.choosing import Choosing
from arena_topo.planner.fleet import Fleet
from arena_topo.planner.gpuset import indices_of
from arena_topo.planner.levels import Room, names, spanned
from arena_topo.planner.offers import Offer
from arena_topo.planner.why import why


def placement(demand: Demand, fleet: Fleet, space: Room, chosen: Choosing) -> Placement:
    """Return the placement of *demand* on the nodes of *chosen*."""
    shares: list[NodeShare] = []
    slots: list[Slot] = []
    known: _Indices = {}
    for at, offer in zip(chosen.pick.nodes, chosen.pick.offers, strict=True):
        gpus = _gpus(fleet, at, offer, demand.gpus, known)
        share = _share(fleet, at, offer, gpus, len(slots))
        shares.append(share)
        slots += _slots(share, demand.gpus)
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


_Indices = dict[tuple[int, int], tuple[int, ...]]
"""The GPU indices of a choice on nodes with the same GPUs, by the identities of both."""


def _gpus(fleet: Fleet, at: int, offer: Offer, each: int, known: _Indices) -> tuple[int, ...] | None:
    """Return the GPUs of the node at *at* that *offer* takes for workers of *each*, None where nobody knows."""
    node, choice = fleet.nodes[at], offer.choice
    if not choice:
        return _first_free(fleet, at, offer.workers * each) if each else None
    key = id(choice), id(node.gpus)
    found = known.get(key)
    if found is None:
        found = known[key] = indices_of(node, choice.order)
    return found


def _share(fleet: Fleet, at: int, offer: Offer, gpus: tuple[int, ...] | None, first: int) -> NodeShare:
    """Return what *offer* takes of the node at *at*, the workers counted from *first*."""
    choice = None if isinf(offer.inside) else offer.choice
    busbw, best = (choice.busbw, choice.best) if choice else (None, None)
    workers = tuple(range(first, first + offer.workers))
    return NodeShare(fleet.nodes[at].name, workers, gpus, busbw, best, fleet.paths[at])


def _first_free(fleet: Fleet, at: int, count: int) -> tuple[int, ...] | None:
    """Return the first free GPUs of a node that does not tell its links: as good as any; None if those are unknown."""
    free = fleet.state(at).mask
    if free is None:
        return None
    return indices_of(fleet.nodes[at], [bit for bit in range(free.bit_length()) if free >> bit & 1][:count])


def _slots(share: NodeShare, gpus: int) -> list[Slot]:
    """Return the places of the share's workers, each with its GPUs, neighbours in the ring."""
    node, union = share.node, share.gpus
    if union is None:
        return [Slot(worker, node) for worker in share.workers]
    if len(share.workers) == 1:
        return [Slot(share.workers[0], node, union)]
    return [
        Slot(worker, node, union[place * gpus : (place + 1) * gpus])
        for place, worker in enumerate(share.workers)
    ]
