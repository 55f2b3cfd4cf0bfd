"""How many workers of a gang each node takes, and whether its launcher fits: what kube-scheduler would check.

Source of the rules: ``k8s.io/kubernetes/pkg/scheduler/framework/plugins`` (noderesources, nodeaffinity,
tainttoleration, nodeunschedulable). What the kubelet then checks, which the scheduler does not foresee, is in ``alignment``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from operator import lt

from arena_topo.model.cluster.scheduling import untolerated
from arena_topo.model.cluster.snapshot import GpuNode, Taint
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Placement
from arena_topo.planner.nodes.alignment import containers_of
from arena_topo.planner.nodes.alike_nodes import AlikeNodes
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import Capacity, capacity_of
from arena_topo.planner.nodes.node_state import NodeState

# NodeUnschedulable lets a pod onto a cordoned node if the pod tolerates this taint.
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
# For each host that is tried for the launcher, the workers are placed once more.
_MOST_HOSTS = 32


def capacity_for(demand: Demand, fleet: Fleet, reserved: tuple[int, Resources] | None = None) -> Capacity:
    """Return how many workers of *demand* fit on every node of *fleet*, at most all of them.

    *reserved* is a node's position and what must stay free on it for another pod.
    """
    by_state = _by_state(demand, fleet)
    most = max(by_state, default=0)
    asked = requests(demand)
    # Mostly even the node with the least has enough, and no node has to be looked at.
    short = {name: amount for name, amount in asked.items() if fleet.least_free[name] < amount * most}
    by_label = demand.node_selector or demand.affinity or (demand.needs_hostname and fleet.without_hostname)
    if not (reserved or by_label) and (groups := fleet.alike[tuple(short)]):
        return _of_groups(groups, by_state, tuple(short.values()))
    places = list(map(by_state.__getitem__, fleet.state_ids))
    # The reserved node has less room than its equals, so places do not follow from a node's state alone.
    alike = reserved is None
    if demand.node_selector or demand.affinity:
        alike = not _unselect(demand, fleet, places) and alike
    if demand.needs_hostname:
        for position in fleet.without_hostname:
            places[position], alike = 0, False
    for resource, amount in asked.items():
        if resource in short:
            alike = not _limit(places, fleet.free[resource], amount, most) and alike
        # The launcher's pod takes one of the node's places for pods, too.
        if reserved:
            position, launcher = reserved
            left = fleet.free[resource][position] - {"pods": 1, **launcher}.get(resource, 0)
            places[position] = max(min(places[position], left // amount), 0)
    return capacity_of(places, by_state if alike else None)


def _of_groups(alike: AlikeNodes, by_state: Sequence[int], amounts: Sequence[int]) -> Capacity:
    """Return the capacity of nodes in groups, each of which has some of the resources that *amounts* are asked of."""
    by_group = [by_state[state_id] for state_id in alike.state_ids]
    whole = by_group
    for index, amount in enumerate(amounts):
        by_group = [min(most, free[index] // amount) for most, free in zip(by_group, alike.free, strict=True)]
    places = list(map(by_group.__getitem__, alike.ids))
    return Capacity(places, by_state if by_group == whole else None, alike, by_group)


def requests(demand: Demand) -> Resources:
    """Return what one worker asks of a node besides GPUs, its place among the node's pods included."""
    return {"pods": 1, **{name: amount for name, amount in demand.requests.items() if amount > 0}}


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


def serves_resource(demand: Demand, state: NodeState) -> bool:
    """Whether nodes of *state* hand out GPUs by the resource that *demand* asks for."""
    return not demand.gpu_resource or demand.gpu_resource == state.resource


def reshaped(demand: Demand, gpus: int) -> Demand:
    """Return *demand* as workers of *gpus* GPUs each, with as many GPUs in all and requests in proportion.

    Four workers of two GPUs and 3 cpu become two workers of four GPUs and 6 cpu.
    """
    # Rounded up, so that the pods of a shape never ask for less in all than those that were asked for.
    in_proportion = {name: -(-amount * gpus // demand.gpus) for name, amount in demand.requests.items()}
    containers = tuple(
        {name: -(-amount * gpus // demand.gpus) for name, amount in asked.items()}
        for asked in demand.containers
    )
    workers = demand.workers * demand.gpus // gpus
    return replace(
        demand, workers=workers, gpus=gpus, requests=in_proportion, containers=containers, coalesce=False
    )


def launcher_fits(demand: Demand, fleet: Fleet, answer: Placement) -> bool:
    """Whether some node still has what the launcher asks once the workers are placed as in *answer*.

    A gang whose launcher stays Pending never starts.
    """
    workers = Counter(slot.node for slot in answer.slots)
    asked, worker = demand.launcher or {}, requests(demand)
    return any(
        _has(asked, fleet, position, {name: n * workers[node.name] for name, n in worker.items()})
        for position, node in enumerate(fleet.nodes)
        if _may_host_launcher(demand, fleet, position)
    )


def launcher_hosts(demand: Demand, fleet: Fleet) -> Iterator[int]:
    """Yield nodes that have what the launcher asks as they are now, those with the fewest free GPUs first."""
    hosts = [
        position
        for position in range(len(fleet.nodes))
        if _may_host_launcher(demand, fleet, position) and _has(demand.launcher or {}, fleet, position, {})
    ]
    # A node without free GPUs takes no worker, so that keeping room on it costs the workers nothing.
    hosts.sort(key=lambda position: fleet.state(position).free)
    yield from hosts[:_MOST_HOSTS]


def _by_state(demand: Demand, fleet: Fleet) -> list[int]:
    """Return the places on nodes of each state by their GPUs, their taints and their NUMA nodes."""
    gpus, most = demand.gpus, 1 if demand.one_per_node else demand.workers
    return [
        # What most states are takes no call.
        (min(state.free // gpus, most) if gpus else most)
        if is_open and (not gpus or serves_resource(demand, state))
        else _places(demand, state)
        for state, is_open in zip(fleet.states, fleet.open_to_all, strict=True)
    ]


def _places(demand: Demand, state: NodeState) -> int:
    if state.free < demand.gpus or not open_to(demand, state):
        return 0
    most = 1 if demand.one_per_node else demand.workers
    # Only cpu, memory and pods limit a gang without GPUs, and those are looked up node by node.
    if demand.gpus:
        most = min(state.free // demand.gpus, most) if serves_resource(demand, state) else 0
    if state.alignment is None:
        return most
    return state.alignment.admitted(containers_of(demand, state.resource), most)


def _unselect(demand: Demand, fleet: Fleet, places: list[int]) -> bool:
    """Set *places* to 0 in place where a node's labels do not fit; whether there was such a node."""
    wrong = [
        position
        for position, count in enumerate(places)
        if count and not selected(demand, fleet.nodes[position])
    ]
    for position in wrong:
        places[position] = 0
    return bool(wrong)


def _limit(places: list[int], free: list[int], amount: int, most: int) -> bool:
    """Lower *places*, *most* at most, in place to how often *free* holds *amount*; whether any was lowered."""
    needed = [amount * count for count in range(most + 1)]
    short = list(compress(range(len(places)), map(lt, free, map(needed.__getitem__, places))))
    for position in short:
        places[position] = free[position] // amount
    return bool(short)


def _may_host_launcher(demand: Demand, fleet: Fleet, position: int) -> bool:
    labels = fleet.nodes[position].labels
    selector = demand.launcher_selector.items()
    return open_to(demand, fleet.state(position)) and all(labels.get(key) == value for key, value in selector)


def _has(asked: Resources, fleet: Fleet, position: int, taken: Resources) -> bool:
    return all(
        fleet.free[name][position] - taken.get(name, 0) >= amount
        for name, amount in {"pods": 1, **asked}.items()
    )
