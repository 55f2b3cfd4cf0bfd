"""Why nodes cannot take workers of a gang, counted; each node by the first thing that keeps them off it."""

from collections import Counter
from collections.abc import Iterator

from arena_topo.model.cluster.scheduling import untolerated
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.notation.words import natural_sort_key, plural, written_amount
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Reason
from arena_topo.planner.nodes.fit import CORDON, offers, requests, selected
from arena_topo.planner.nodes.fleet import Fleet, NodeState


def reasons(demand: Demand, fleet: Fleet) -> tuple[Reason, ...]:
    """Return why the nodes of *fleet* that take no worker of *demand* take none, the most frequent reason first.

    Nodes without GPUs count only for gangs without.
    """
    found = Counter(
        reason
        for at, node in enumerate(fleet.nodes)
        if (reason := _reason(demand, fleet, at, node)) and _meant(demand, fleet.state(at))
    )
    ordered = sorted(found.items(), key=lambda each: (-each[1], natural_sort_key(each[0])))
    return tuple(
        Reason(f"{plural(count, 'node')} {_agreeing(text, count)}", count) for text, count in ordered
    )


def _meant(demand: Demand, state: NodeState) -> bool:
    return not demand.gpus or state.total > 0


def _agreeing(text: str, count: int) -> str:
    verb, _, rest = text.partition(" ")
    singular = {"have": "has", "are": "is", "lack": "lacks", "offer": "offers", "do": "does"}
    return f"{singular.get(verb, verb)} {rest}" if count == 1 else text


def _reason(demand: Demand, fleet: Fleet, at: int, node: GpuNode) -> str:
    return next(_all(demand, fleet, at, node), "")


def _all(demand: Demand, fleet: Fleet, at: int, node: GpuNode) -> Iterator[str]:
    state = fleet.state(at)
    if demand.gpus and not offers(demand, state):
        yield f"offer their GPUs as {state.resource}, not as {demand.gpu_resource}"
    yield from (
        f"lack the label {key}={value}"
        for key, value in demand.node_selector.items()
        if node.labels.get(key) != value
    )
    if demand.affinity and not selected(demand, node):
        yield "do not match the node affinity"
    yield from _closed(demand, node)
    if state.free < demand.gpus:
        yield f"have fewer than {demand.gpus} free GPUs" if demand.gpus > 1 else "have no free GPU"
    yield from (
        f"have less than {written_amount(resource, asked)} free"
        for resource, asked in requests(demand).items()
        if fleet.free(resource)[at] < asked
    )


def _closed(demand: Demand, node: GpuNode) -> Iterator[str]:
    if not node.ready:
        yield "are not ready"
    if node.unschedulable and untolerated((CORDON,), demand.tolerations):
        yield "are cordoned"
    if taint := untolerated(node.taints, demand.tolerations):
        yield f"have the taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"
