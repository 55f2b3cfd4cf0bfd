"""The scheduler: pods one by one, on ACK gangs whole or not at all, in kube-scheduler's words (1.36.3)."""

import copy
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, islice

from arena_topo.model.cluster import Taint
from arena_topo.model.keys import (
    ACK_GPU,
    ACK_SCHEDULE,
    ACK_SCHEDULE_TOPOLOGY,
    GANG_MIN_AVAILABLE,
    GANG_NAME,
    TOPOLOGY_NAME,
)
from arena_topo.model.objects import Object
from arena_topo.model.pods import Requirement, SelectorTerm, Toleration, untolerated
from arena_topo.model.text.quantity import resources
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.sim.controllers import (
    NODES,
    PODS,
    has_ended,
    is_deleting,
    put_status,
    record_event,
    set_condition,
)
from arena_topo.topology.objects import pod_facts

_NAME = "default-scheduler"
_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_GangKey = tuple[str, str]
"""Namespace and name of a gang."""


@dataclass(slots=True)
class _Gang:
    """Pods that start together: those that wait, how many have a node, and how many there must be."""

    name: str
    minimum: int
    bound: int = 0
    waiting: list[Object] = field(default_factory=list)


@dataclass(slots=True)
class SchedulerNode:
    """A node as the scheduler sees it; ``free`` amounts and ``pods`` change as pods are placed."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    capacity: dict[str, int]
    free: dict[str, int]
    pods: list[Object] = field(default_factory=list)

    def add(self, pod: Object) -> None:
        """Count *pod* as running here."""
        for name, value in _requests_of(pod).items():
            self.free[name] = self.free.get(name, 0) - value
        self.pods.append(pod)

    def remove(self, pod: Object) -> None:
        """Count *pod* as not running here."""
        for name, value in _requests_of(pod).items():
            self.free[name] = self.free.get(name, 0) + value
        self.pods.remove(pod)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a node cannot take a pod, and whether preempting others there would change it."""

    reasons: tuple[str, ...] = ()
    preemptible: bool = False


def schedule(api: Api) -> None:
    """Schedule whatever can be scheduled now."""
    pods = api.store.values(PODS)
    waiting = [pod for pod in pods if _is_waiting(pod)]
    # Most changes bring nothing to schedule: the nodes need not be summed up then.
    if not waiting:
        return
    nodes = _nodes(api, pods)
    # Arena labels every gang. ACK's scheduler starts one by these labels; the stock one does not know them.
    starts_gangs = any(node.labels.get(ACK_SCHEDULE) == ACK_SCHEDULE_TOPOLOGY for node in nodes)
    gangs: dict[_GangKey, _Gang] = {}
    for pod in sorted(waiting, key=_order):
        key = _gang_of(pod) if starts_gangs else None
        if pod["spec"].get("schedulingGates"):
            _set_unscheduled(api, pod, "SchedulingGated", _GATED)
        elif key is None:
            _place(api, pod, nodes)
        else:
            gang = gangs.setdefault(key, _Gang("/".join(key), _minimum(pod)))
            gang.waiting.append(pod)
    for key, gang in gangs.items():
        gang.bound = sum(_gang_of(pod) == key and bool(pod["spec"].get("nodeName")) for pod in pods)
        _place_gang(api, gang, nodes)


def _nodes(api: Api, pods: list[Object]) -> list[SchedulerNode]:
    states = {state.name: state for state in map(node_state, api.store.values(NODES))}
    for pod in pods:
        state = states.get(pod["spec"].get("nodeName", ""))
        if state is not None and not has_ended(pod):
            state.add(pod)
    return sorted(states.values(), key=lambda state: state.name)


def _place(api: Api, pod: Object, nodes: list[SchedulerNode]) -> None:
    chosen, verdicts = _choose(pod, nodes)
    if chosen is None:
        _reject(api, pod, _explain(verdicts))
        return
    chosen.add(pod)
    _bind(api, pod, chosen.name)


def _place_gang(api: Api, gang: _Gang, nodes: list[SchedulerNode]) -> None:
    """Bind as many pods of a gang as have room, or none where that leaves it below its minimum."""
    count = gang.bound + len(gang.waiting)
    if count < gang.minimum:
        numbers = f"current pods number: {count}, minMember of group: {gang.minimum}"
        text = f"pre-filter pod {{}} cannot find enough sibling pods, {numbers}"
        _reject_all(api, gang.waiting, text)
        return
    # Without an arrangement, as on every cluster but ACK's, each pod goes to the node that suits it best.
    arranged = _arrange(gang.waiting, nodes) or {}
    by_name = {node.name: node for node in nodes}
    placed: list[tuple[Object, SchedulerNode]] = []
    failed: list[tuple[Object, str]] = []
    for pod in gang.waiting:
        node = by_name.get(arranged.get(pod["metadata"]["name"], ""))
        chosen, verdicts = (node, []) if node else _choose(pod, nodes)
        if chosen is None:
            failed.append((pod, _explain(verdicts)))
        else:
            chosen.add(pod)
            placed.append((pod, chosen))
    if gang.bound + len(placed) >= gang.minimum:
        if arranged:
            _annotate_gpus(api, placed)
        for pod, node in placed:
            _bind(api, pod, node.name)
    else:
        # The room is free again for the gangs behind this one.
        for pod, node in placed:
            node.remove(pod)
        culprit = failed[0][0]["metadata"]["name"]
        text = f"due to Pod {culprit} is unschedulable even after PostFilter"
        _reject_all(api, [pod for pod, _ in placed], f"PodGroup {gang.name} gets rejected {text}")
    for pod, message in failed:
        _reject(api, pod, message)


def _annotate_gpus(api: Api, placed: list[tuple[Object, SchedulerNode]]) -> None:
    node, pods = placed[0][1], [pod for pod, _ in placed]
    # The gang's own pods are on the node already, and have no GPUs yet.
    others = [pod for pod in node.pods if not any(pod is own for own in pods)]
    annotations = _choose_gpus(api, replace(node, pods=others), pods)
    for pod in pods:
        if gpus := annotations.get(pod["metadata"]["name"]):
            body = copy.deepcopy(pod)
            body["metadata"].setdefault("annotations", {})[_GROUP] = gpus
            api.store.put(PODS, body)


def _bind(api: Api, pod: Object, node: str) -> None:
    meta = pod["metadata"]
    body = copy.deepcopy(api.get(api.kind("v1", "Pod"), meta["namespace"], meta["name"]))
    body["spec"]["nodeName"] = node
    conditions = [c for c in body["status"].get("conditions", []) if c["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    body["status"]["conditions"] = [*conditions, scheduled | {"lastTransitionTime": timestamp()}]
    bound = api.store.put(PODS, body)
    text = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
    record_event(api, bound, _NAME, "Scheduled", text, action="Binding")


def _reject_all(api: Api, pods: list[Object], text: str) -> None:
    for pod in pods:
        _reject(api, pod, text.replace("{}", pod["metadata"]["name"]))


def _reject(api: Api, pod: Object, message: str) -> None:
    if _set_unscheduled(api, pod, "Unschedulable", message):
        reason = "FailedScheduling"
        record_event(api, pod, _NAME, reason, message, warning=True, action="Scheduling")


def _set_unscheduled(api: Api, pod: Object, reason: str, message: str) -> bool:
    """Write why *pod* waits; return whether that is new."""
    status = copy.deepcopy(pod["status"])
    if not set_condition(status, "PodScheduled", "False", reason, message):
        return False
    put_status(api, PODS, pod, status)
    return True


def _is_waiting(pod: Object) -> bool:
    spec = pod["spec"]
    # Pods of other schedulers (Volcano, Kueue) wait and get no condition, as on a cluster without them.
    if spec.get("schedulerName", _NAME) != _NAME or spec.get("nodeName"):
        return False
    return not has_ended(pod) and not is_deleting(pod)


def _order(pod: Object) -> tuple[int, str, str]:
    meta = pod["metadata"]
    # The queue's order: higher priorities first, then older pods.
    return (-pod["spec"].get("priority", 0), meta["creationTimestamp"], meta["name"])


def _gang_of(pod: Object) -> _GangKey | None:
    """Return the gang that a pod belongs to, by the labels of coscheduling; its PodGroups are not served."""
    name = (pod["metadata"].get("labels") or {}).get(GANG_NAME)
    return (pod["metadata"]["namespace"], name) if name else None


def _minimum(pod: Object) -> int:
    """Return how many pods of the gang of *pod* must start together; 0 where its labels do not say."""
    labelled = pod["metadata"]["labels"].get(GANG_MIN_AVAILABLE, "")
    return int(labelled) if labelled.isdigit() else 0


def _choose(pod: Object, nodes: list[SchedulerNode]) -> tuple[SchedulerNode | None, list[_Verdict]]:
    """Return the node that suits *pod* best, the emptiest, or what speaks against each node."""
    requests, verdicts, fitting = _requests_of(pod), [], []
    for node in nodes:
        verdict = _judge(pod, requests, node, nodes)
        if verdict is None:
            fitting.append(node)
        else:
            verdicts.append(verdict)
    # cpu and memory always count, as in kube-scheduler's LeastAllocated; what the pod asks for counts, too.
    resources = ({"cpu", "memory"} | requests.keys()) - {"pods"}
    best = min(fitting, key=lambda node: (_load(node, resources), node.name), default=None)
    return best, verdicts


def _load(node: SchedulerNode, resources: set[str]) -> float:
    """Return the mean share of *resources* in use; of two alike, the node with fewer pods is the emptier."""
    shares = [
        1 - node.free.get(name, 0) / node.capacity[name] for name in resources if node.capacity.get(name)
    ]
    return round(sum(shares) / len(shares), 6) + len(node.pods) * 1e-6 if shares else 0.0


def _explain(verdicts: list[_Verdict]) -> str:
    total = len(verdicts)
    if not total:
        return "no nodes available to schedule pods"
    head = f"0/{total} nodes are available"
    counts = Counter(reason for verdict in verdicts for reason in verdict.reasons)
    # kube-scheduler sorts the texts, counts included: "10 Insufficient cpu" comes before "2 Insufficient
    # memory".
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    preemptible = sum(verdict.preemptible for verdict in verdicts)
    tails = [f"{preemptible} No preemption victims found for incoming pod"] if preemptible else []
    if total - preemptible:
        tails.append(f"{total - preemptible} Preemption is not helpful for scheduling")
    return f"{head}: {reasons}. no new claims to deallocate, preemption: {head}: {', '.join(sorted(tails))}."


# Which nodes can take a pod, and why the others cannot.
#
# Source: k8s.io/kubernetes pkg/scheduler/framework/plugins.


def node_state(node: Object) -> SchedulerNode:
    """Return the state of an empty node."""
    spec, meta = node.get("spec", {}), node["metadata"]
    taints = tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints") or ())
    allocatable = resources(node.get("status", {}).get("allocatable"))
    unschedulable = bool(spec.get("unschedulable"))
    labels = meta.get("labels") or {}
    return SchedulerNode(meta["name"], labels, taints, unschedulable, allocatable, dict(allocatable))


def _requests_of(pod: Object) -> dict[str, int]:
    """Return the amounts that a pod requests, of which ``pods`` is always 1."""
    return {**pod_facts(pod).requests, "pods": 1}


def _judge(
    pod: Object, requests: Mapping[str, int], node: SchedulerNode, nodes: list[SchedulerNode]
) -> _Verdict | None:
    """Return why *node* cannot take *pod* with its *requests*, None if it can."""
    tolerations = tolerations_of(pod["spec"])
    # A pod that tolerates the taint of a cordoned node may go there before the node has the taint, too.
    if node.unschedulable and untolerated((_CORDON,), tolerations):
        return _Verdict(("node(s) were unschedulable",))
    if untolerated(node.taints, tolerations):
        return _Verdict(("node(s) had untolerated taint(s)",))
    if not is_selected(pod["spec"], node):
        return _Verdict(("node(s) didn't match Pod's node affinity/selector",))
    # An overcommitted node has less than nothing free; a request of 0 fits even there.
    short = [name for name, value in requests.items() if value > max(node.free.get(name, 0), 0)]
    if short:
        words = tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in short)
        # Evicting others helps only where the node is big enough when it is empty.
        return _Verdict(words, all(requests[name] <= node.capacity.get(name, 0) for name in short))
    constraints = pod["spec"].get("topologySpreadConstraints") or ()
    hard = [c for c in constraints if c.get("whenUnsatisfiable") == "DoNotSchedule"]
    if any(_is_skewed(pod, constraint, node, nodes) for constraint in hard):
        return _Verdict(("node(s) didn't match pod topology spread constraints",), preemptible=True)
    return None


def tolerations_of(spec: Object) -> tuple[Toleration, ...]:
    """Return the tolerations of a pod's *spec*."""
    return tuple(
        Toleration(t.get("key", ""), t.get("operator") or "Equal", t.get("value", ""), t.get("effect", ""))
        for t in spec.get("tolerations") or ()
    )


def is_selected(spec: Object, node: SchedulerNode) -> bool:
    """Whether a pod's node selector and required node affinity choose *node*."""
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    # Terms are alternatives: without any that is required every node will do, with an empty list none.
    if required is None:
        return True
    return any(
        SelectorTerm(
            _requirements(term.get("matchExpressions")), _requirements(term.get("matchFields"))
        ).selects(node.name, node.labels)
        for term in required.get("nodeSelectorTerms") or []
    )


def _requirements(expressions: Iterable[Object] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(expression["key"], expression["operator"], tuple(expression.get("values") or ()))
        for expression in expressions or ()
    )


def _is_skewed(pod: Object, constraint: Object, node: SchedulerNode, nodes: list[SchedulerNode]) -> bool:
    """Whether *pod* on *node* would break a spread constraint.

    Example: with ``maxSkew: 1`` over hostnames and two pods on node a, none on b, a third pod on a would make
    the skew 3 - 0, more than 1; on b it makes 1 - 0.
    """
    key = constraint["topologyKey"]
    # A node without the key is in no domain, and kube-scheduler never uses it.
    if key not in node.labels:
        return True
    counts: dict[str, int] = {}
    for other in nodes:
        # By the default nodeAffinityPolicy, Honor, nodes that the pod cannot use do not count: an empty
        # domain of theirs would make every other one look too full.
        if key in other.labels and is_selected(pod["spec"], other):
            domain = other.labels[key]
            matching = sum(_is_counted(pod, constraint, placed) for placed in other.pods)
            counts[domain] = counts.get(domain, 0) + matching
    skew = (
        counts.get(node.labels[key], 0) + _is_counted(pod, constraint, pod) - min(counts.values(), default=0)
    )
    return skew > int(constraint["maxSkew"])


def _is_counted(pod: Object, constraint: Object, other: Object) -> bool:
    """Whether *other* is one of the pods that a constraint of *pod* spreads."""
    # A constraint without a selector counts no pod, and pods of other namespaces never count.
    selector = constraint.get("labelSelector")
    if selector is None or other["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    labels = other["metadata"].get("labels") or {}
    return (selector.get("matchLabels") or {}).items() <= labels.items() and all(
        requirement.holds(labels) for requirement in _requirements(selector.get("matchExpressions"))
    )


# ACK's topology mode: all pods of a job on one node, on the GPUs whose weakest link is the strongest.
#
# Source of the rule: kubeflow/arena 0.15.5 pkg/topnode and Alibaba Cloud's guide; the annotation names each
# pod's GPUs.

_GROUP = "topology.kubernetes.io/gpu-group"
_CONFIG_MAPS = ("", "configmaps")


def _arrange(pods: list[Object], nodes: list[SchedulerNode]) -> dict[str, str] | None:
    """Return the node of every pod of a job that asks for topology: the tightest that takes them all.

    None where the pods do not ask, or no single node has room: the scheduler then places them one by one.
    """
    if not all(_wants_topology(pod) for pod in pods):
        return None
    count = sum(_requests_of(pod).get(ACK_GPU, 0) for pod in pods)
    fitting = [
        node
        for node in nodes
        if node.free.get(ACK_GPU, 0) >= count
        and all(_judge(pod, _requests_of(pod), node, nodes) is None for pod in pods)
    ]
    if not fitting:
        return None
    # The fullest node that has room: the emptier ones stay whole for bigger jobs.
    best = min(fitting, key=lambda node: (node.free[ACK_GPU], node.name))
    return {pod["metadata"]["name"]: best.name for pod in pods}


def _wants_topology(pod: Object) -> bool:
    return TOPOLOGY_NAME in (pod["metadata"].get("labels") or {}) and bool(_requests_of(pod).get(ACK_GPU))


def _choose_gpus(api: Api, node: SchedulerNode, pods: list[Object]) -> dict[str, str]:
    """Return every pod's annotation: its GPUs of the free set whose weakest link is the strongest.

    Example: four GPUs of a DGX-1 are 0,1,2,3, where each pair has an NVLink, and not 0,1,2,5, where one pair
    has none.
    """
    rates = _rates(api, node.name)
    allocated = _allocated(node)
    free = [index for index in range(len(rates)) if index not in allocated]
    counts = {pod["metadata"]["name"]: _requests_of(pod)[ACK_GPU] for pod in pods}
    size = sum(counts.values())
    # Without ACK's ConfigMap there are no rates to choose by: the pods are bound, and their GPUs are not
    # named.
    if size > len(free):
        return {}
    best = max(combinations(free, size), key=lambda gpus: _weakest(rates, gpus))
    gpus, annotations = iter(best), {}
    for name, count in counts.items():
        annotations[name] = ",".join(str(index) for index in islice(gpus, count))
    return annotations


def _weakest(rates: list[list[float]], gpus: tuple[int, ...]) -> float:
    return min((rates[a][b] for a, b in combinations(gpus, 2)), default=0.0)


def _rates(api: Api, node: str) -> list[list[float]]:
    for stored in api.store.scan(_CONFIG_MAPS, "kube-system"):
        if (stored.body["metadata"].get("labels") or {}).get("nodename") == node:
            rates: list[list[float]] = json.loads(stored.body["data"]["bandwidth"])
            return rates
    return []


def _allocated(node: SchedulerNode) -> set[int]:
    texts = [(pod["metadata"].get("annotations") or {}).get(_GROUP, "") for pod in node.pods]
    return {int(index) for text in texts for index in text.split(",") if index}
