"""How many workers of a gang each node takes: what kube-scheduler would check, node by node.

Source of the rules: ``k8s.io/kubernetes/pkg/scheduler/framework/plugins`` (noderesources, nodeaffinity,
tainttoleration, nodeunschedulable).
"""

from itertools import compress
from operator import lt

from arena_topo.model.cluster.scheduling import untolerated
from arena_topo.model.cluster.snapshot import GpuNode, Taint
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fleet import Fleet, NodeState

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def places(demand: Demand, fleet: Fleet, reserved: tuple[int, Resources] | None = None) -> list[int]:
    """Return for every node of *fleet* how many workers of *demand* fit on it, at most all of them.

    *reserved* is a node's position and what must stay free on it for another pod.
    """
    return fitting(demand, fleet, reserved)[0]


def fitting(
    demand: Demand, fleet: Fleet, reserved: tuple[int, Resources] | None = None
) -> tuple[list[int], list[int] | None]:
    """Return ``places``, and the same by state; None there where nodes of one state differ in it."""
    table = [_by_state(demand, state) for state in fleet.states]
    found = list(map(table.__getitem__, fleet.kinds))
    alike = reserved is None
    if demand.node_selector or demand.affinity:
        alike = not _select(demand, fleet, found) and alike
    most = max(table, default=0)
    for resource, asked in requests(demand).items():
        if fleet.least(resource) < asked * most:
            alike = not _limit(found, fleet.free(resource), asked, most) and alike
        if reserved:
            at, kept = reserved
            left = fleet.free(resource)[at] - {"pods": 1, **kept}.get(resource, 0)
            found[at] = max(min(found[at], left // asked), 0)
    return found, table if alike else None


def requests(demand: Demand) -> Resources:
    """Return what one worker asks of a node besides GPUs, its place among the node's pods included."""
    return {"pods": 1, **{name: asked for name, asked in demand.requests.items() if asked > 0}}


def open_to(demand: Demand, state: NodeState) -> bool:
    """Whether nodes of *state* take pods with the tolerations of *demand* at all."""
    if not state.ready or (state.taints and untolerated(state.taints, demand.tolerations)):
        return False
    return not state.unschedulable or not untolerated((CORDON,), demand.tolerations)


def selected(demand: Demand, node: GpuNode) -> bool:
    """Whether *node* meets the node selector and the required node affinity of *demand*."""
    labels = node.labels
    if any(labels.get(key) != value for key, value in demand.node_selector.items()):
        return False
    return not demand.affinity or any(term.selects(node.name, labels) for term in demand.affinity)


def offers(demand: Demand, state: NodeState) -> bool:
    """Whether nodes of *state* hand out GPUs by the resource that *demand* asks for."""
    return not demand.gpu_resource or demand.gpu_resource == state.resource


def _by_state(demand: Demand, state: NodeState) -> int:
    if state.free < demand.gpus or not open_to(demand, state):
        return 0
    if not demand.gpus:
        return demand.workers
    return min(state.free // demand.gpus, demand.workers) if offers(demand, state) else 0


def _select(demand: Demand, fleet: Fleet, found: list[int]) -> bool:
    """Set *found* to 0 in place where a node's labels do not fit; whether there was such a node."""
    wrong = [at for at, count in enumerate(found) if count and not selected(demand, fleet.nodes[at])]
    for at in wrong:
        found[at] = 0
    return bool(wrong)


def _limit(found: list[int], free: list[int], asked: int, most: int) -> bool:
    """Lower *found*, *most* at most, in place where *free* has less than that many times *asked*; whether it did."""
    needed = [asked * count for count in range(most + 1)]
    short = list(compress(range(len(found)), map(lt, free, map(needed.__getitem__, found))))
    for at in short:
        found[at] = free[at] // asked
    return bool(short)
