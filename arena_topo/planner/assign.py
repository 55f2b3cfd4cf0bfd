"""From the chosen nodes to a place for every worker: ranks in fabric order, GPUs in ring order."""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from math import isinf
from typing import NamedTuple

from arena_topo.model.cluster import GpuNode
from arena_topo.model.hardware import AlignmentPolicy, Gpu, NumaZones
from arena_topo.model.plan import (
    Demand,
    NodeAlignment,
    NodeShare,
    Placement,
    RolePlacement,
    Slot,
    WorkerPlace,
)
from arena_topo.model.pods import CPU
from arena_topo.planner.choice import DomainChoice
from arena_topo.planner.explain import why
from arena_topo.planner.fleet import Capacity, Fleet, level_names, spanned
from arena_topo.planner.gpus.bandwidth import place_of, positions_of, rotated_for_workers
from arena_topo.planner.gpus.machine import indices_of
from arena_topo.planner.offers import NodeState, Offer, containers_of

# On which NUMA nodes and PCIe switches of its node each worker is, next to which NICs, and who sees to it.


def node_alignment(
    node: GpuNode, demand: Demand, by_worker: Sequence[tuple[int, ...] | None]
) -> NodeAlignment | None:
    """Return where on *node* workers of *demand* are whose GPUs are *by_worker*; None where that is not known."""
    if not demand.gpus or None in by_worker or all(gpu.numa is None for gpu in node.gpus):
        return None
    policy = node.zones.policy if node.zones else None
    gpus = {gpu.index: gpu for gpu in node.gpus}
    has_cores = _has_cores(node, demand, policy)
    return NodeAlignment(
        policy=policy,
        enforced=policy is not None
        and policy.refuses
        and _is_tied(node.zones, demand.gpu_resource or node.gpu_resource),
        workers=tuple(
            _place([gpus[index] for index in indices or ()], has_cores=has_cores) for indices in by_worker
        ),
    )


def _place(gpus: Sequence[Gpu], *, has_cores: bool) -> WorkerPlace:
    numa = tuple(sorted({gpu.numa for gpu in gpus if gpu.numa is not None}))
    return WorkerPlace(
        numa=numa,
        switches=tuple(dict.fromkeys(gpu.pcie_root for gpu in gpus if gpu.pcie_root)),
        nics=tuple(dict.fromkeys(nic for gpu in gpus for nic in gpu.nics)),
        cpus=numa if has_cores else (),
    )


def _has_cores(node: GpuNode, demand: Demand, policy: AlignmentPolicy | None) -> bool:
    """Whether a worker gets cores of its own next to its GPUs, if the kubelet's CPU manager is static."""
    asks = any(CPU in dict(asked) for asked in containers_of(demand, node.gpu_resource))
    return asks and policy not in (None, AlignmentPolicy.NONE) and _is_tied(node.zones, CPU)


def _is_tied(zones: NumaZones | None, resource: str) -> bool:
    """Whether *resource* is tied to NUMA nodes, so that the kubelet aligns it."""
    return zones is not None and any(zone.capacity.get(resource) for zone in zones.zones)


def placement(
    demand: Demand,
    fleet: Fleet,
    capacity: Capacity,
    chosen: DomainChoice,
    workers_of: Mapping[int, tuple[int, ...]] | None = None,
    *,
    explains: bool = True,
) -> Placement:
    """Return the placement of *demand* on the nodes of *chosen*, with the steps by which it won where it *explains* them.

    *workers_of* names the workers of each node, by position; without it they follow the nodes in fabric order.
    """
    shares: list[NodeShare] = []
    slots: list[Slot] = []
    parts = NodeParts(demand)
    for position, offer in zip(chosen.pick.nodes, chosen.pick.offers, strict=True):
        node, first = fleet.nodes[position], len(slots)
        part, alignment = parts.of(node, fleet.state(position), offer)
        workers = workers_of[position] if workers_of else tuple(range(first, first + len(part.by_worker)))
        path = fleet.paths[position]
        shares.append(NodeShare(node.name, workers, part.gpus, part.busbw, part.best, path, alignment))
        slots += map(Slot, workers, repeat(node.name), part.by_worker)
    if workers_of:
        slots.sort()
    # Where several levels count as equally close, the nodes may share a closer domain than the one searched.
    number, domain = spanned(fleet, chosen.pick.nodes[0], chosen.pick.nodes[-1])
    level = level_names(fleet)[number]
    return Placement(
        roles=(RolePlacement("", demand.gpus, tuple(slots), tuple(shares), level, domain.name),),
        level=level,
        domain=domain.name,
        why=why(demand, fleet, capacity, chosen) if explains else (),
    )


class NodePart(NamedTuple):
    """What an offer takes of a node: its GPUs in ring order, their busbw, and the GPUs of each worker.

    Nodes with the same GPUs have equal ones.
    """

    gpus: tuple[int, ...] | None
    busbw: float | None
    best: float | None
    by_worker: tuple[tuple[int, ...] | None, ...]


class NodeParts:
    """What offers take of nodes for the workers of one demand; equal nodes are worked out once.

    Nodes and offers that were asked for must stay alive, because they are told apart by their identity.
    """

    def __init__(self, demand: Demand) -> None:
        """Take what each worker asks for."""
        self._demand = demand
        self._known: dict[tuple[int, ...], tuple[NodePart, NodeAlignment | None]] = {}

    def of(self, node: GpuNode, state: NodeState, offer: Offer) -> tuple[NodePart, NodeAlignment | None]:
        """Return what *offer* takes of *node*, in *state*, and where on the node the workers are."""
        # A gang of thousands uses few offers, and most nodes share the object of their GPUs.
        key = id(offer), id(node.gpus), id(node.zones)
        known = self._known.get(key)
        if known is None:
            part = _node_part(node, state, offer, self._demand.gpus)
            known = part, node_alignment(node, self._demand, part.by_worker)
            # Without a choice the state tells which GPUs are taken.
            if offer.choice:
                self._known[key] = known
        return known


def _node_part(node: GpuNode, state: NodeState, offer: Offer, gpus: int) -> NodePart:
    """Return what *offer* takes of *node*, in *state*, for workers of *gpus* GPUs, neighbours in the ring."""
    choice, workers = offer.choice, range(offer.workers)
    taken = (
        _in_ring_order(node, offer, choice.order, gpus) if choice else _first_free(node, state, offer, gpus)
    )
    by_worker = tuple(None if taken is None else taken[i * gpus : (i + 1) * gpus] for i in workers)
    # A single GPU has no peer, so there is no bandwidth to show; nor is there for GPUs that nothing identifies.
    if choice is None or isinf(offer.inside):
        return NodePart(taken, None, None, by_worker)
    return NodePart(taken, choice.busbw, choice.best, by_worker)


def gpus_by_worker(
    fleet: Fleet, position: int, offer: Offer, gpus: int
) -> tuple[tuple[int, ...] | None, ...]:
    """Return the GPUs of each worker that *offer* takes of the node at *position*; None where it is not known which."""
    return _node_part(fleet.nodes[position], fleet.state(position), offer, gpus).by_worker


def _in_ring_order(node: GpuNode, offer: Offer, ring: Sequence[int], gpus: int) -> tuple[int, ...]:
    """Return the GPUs of *ring*, cut between workers of *gpus* GPUs where that costs least."""
    if offer.rule:
        return indices_of(node, offer.rule.cut(ring))
    if node.links:
        ring = rotated_for_workers(node.links, ring, gpus, tuple(map(place_of, node.gpus)))
    return indices_of(node, ring)


def _first_free(node: GpuNode, state: NodeState, offer: Offer, gpus: int) -> tuple[int, ...] | None:
    """Return the first free GPUs of *node*, in *state*, whose links are not known: as good as any of as few NUMA nodes.

    None if it is not known which are free.
    """
    count = offer.workers * gpus
    free = state.mask if count else None
    if free is None:
        return None
    if offer.rule:
        return indices_of(node, offer.rule.cut(positions_of(offer.rule.first(free, count))))
    sides: dict[int | None, list[int]] = {}
    for position in positions_of(free):
        sides.setdefault(node.gpus[position].numa, []).append(position)
    # The smallest side that has enough, so that larger ones stay whole; else the largest, so that few are touched.
    enough = [side for side in sides.values() if len(side) >= count]
    ordered = [min(enough, key=len)] if enough else sorted(sides.values(), key=lambda side: -len(side))
    return indices_of(node, list(chain.from_iterable(ordered))[:count])
