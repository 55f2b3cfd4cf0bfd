"""The members of a gang that have their places: where they are, and what their nodes give with more or fewer of them.

A gang has the GPUs 0 and 3 of a V100 machine, 45 GB/s over two links. With GPU 2 as well it has 55 GB/s, with GPU 4 none
but PCIe: what counts is the busbw of all its GPUs on the node, those that it has and those that come.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from math import comb, inf
from operator import or_

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.change import GangFigures
from arena_topo.model.plan.placement import Slot
from arena_topo.planner.gpus.locality import positions_of
from arena_topo.planner.nodes.fleet import Fleet, make_fleet
from arena_topo.planner.nodes.levels import level_names, spanned
from arena_topo.planner.nodes.node_state import NodeState, Offer, damage, nic_rate

# Sixteen GPUs have 12,870 sets of eight.
_MOST_SETS = 20_000


@dataclass(frozen=True, slots=True)
class Members:
    """The workers of a gang on the node at ``position``.

    ``masks`` are the positions of the GPUs of each, None where it is not known which they are.
    """

    position: int
    slots: tuple[Slot, ...]
    masks: tuple[int, ...] | None

    @property
    def mask(self) -> int | None:
        """The positions of all their GPUs."""
        return None if self.masks is None else reduce(or_, self.masks, 0)


def members_by_node(fleet: Fleet, slots: Iterable[Slot]) -> list[Members]:
    """Return the members at *slots* by node, in fabric order; a node that is gone has none."""
    by_node: dict[str, list[Slot]] = {}
    for slot in slots:
        by_node.setdefault(slot.node, []).append(slot)
    return [
        Members(position, tuple(by_node[node.name]), _masks(fleet, position, by_node[node.name]))
        for position, node in enumerate(fleet.nodes)
        if node.name in by_node
    ]


def _masks(fleet: Fleet, position: int, slots: Sequence[Slot]) -> tuple[int, ...] | None:
    place_of = {gpu.index: 1 << place for place, gpu in enumerate(fleet.nodes[position].gpus)}
    masks = []
    for slot in slots:
        if slot.gpus is None or not place_of.keys() >= set(slot.gpus):
            return None
        masks.append(sum(place_of[gpu] for gpu in slot.gpus))
    return tuple(masks)


def offer_of(
    state: NodeState,
    workers: int,
    gpus: int,
    union: int | None,
    *,
    several: bool,
    stranded: int = 0,
    loss: float = 0.0,
) -> Offer:
    """Return what a node in *state* gives *workers* whose GPUs are *union*, None where it is not known which they are.

    *several*: the gang is on several nodes. *stranded* GPUs stay free there, and lose the value *loss*.
    """
    count, machine = workers * gpus, state.machine
    is_known = machine is not None and union is not None
    inside = machine.busbw(union) if machine is not None and union is not None else 0.0
    # A single GPU has no peer on its node.
    inside = inside if count > 1 else inf
    return Offer(
        workers=workers,
        inside=inside,
        # Pods without GPUs, such as parameter servers, are bounded by no share of a NIC.
        busbw=min(inside, nic_rate(state, count)) if several and count else inside,
        stranded=stranded,
        loss=loss,
        damage=damage(stranded, loss),
        choice=None,
        exact=is_known or count < 2,
    )


def with_more(
    fleet: Fleet, members: Members, gpus: int, more: int, *, several: bool
) -> tuple[Offer, int | None]:
    """Return what the node of *members* gives with *more* of them, and the GPUs that these get.

    The GPUs are None where it is not known which are free. Of all sets the one with the highest busbw together with the GPUs
    that the members have is taken, of equally fast ones the one that leaves most; only sets that the kubelet can give.
    """
    state, held = fleet.state(members.position), members.mask
    workers, taken = len(members.slots) + more, more * gpus
    machine, free = state.machine, None if state.mask is None else state.mask & ~(held or 0)
    if machine is None or free is None or held is None or not taken:
        union = held if not taken else None
        return offer_of(state, workers, gpus, union, several=several, stranded=state.free - taken), None

    def offer(mask: int) -> Offer:
        loss = machine.loss(free, mask)
        return offer_of(
            state, workers, gpus, held | mask, several=several, stranded=state.free - taken, loss=loss
        )

    rule = state.alignment.rule(state.containers, more, gpus) if state.alignment else None
    masks = [mask for mask in subsets(free, taken) if rule is None or rule.allows(mask)]
    if not masks:
        # Too many to compare: the best set by itself need not be the best beside the others.
        choice = machine.best(free, taken, across_nodes=several, rule=rule)
        mask = choice.mask if choice else 0
        return replace(offer(mask), exact=False), mask
    offers = {mask: offer(mask) for mask in masks}
    best = min(masks, key=lambda mask: (-offers[mask].busbw, -offers[mask].inside, offers[mask].damage, mask))
    return offers[best], best


def with_fewer(
    fleet: Fleet, members: Members, gpus: int, stay: int, *, several: bool
) -> tuple[Offer, tuple[int, ...]]:
    """Return what the node of *members* gives if *stay* of them do, and which workers these are: those that lose least."""
    state = fleet.state(members.position)
    stranded = state.free + (len(members.slots) - stay) * gpus
    numbers, masks = range(len(members.slots)), members.masks
    if masks is None or state.machine is None or comb(len(members.slots), stay) > _MOST_SETS:
        offer = offer_of(state, stay, gpus, None, several=several, stranded=stranded)
        return offer, tuple(slot.worker for slot in members.slots[:stay])
    machine, available = state.machine, (state.mask or 0) | (members.mask or 0)

    def offer_with(staying: tuple[int, ...]) -> Offer:
        union = reduce(or_, (masks[number] for number in staying), 0)
        loss = machine.loss(available, union)
        return offer_of(state, stay, gpus, union, several=several, stranded=stranded, loss=loss)

    offers = {staying: offer_with(staying) for staying in combinations(numbers, stay)}
    best = min(
        offers,
        key=lambda staying: (
            -offers[staying].busbw,
            -offers[staying].inside,
            offers[staying].damage,
            staying,
        ),
    )
    return offers[best], tuple(members.slots[number].worker for number in best)


def subsets(free: int, count: int) -> list[int]:
    """Return every set of *count* of the GPUs *free* as masks, none where they are too many to compare."""
    places = positions_of(free)
    if comb(len(places), count) > _MOST_SETS:
        return []
    return [sum(1 << place for place in chosen) for chosen in combinations(places, count)]


def figures(fleet: Fleet, slots: Sequence[Slot], gpus: int) -> GangFigures:
    """Return where the gang at *slots*, with *gpus* GPUs a worker, is."""
    members = members_by_node(fleet, slots)
    if not members:
        return GangFigures("", "", 0, None)
    level, domain = _around(fleet, members)
    several = len(members) > 1
    offers = [
        offer_of(fleet.state(each.position), len(each.slots), gpus, each.mask, several=several)
        for each in members
    ]
    rate = min(offer.busbw for offer in offers)
    return GangFigures(level, domain, len(members), rate if gpus and 0 < rate < inf else None)


def domain_around(snapshot: Snapshot, slots: Iterable[Slot]) -> tuple[str, str]:
    """Return the closest level and domain in which all of *slots* are; empty strings where none of their nodes is left."""
    fleet = make_fleet(snapshot)
    members = members_by_node(fleet, slots)
    return _around(fleet, members) if members else ("", "")


def _around(fleet: Fleet, members: Sequence[Members]) -> tuple[str, str]:
    level, domain = spanned(fleet, members[0].position, members[-1].position)
    return level_names(fleet)[level], domain.name
