"""What the roles that chose before have taken of the nodes, and what that leaves to the next one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.gpus.locality import positions_of
from arena_topo.planner.nodes.alignment import Alignment, containers_of
from arena_topo.planner.nodes.fit import requests
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.node_state import NodeState, Offer


@dataclass(frozen=True, slots=True)
class NodeTaken:
    """What is taken of one node: ``amounts`` by resource, so many ``gpus``, and these positions as bits.

    ``alignment`` is what is left of its NUMA nodes, None where its kubelet refuses no pod.
    """

    amounts: Mapping[str, int] = field(default_factory=dict)
    gpus: int = 0
    mask: int = 0
    alignment: Alignment | None = None


_UNTOUCHED = NodeTaken()


@dataclass(frozen=True, slots=True)
class Taken:
    """What earlier roles take of each node, by its position."""

    nodes: Mapping[int, NodeTaken] = field(default_factory=dict)

    def state(self, fleet: Fleet, position: int) -> NodeState:
        """Return the state that the node at *position* is left in."""
        state, taken = fleet.state(position), self.nodes.get(position, _UNTOUCHED)
        if not (taken.gpus or taken.alignment):
            return state
        mask = None if state.mask is None else state.mask & ~taken.mask
        return replace(state, free=state.free - taken.gpus, mask=mask, alignment=taken.alignment)

    def left(
        self, places: Sequence[int], span: Domain, demand: Demand, fleet: Fleet
    ) -> Iterator[tuple[int, int]]:
        """Yield each node of *span* of which something is taken, with the pods of *demand* that it still takes.

        *places* are those of all nodes of the fleet, were they untouched.
        """
        asked = [(fleet.free[resource], resource, amount) for resource, amount in requests(demand).items()]
        for position, taken in self.nodes.items():
            if not span.start <= position < span.end:
                continue
            most = places[position]
            if most:
                for free, name, amount in asked:
                    most = min(most, (free[position] - taken.amounts.get(name, 0)) // amount)
                if demand.gpus:
                    most = min(most, (fleet.state(position).free - taken.gpus) // demand.gpus)
                if taken.alignment and most > 0:
                    resource = fleet.state(position).resource
                    most = taken.alignment.admitted(containers_of(demand, resource), most)
            yield position, max(most, 0)

    def with_pods(self, demand: Demand, fleet: Fleet, chosen: Sequence[tuple[int, Offer]]) -> "Taken":
        """Return what is taken once pods of *demand* stand on the *chosen* nodes, given by position."""
        nodes, asked = dict(self.nodes), requests(demand)
        # A gang of hundreds takes few offers, mostly of nodes in one state of which nothing is taken.
        known: dict[tuple[int, int, int], NodeTaken] = {}
        for position, offer in chosen:
            before = nodes.get(position, _UNTOUCHED)
            key = id(before), id(offer), fleet.state_ids[position]
            if key not in known:
                state = self.state(fleet, position)
                mask = gpus_of(state, offer, demand.gpus) if demand.gpus else 0
                taken = _more(before, asked, demand.gpus, offer.workers, mask or 0)
                known[key] = _aligned(taken, state, demand, offer.workers, mask or 0)
            nodes[position] = known[key]
        return Taken(nodes)

    def with_counts(self, demand: Demand, fleet: Fleet, counts: Mapping[int, int]) -> "Taken":
        """Return what is taken once so many pods of *demand* stand on each node, whichever GPUs they get."""
        nodes, asked = dict(self.nodes), requests(demand)
        for position, count in counts.items():
            taken = _more(nodes.get(position, _UNTOUCHED), asked, demand.gpus, count, 0)
            nodes[position] = _aligned(taken, self.state(fleet, position), demand, count, 0)
        return Taken(nodes)


def gpus_of(state: NodeState, offer: Offer, gpus: int) -> int | None:
    """Return the positions of the GPUs that *offer* takes of a node in *state*, as bits; None where that is not known.

    Where the links are not known the first free ones are as good as any.
    """
    if offer.choice is not None:
        return offer.choice.mask
    if state.mask is None or not gpus:
        return None
    return sum(1 << position for position in positions_of(state.mask)[: offer.workers * gpus])


def _more(taken: NodeTaken, asked: Resources, gpus: int, pods: int, mask: int) -> NodeTaken:
    amounts = dict(taken.amounts)
    for resource, amount in asked.items():
        amounts[resource] = amounts.get(resource, 0) + amount * pods
    return NodeTaken(amounts, taken.gpus + gpus * pods, taken.mask | mask)


def _aligned(taken: NodeTaken, state: NodeState, demand: Demand, pods: int, mask: int) -> NodeTaken:
    """Return *taken* with what *pods* more, which get the GPUs *mask*, leave of the NUMA nodes of a node in *state*."""
    if state.alignment is None:
        return taken
    containers = containers_of(demand, state.resource)
    return replace(taken, alignment=state.alignment.after(containers, pods, demand.gpus, mask))
