"""The room of a fleet for workers of every usual shape, whatever they may ask besides GPUs."""

from collections.abc import Iterator, Sequence

from arena_topo.model.cluster.scheduling import Toleration
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fit import open_to
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import domains, names
from arena_topo.planner.nodes.offers import best_set


def shapes(fleet: Fleet) -> tuple[int, ...]:
    """Return the usual numbers of GPUs of a worker: powers of two, and all of the largest node."""
    largest = max((state.total for state in fleet.states), default=0)
    powers = [1 << bits for bits in range(largest.bit_length()) if 1 << bits <= largest]
    return tuple(sorted({*powers, largest} - {0}))


def usual(fleet: Fleet, gpus: int = 1) -> Demand:
    """Return a worker of *gpus* GPUs that tolerates the taint by which nodes are kept for GPU jobs."""
    resources = sorted({state.resource for state in fleet.states})
    return Demand(1, gpus, tolerations=tuple(Toleration(key=name, operator="Exists") for name in resources))


def free_by_node(fleet: Fleet) -> list[int]:
    """Return the free GPUs of every node that takes pods, 0 for the others."""
    demand = usual(fleet)
    table = [state.free if open_to(demand, state) else 0 for state in fleet.states]
    return [table[kind] for kind in fleet.kinds]


def whole_nodes(fleet: Fleet, free: Sequence[int]) -> list[int]:
    """Return 1 for every node whose GPUs are all free, 0 for the others."""
    states = fleet.states
    return [int(0 < count == states[kind].total) for count, kind in zip(free, fleet.kinds, strict=True)]


def largest(fleet: Fleet, places: Sequence[int]) -> tuple[int, ...]:
    """Return the most *places* in one domain of each level, the closest level first."""
    return (
        max(places, default=0),
        *(
            max((sum(places[each.start : each.end]) for each in domains(fleet, level)), default=0)
            for level in range(1, len(names(fleet)))
        ),
    )


def side_by_side(fleet: Fleet, places: Sequence[int], size: int) -> tuple[int, ...]:
    """Return for every level above the node how many gangs of *size* places fit, each within one domain."""
    return tuple(
        sum(sum(places[each.start : each.end]) // size for each in domains(fleet, level))
        for level in range(1, len(names(fleet)))
    )


def best_busbw(fleet: Fleet, gpus: int) -> float | None:
    """Return the best predicted busbw that *gpus* free GPUs of one node that takes pods can have."""
    demand = usual(fleet, gpus)
    return max(_busbws(demand, fleet), default=None) if gpus > 1 else None


def _busbws(demand: Demand, fleet: Fleet) -> Iterator[float]:
    for state in fleet.states:
        if open_to(demand, state) and (choice := best_set(state, demand.gpus)):
            yield choice.busbw
