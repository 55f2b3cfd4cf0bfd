"""The scheduler: pods one by one, gangs as a whole or not at all."""

import copy
from collections import Counter
from dataclasses import dataclass, field, replace

from arena_topo.model.keys import GANG_MIN_AVAILABLE, GANG_NAME
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.sim.objects import (
    ENDED_PHASES,
    NODES,
    PODS,
    is_deleting,
    put_status,
    record_event,
    set_condition,
)
from arena_topo.sandbox.sim.scheduling import ack_topology
from arena_topo.sandbox.sim.scheduling.filters import SchedulerNode, Verdict, judge, node_state, requests_of

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
GATED = "Scheduling is blocked due to non-empty scheduling gates"
# kube-scheduler, and the second scheduler that sigs.k8s.io/scheduler-plugins installs for coscheduling.
SCHEDULERS = frozenset({"default-scheduler", "scheduler-plugins-scheduler"})
_COMPONENT = "default-scheduler"

GangKey = tuple[str, str]
"""Namespace and name of a gang."""


@dataclass(slots=True)
class Gang:
    """Pods that start together: those that wait, how many have a node, and how many there must be."""

    name: str
    minimum: int
    bound: int = 0
    waiting: list[Object] = field(default_factory=list)


class Scheduler:
    """Binds pods to nodes."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def step(self) -> None:
        """Schedule whatever can be scheduled now."""
        pods = self._api.store.values(PODS)
        waiting = [pod for pod in pods if _is_waiting(pod)]
        # Most changes bring nothing to schedule: the nodes need not be summed up then.
        if not waiting:
            return
        nodes = self._nodes(pods)
        gangs: dict[GangKey, Gang] = {}
        for pod in sorted(waiting, key=_order):
            key = gang_of(pod)
            if pod["spec"].get("schedulingGates"):
                self._set_unscheduled(pod, "SchedulingGated", GATED)
            elif key is None:
                self._place(pod, nodes)
            else:
                gang = gangs.setdefault(key, Gang("/".join(key), self._minimum(key, pod)))
                gang.waiting.append(pod)
        for key, gang in gangs.items():
            gang.bound = sum(gang_of(pod) == key and bool(pod["spec"].get("nodeName")) for pod in pods)
            self._place_gang(gang, nodes)

    def _nodes(self, pods: list[Object]) -> list[SchedulerNode]:
        states = {state.name: state for state in map(node_state, self._api.store.values(NODES))}
        for pod in pods:
            state = states.get(pod["spec"].get("nodeName", ""))
            if state is not None and pod["status"].get("phase") not in ENDED_PHASES:
                state.add(pod)
        return sorted(states.values(), key=lambda state: state.name)

    def _minimum(self, key: GangKey, pod: Object) -> int:
        """Return how many pods of a gang must start together, by label or PodGroup; 0 where neither says it."""
        labelled = pod["metadata"]["labels"].get(GANG_MIN_AVAILABLE, "")
        if labelled.isdigit():
            return int(labelled)
        for kind in self._api.registry:
            if kind.kind == "PodGroup" and (group := self._api.find(kind, *key)):
                return int(group["spec"].get("minMember", 1))
        return 0

    def _place(self, pod: Object, nodes: list[SchedulerNode]) -> None:
        chosen, verdicts = _choose(pod, nodes)
        if chosen is None:
            self._reject(pod, explain(verdicts))
            return
        chosen.add(pod)
        self._bind(pod, chosen.name)

    def _place_gang(self, gang: Gang, nodes: list[SchedulerNode]) -> None:
        """Bind as many pods of a gang as have room, or none where that leaves it below its minimum."""
        count = gang.bound + len(gang.waiting)
        if gang.minimum == 0:
            self._reject_all(gang.waiting, f"PodGroup {gang.name} not found")
            return
        if count < gang.minimum:
            text = f"cannot find enough sibling pods, current pods number: {count}, minMember of group: {gang.minimum}"
            self._reject_all(gang.waiting, f"pre-filter pod {{}} {text}")
            return
        # Without an arrangement, as on every cluster but ACK's, each pod goes to the node that suits it best.
        arranged = ack_topology.arrange(gang.waiting, nodes) or {}
        by_name = {node.name: node for node in nodes}
        placed: list[tuple[Object, SchedulerNode]] = []
        failed: list[tuple[Object, str]] = []
        for pod in gang.waiting:
            node = by_name.get(arranged.get(pod["metadata"]["name"], ""))
            chosen, verdicts = (node, []) if node else _choose(pod, nodes)
            if chosen is None:
                failed.append((pod, explain(verdicts)))
            else:
                chosen.add(pod)
                placed.append((pod, chosen))
        if gang.bound + len(placed) >= gang.minimum:
            if arranged:
                self._annotate_gpus(placed)
            for pod, node in placed:
                self._bind(pod, node.name)
        else:
            # The room is free again for the gangs behind this one.
            for pod, node in placed:
                node.remove(pod)
            culprit = failed[0][0]["metadata"]["name"]
            text = f"due to Pod {culprit} is unschedulable even after PostFilter"
            self._reject_all([pod for pod, _ in placed], f"PodGroup {gang.name} gets rejected {text}")
        for pod, message in failed:
            self._reject(pod, message)

    def _annotate_gpus(self, placed: list[tuple[Object, SchedulerNode]]) -> None:
        """Write on the pods of a gang on one ACK node which GPUs they get."""
        node, pods = placed[0][1], [pod for pod, _ in placed]
        # The gang's own pods are on the node already, and have no GPUs yet.
        others = [pod for pod in node.pods if not any(pod is own for own in pods)]
        annotations = ack_topology.choose_gpus(self._api, replace(node, pods=others), pods)
        for pod in pods:
            if gpus := annotations.get(pod["metadata"]["name"]):
                body = copy.deepcopy(pod)
                body["metadata"].setdefault("annotations", {})[ack_topology.GROUP] = gpus
                self._api.store.put(PODS, body)

    def _bind(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        body = copy.deepcopy(self._api.get(self._api.kind("v1", "Pod"), meta["namespace"], meta["name"]))
        body["spec"]["nodeName"] = node
        conditions = [c for c in body["status"].get("conditions", []) if c["type"] != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        body["status"]["conditions"] = [*conditions, scheduled | {"lastTransitionTime": timestamp()}]
        bound = self._api.store.put(PODS, body)
        text = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        record_event(self._api, bound, _COMPONENT, "Scheduled", text, action="Binding")

    def _reject_all(self, pods: list[Object], text: str) -> None:
        for pod in pods:
            self._reject(pod, text.replace("{}", pod["metadata"]["name"]))

    def _reject(self, pod: Object, message: str) -> None:
        if self._set_unscheduled(pod, "Unschedulable", message):
            reason = "FailedScheduling"
            record_event(self._api, pod, _COMPONENT, reason, message, warning=True, action="Scheduling")

    def _set_unscheduled(self, pod: Object, reason: str, message: str) -> bool:
        """Write why *pod* waits; return whether that is new."""
        status = copy.deepcopy(pod["status"])
        if not set_condition(status, "PodScheduled", "False", reason, message):
            return False
        put_status(self._api, PODS, pod, status)
        return True


def _is_waiting(pod: Object) -> bool:
    spec = pod["spec"]
    # Pods of schedulers that are not simulated (Volcano, Kueue) wait and get no condition, as on a cluster without them.
    if spec.get("schedulerName", "default-scheduler") not in SCHEDULERS or spec.get("nodeName"):
        return False
    return pod["status"].get("phase") not in ENDED_PHASES and not is_deleting(pod)


def _order(pod: Object) -> tuple[int, str, str]:
    meta = pod["metadata"]
    # The queue's order: higher priorities first, then older pods.
    return (-pod["spec"].get("priority", 0), meta["creationTimestamp"], meta["name"])


def gang_of(pod: Object) -> GangKey | None:
    """Return the gang that a pod belongs to, by the labels of coscheduling, new and old."""
    labels = pod["metadata"].get("labels") or {}
    name = labels.get(GROUP_LABEL) or labels.get(GANG_NAME)
    return (pod["metadata"]["namespace"], name) if name else None


def _choose(pod: Object, nodes: list[SchedulerNode]) -> tuple[SchedulerNode | None, list[Verdict]]:
    """Return the node that suits *pod* best, the emptiest, or what speaks against each node."""
    requests, verdicts, fitting = requests_of(pod), [], []
    for node in nodes:
        verdict = judge(pod, requests, node, nodes)
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


def explain(verdicts: list[Verdict]) -> str:
    """Return kube-scheduler's message for a pod that no node can take."""
    total = len(verdicts)
    if not total:
        return "no nodes available to schedule pods"
    head = f"0/{total} nodes are available"
    counts = Counter(reason for verdict in verdicts for reason in verdict.reasons)
    # kube-scheduler sorts the texts, counts included: "10 Insufficient cpu" comes before "2 Insufficient memory".
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    preemptible = sum(verdict.preemptible for verdict in verdicts)
    tails = [f"{preemptible} No preemption victims found for incoming pod"] if preemptible else []
    if total - preemptible:
        tails.append(f"{total - preemptible} Preemption is not helpful for scheduling")
    return f"{head}: {reasons}. no new claims to deallocate, preemption: {head}: {', '.join(sorted(tails))}."
