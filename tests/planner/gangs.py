"""Gangs that have their places on small clusters, and what any other choice would be worth."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand, Placement
from arena_topo.model.plan_record import Slot
from arena_topo.planner.fleet import Fleet
from arena_topo.planner.offers import nic_rate
from arena_topo.planner.plan import plan_on
from tests.planner.fleets import NVIDIA, fleet_of, objectives, snapshots

Gang = tuple[Snapshot, Demand, tuple[Slot, ...]]
"""A cluster on which the workers of a gang are placed, and hold what they have."""


def occupied(snapshot: Snapshot, demand: Demand, slots: Sequence[Slot]) -> Snapshot:
    """Return *snapshot* with workers of *demand* at *slots*."""
    nodes = []
    for node in snapshot.nodes:
        own = [slot for slot in slots if slot.node == node.name]
        requested = dict(node.requested)
        for name, amount in {"pods": 1, NVIDIA: demand.gpus, **demand.requests}.items():
            requested[name] = requested.get(name, 0) + amount * len(own)
        used = (node.used or frozenset()).union(*(slot.gpus or () for slot in own))
        nodes.append(replace(node, requested=requested, used=used))
    return replace(snapshot, nodes=tuple(nodes))


def released(snapshot: Snapshot, demand: Demand, slots: Sequence[Slot]) -> Snapshot:
    """Return *snapshot* without the workers at *slots*."""
    nodes = []
    for node in snapshot.nodes:
        own = [slot for slot in slots if slot.node == node.name]
        each = {"pods": 1, NVIDIA: demand.gpus, **demand.requests}
        requested = {name: amount - each.get(name, 0) * len(own) for name, amount in node.requested.items()}
        freed = {gpu for slot in own for gpu in slot.gpus or ()}
        nodes.append(replace(node, requested=requested, used=(node.used or frozenset()) - freed))
    return replace(snapshot, nodes=tuple(nodes))


@st.composite
def gangs(draw: st.DrawFn, most: int = 5) -> Gang:
    """Draw a gang that fits on a small cluster, and the cluster with it."""
    snapshot = draw(snapshots(4))
    demand = Demand(
        workers=draw(st.integers(1, most)),
        gpus=draw(st.sampled_from([1, 1, 2, 3])),
        requests=draw(st.sampled_from([{}, {"cpu": 1000}])),
        objective=draw(objectives()),
    )
    while demand.workers:
        answer = plan_on(demand, fleet_of(snapshot))
        if isinstance(answer, Placement):
            return occupied(snapshot, demand, answer.slots), demand, answer.slots
        demand = replace(demand, workers=demand.workers - 1)
    return snapshot, replace(demand, workers=0), ()


def value(
    demand: Demand,
    fleet: Fleet,
    unions: Mapping[int, int],
    taken: Mapping[int, int],
    freed: Mapping[int, int] | None = None,
) -> tuple[float, ...]:
    """Return the score of a gang that has the GPUs *unions* by position of the node, the lowest best.

    *taken* are, of what is free or *freed* on these nodes, the GPUs that the choice takes.
    """
    several = len(unions) > 1
    inside, busbw, left, loss = float("inf"), float("inf"), 0, 0.0
    for position, union in unions.items():
        state, count = fleet.state(position), union.bit_count()
        machine = state.machine
        assert machine is not None
        assert state.mask is not None
        rate = machine.busbw(union) if count > 1 else float("inf")
        inside = min(inside, rate)
        busbw = min(busbw, rate, nic_rate(state, count) if several else rate)
        available = state.mask | (freed or {}).get(position, 0)
        left += (available & ~taken[position]).bit_count()
        loss += machine.loss(available, taken[position])
    by_objective: dict[Objective, tuple[float, ...]] = {
        Objective.BANDWIDTH: (-busbw, -inside, left),
        Objective.PACK: (left, -busbw, -inside),
    }
    return (*by_objective[demand.objective], round(loss, 3))


def mask_on(fleet: Fleet, position: int, slots: Sequence[Slot]) -> int:
    """Return the positions of the GPUs that *slots* have on the node at *position*."""
    node = fleet.nodes[position]
    own = {gpu for slot in slots if slot.node == node.name for gpu in slot.gpus or ()}
    return sum(1 << place for place, gpu in enumerate(node.gpus) if gpu.index in own)


def ways(most: Sequence[int], workers: int, least: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the ways to put *workers* on nodes that take *most* each, at *least* so many on every node."""
    if not most:
        if workers == 0:
            yield ()
        return
    for taken in range(least, min(most[0], workers) + 1):
        for rest in ways(most[1:], workers - taken, least):
            yield (taken, *rest)
