"""Room for the launcher beside the workers: a gang whose launcher waits for ever never starts."""

from collections import Counter
from collections.abc import Iterator

from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Placement
from arena_topo.planner.nodes.fit import open_to, requests
from arena_topo.planner.nodes.fleet import Fleet

_MOST_HOSTS = 32


def launcher_fits(demand: Demand, fleet: Fleet, answer: Placement) -> bool:
    """Whether some node still has what the launcher asks once the workers are placed as in *answer*."""
    workers = Counter(slot.node for slot in answer.slots)
    worker = requests(demand)
    return any(
        _has(demand.launcher, fleet, at, {name: asked * workers[node.name] for name, asked in worker.items()})
        for at, node in enumerate(fleet.nodes)
        if _may_host(demand, fleet, at)
    )


def hosts(demand: Demand, fleet: Fleet) -> Iterator[int]:
    """Yield nodes that have what the launcher asks as they are now, those with the fewest free GPUs first."""
    able = [
        at
        for at in range(len(fleet.nodes))
        if _may_host(demand, fleet, at) and _has(demand.launcher, fleet, at, {})
    ]
    able.sort(key=lambda at: fleet.state(at).free)
    yield from able[:_MOST_HOSTS]


def _may_host(demand: Demand, fleet: Fleet, at: int) -> bool:
    labels = fleet.nodes[at].labels
    asked = demand.launcher_selector.items()
    return open_to(demand, fleet.state(at)) and all(labels.get(key) == value for key, value in asked)


def _has(asked: Resources, fleet: Fleet, at: int, taken: Resources) -> bool:
    return all(
        fleet.free(name)[at] - taken.get(name, 0) >= amount for name, amount in {"pods": 1, **asked}.items()
    )
