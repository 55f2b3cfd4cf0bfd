"""How many workers of every usual shape the free GPUs of a fleet take, whatever they may ask for besides GPUs."""

from collections.abc import Iterator, Sequence

from arena_topo.model.cluster.scheduling import Toleration
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fit import open_to
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import capacity_by_domain, capacity_of, domains_at, level_names
from arena_topo.planner.nodes.node_state import best_set


def usual_sizes(fleet: Fleet) -> tuple[int, ...]:
    """Return the usual numbers of GPUs of a worker: powers of two, and all of the largest node."""
    largest = max((state.total for state in fleet.states), default=0)
    powers = [1 << exponent for exponent in range(largest.bit_length())]
    return tuple(sorted({*powers, largest} - {0}))


def usual_demand(fleet: Fleet, gpus: int = 1) -> Demand:
    """Return a worker of *gpus* GPUs that tolerates the taint by which nodes are reserved for GPU jobs."""
    resources = sorted({state.resource for state in fleet.states})
    return Demand(1, gpus, tolerations=tuple(Toleration(key=name, operator="Exists") for name in resources))


def free_by_node(fleet: Fleet) -> list[int]:
    """Return the free GPUs of every node that takes pods, 0 for the others."""
    demand = usual_demand(fleet)
    by_state = [state.free if open_to(demand, state) else 0 for state in fleet.states]
    return [by_state[state_id] for state_id in fleet.state_ids]


def whole_nodes(fleet: Fleet, free: Sequence[int]) -> list[int]:
    """Return 1 for every node whose GPUs are all free, 0 for the others."""
    states = fleet.states
    return [
        int(0 < count == states[state_id].total)
        for count, state_id in zip(free, fleet.state_ids, strict=True)
    ]


def largest_by_level(fleet: Fleet, places: Sequence[int]) -> tuple[int, ...]:
    """Return the most *places* in one domain of each level, the closest level first."""
    above_nodes = (max(by_domain, default=0) for by_domain in _by_level(fleet, places))
    return (max(places, default=0), *above_nodes)


def side_by_side(fleet: Fleet, places: Sequence[int], size: int) -> tuple[int, ...]:
    """Return for every level above the node how many gangs of *size* places fit, each within one domain."""
    return tuple(sum(count // size for count in by_domain) for by_domain in _by_level(fleet, places))


def best_busbw(fleet: Fleet, gpus: int) -> float | None:
    """Return the best predicted busbw that *gpus* free GPUs of one node that takes pods can have."""
    return max(_busbws(fleet, gpus), default=None) if gpus > 1 else None


def _by_level(fleet: Fleet, places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places in each domain of every level above the node, the closest level first."""
    capacity = capacity_of(places)
    for level in range(1, len(level_names(fleet))):
        yield capacity_by_domain(capacity, domains_at(fleet, level))


def _busbws(fleet: Fleet, gpus: int) -> Iterator[float]:
    demand = usual_demand(fleet, gpus)
    for state in fleet.states:
        if open_to(demand, state) and (choice := best_set(state, gpus)):
            yield choice.busbw
