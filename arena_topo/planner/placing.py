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
    for at, offer in zip(chosen.pick.nodes, chosen.pick.offers, strict=True):
        share = _share(fleet, at, offer, len(slots))
        shares.append(share)
        slots += [_slot(share, worker, place, demand.gpus) for place, worker in enumerate(share.workers)]
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


def _share(fleet: Fleet, at: int, offer: Offer, first: int) -> NodeShare:
    node, choice = fleet.nodes[at], offer.choice
    communicates = choice is not None and not isinf(offer.inside)
    return NodeShare(
        node=node.name,
        workers=tuple(range(first, first + offer.workers)),
        gpus=indices_of(node, choice.order) if choice else None,
        busbw=choice.busbw if choice and communicates else None,
        best=choice.best if choice and communicates else None,
        domain=fleet.paths[at],
    )


def _slot(share: NodeShare, worker: int, place: int, gpus: int) -> Slot:
    if share.gpus is None:
        return Slot(worker, share.node)
    return Slot(worker, share.node, share.gpus[place * gpus : (place + 1) * gpus])
