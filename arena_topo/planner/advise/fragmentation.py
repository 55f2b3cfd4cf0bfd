"""How much of the free capacity serves which shapes of jobs, and which moves would defragment it."""

from collections.abc import Sequence

from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.plan.fragmentation import Fragmentation, ShapeCapacity, WholeNodeCapacity
from arena_topo.planner.advise.free_capacity import (
    best_busbw,
    free_by_node,
    largest_by_level,
    side_by_side,
    usual_sizes,
    whole_nodes,
)
from arena_topo.planner.advise.moves import moves
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fleet import Fleet, emptied, make_fleet
from arena_topo.planner.nodes.levels import level_names


def fragmentation(snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Fragmentation:
    """Return what the free GPUs of *snapshot* are good for, and the moves that would help most."""
    fleet = make_fleet(snapshot, model)
    empty = emptied(fleet)
    free, free_when_empty = free_by_node(fleet), free_by_node(empty)
    states = [fleet.states[state_id] for state_id in fleet.state_ids]
    return Fragmentation(
        free=sum(free),
        total=sum(state.total for state in states),
        closed=sum(state.free for state in states) - sum(free),
        levels=level_names(fleet),
        shapes=tuple(_shape(fleet, empty, free, free_when_empty, gpus) for gpus in usual_sizes(empty)),
        whole=tuple(_whole(fleet, empty, free, free_when_empty)),
        moves=moves(fleet),
    )


def _shape(
    fleet: Fleet, empty: Fleet, free: Sequence[int], free_when_empty: Sequence[int], gpus: int
) -> ShapeCapacity:
    places = [count // gpus for count in free]
    return ShapeCapacity(
        gpus=gpus,
        workers=sum(places),
        empty=sum(count // gpus for count in free_when_empty),
        in_one=largest_by_level(fleet, places),
        busbw=best_busbw(fleet, gpus),
        best=best_busbw(empty, gpus),
    )


def _whole(
    fleet: Fleet, empty: Fleet, free: Sequence[int], free_when_empty: Sequence[int]
) -> list[WholeNodeCapacity]:
    now, when_empty = whole_nodes(fleet, free), whole_nodes(empty, free_when_empty)
    sizes = (1 << exponent for exponent in range(sum(when_empty).bit_length()))
    return [
        WholeNodeCapacity(size, side_by_side(fleet, now, size), side_by_side(empty, when_empty, size))
        for size in sizes
    ]
