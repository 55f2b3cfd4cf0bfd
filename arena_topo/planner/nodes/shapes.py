"""The shapes in which the ranks of a gang can be packed into pods that are all alike."""

from collections.abc import Iterator
from dataclasses import replace

from arena_topo.model.plan.demand import Demand


def shapes(demand: Demand) -> Iterator[Demand]:
    """Yield *demand* in every shape of as many GPUs in all, the largest pods first; none smaller than asked.

    A pod that takes the ranks of several workers asks for as much cpu, memory and devices as they did together.
    """
    ranks = demand.workers * demand.gpus
    for workers in range(1, demand.workers + 1):
        if ranks % workers == 0:
            yield reshaped(demand, ranks // workers)


def reshaped(demand: Demand, gpus: int) -> Demand:
    """Return *demand* as workers of *gpus* GPUs each, with as many GPUs in all and requests in proportion."""
    requests = {name: -(-asked * gpus // demand.gpus) for name, asked in demand.requests.items()}
    workers = demand.workers * demand.gpus // gpus
    return replace(demand, workers=workers, gpus=gpus, requests=requests, coalesce=False)
