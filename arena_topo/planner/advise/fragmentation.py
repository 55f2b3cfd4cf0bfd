"""How much of the free capacity serves which shapes of jobs, and which moves would mend it."""

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.fragmentation import Fragmentation, ShapeRoom, WholeRoom
from arena_topo.planner.advise.free_room import (
    best_busbw,
    free_by_node,
    largest,
    shapes,
    side_by_side,
    whole_nodes,
)
from arena_topo.planner.advise.moves import moves
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fleet import Fleet, emptied, fleet_of
from arena_topo.planner.nodes.levels import names


def fragmentation(snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Fragmentation:
    """Return what the free GPUs of *snapshot* are good for, and the moves that would help most."""
    fleet = fleet_of(snapshot, model)
    empty = emptied(fleet)
    free, free_empty = free_by_node(fleet), free_by_node(empty)
    return Fragmentation(
        free=sum(free),
        total=sum(state.total for state in map(fleet.states.__getitem__, fleet.kinds)),
        closed=sum(fleet.states[kind].free for kind in fleet.kinds) - sum(free),
        levels=names(fleet),
        shapes=tuple(_shape(fleet, empty, free, free_empty, gpus) for gpus in shapes(empty)),
        whole=tuple(_whole(fleet, empty, free, free_empty)),
        moves=moves(fleet),
    )


def _shape(fleet: Fleet, empty: Fleet, free: list[int], free_empty: list[int], gpus: int) -> ShapeRoom:
    places = [count // gpus for count in free]
    return ShapeRoom(
        gpus=gpus,
        workers=sum(places),
        empty=sum(count // gpus for count in free_empty),
        in_one=largest(fleet, places),
        busbw=best_busbw(fleet, gpus),
        best=best_busbw(empty, gpus),
    )


def _whole(fleet: Fleet, empty: Fleet, free: list[int], free_empty: list[int]) -> list[WholeRoom]:
    now, ever = whole_nodes(fleet, free), whole_nodes(empty, free_empty)
    return [
        WholeRoom(size, side_by_side(fleet, now, size), side_by_side(empty, ever, size))
        for size in (1 << bits for bits in range(sum(ever).bit_length()))
    ]
