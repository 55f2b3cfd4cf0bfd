"""The scheduler: pods one by one, gangs whole or not at all."""

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from arena_topo.model.keys import GANG_MIN_AVAILABLE, GANG_NAME
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.verbs.binding import bind
from arena_topo.sandbox.api.verbs.objects import Api, timestamp
from arena_topo.sandbox.sim import events
from arena_topo.sandbox.sim.scheduling import ack_topology
from arena_topo.sandbox.sim.scheduling.filters import NodeState, Verdict, judge, node_state, requests_of

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
GATED = "Scheduling is blocked due to non-empty scheduling gates"
ENDED = frozenset({"Succeeded", "Failed"})
SCHEDULERS = frozenset({"default-scheduler", "scheduler-plugins-scheduler"})
_COMPONENT = "default-scheduler"

Group = tuple[str, str]
"""Namespace and name of a gang."""

Arrange = Callable[[list[Object], list[NodeState]], dict[str, str] | None]
"""A cluster's own choice of nodes for a gang: node by pod name, None to leave it to the scheduler."""


@dataclass(slots=True)
class Gang:
    """Pods that start together: those that wait, how many have a node, and how many there must be."""

    waiting: list[Object]
    bound: int
    minimum: int


class Scheduler:
    """Binds pods to nodes; ``arrange`` may choose the nodes of a gang instead."""

    def __init__(self, api: Api, arrange: Arrange | None = None) -> None:
        self._api = api
        self._arrange = arrange

    def step(self) -> None:
        """Schedule whatever can be scheduled now."""
        pods = self._api.store.values(("", "pods"))
        waiting = [pod for pod in pods if _is_waiting(pod)]
        if not waiting:
            return
        nodes = self._nodes(pods)
        gangs: dict[Group, Gang] = {}
        for pod in sorted(waiting, key=_order):
            if pod["spec"].get("schedulingGates"):
                self._say(pod, "SchedulingGated", GATED)
                continue
            group = gang_of(pod)
            if group is None:
                self._place(pod, nodes)
            else:
                gangs.setdefault(group, Gang([], 0, 1)).waiting.append(pod)
        for group, gang in gangs.items():
            gang.bound = sum(gang_of(p) == group and bool(p["spec"].get("nodeName")) for p in pods)
            gang.minimum = self._minimum(group, gang.waiting[0])
            self._place_gang(group, gang, nodes)

    def _nodes(self, pods: list[Object]) -> list[NodeState]:
        states = {s.name: s for s in map(node_state, self._api.store.values(("", "nodes")))}
        for pod in pods:
            state = states.get(pod["spec"].get("nodeName", ""))
            if state is not None and pod["status"].get("phase") not in ENDED:
                state.take(pod)
        return sorted(states.values(), key=lambda state: state.name)

    def _minimum(self, group: Group, pod: Object) -> int:
        labelled = pod["metadata"]["labels"].get(GANG_MIN_AVAILABLE, "")
        if labelled.isdigit():
            return int(labelled)
        for kind in self._api.registry:
            if kind.kind == "PodGroup" and (found := self._api.find(kind, *group)):
                return int(found["spec"].get("minMember", 1))
        return 0

    def _place(self, pod: Object, nodes: list[NodeState]) -> None:
        chosen, verdicts = _choose(pod, nodes)
        if chosen is None:
            self._refuse(pod, explain(verdicts))
            return
        chosen.take(pod)
        self._bind(pod, chosen.name)

    def _place_gang(self, group: Group, gang: Gang, nodes: list[NodeState]) -> None:
        name, count = f"{group[0]}/{group[1]}", gang.bound + len(gang.waiting)
        if gang.minimum == 0:
            return self._refuse_all(gang.waiting, f"PodGroup {name} not found")
        if count < gang.minimum:
            text = f"cannot find enough sibling pods, current pods number: {count}, minMember of group: {gang.minimum}"
            return self._refuse_all(gang.waiting, f"pre-filter pod {{}} {text}")
        arranged = self._arrange(gang.waiting, nodes) if self._arrange else None
        by_name = {node.name: node for node in nodes}
        placed: list[tuple[Object, NodeState]] = []
        failed: list[tuple[Object, str]] = []
        for pod in gang.waiting:
            wanted = by_name.get((arranged or {}).get(pod["metadata"]["name"], ""))
            chosen, verdicts = (wanted, []) if wanted else _choose(pod, nodes)
            if chosen is None:
                failed.append((pod, explain(verdicts)))
            else:
                chosen.take(pod)
                placed.append((pod, chosen))
        if gang.bound + len(placed) >= gang.minimum:
            self._mark_gpus(placed, arranged)
            for pod, node in placed:
                self._bind(pod, node.name)
        else:
            for pod, node in placed:
                node.give(pod)
            culprit = failed[0][0]["metadata"]["name"]
            text = (
                f"PodGroup {name} gets rejected due to Pod {culprit} is unschedulable even after PostFilter"
            )
            self._refuse_all([pod for pod, _ in placed], text)
        for pod, message in failed:
            self._refuse(pod, message)
        return None

    def _mark_gpus(self, placed: list[tuple[Object, NodeState]], arranged: dict[str, str] | None) -> None:
        """Write on the pods of an arranged gang which GPUs they get."""
        if not arranged or not placed:
            return
        node, pods = placed[0][1], [pod for pod, _ in placed]
        others = [pod for pod in node.pods if not any(pod is each for each in pods)]
        found = ack_topology.choose_gpus(self._api, replace(node, pods=others), pods)
        for pod in pods:
            if gpus := found.get(pod["metadata"]["name"]):
                body = copy.deepcopy(pod)
                body["metadata"].setdefault("annotations", {})[ack_topology.GROUP] = gpus
                self._api.store.put(("", "pods"), body)

    def _bind(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        current = self._api.get(self._api.kind("v1", "Pod"), meta["namespace"], meta["name"])
        bound = bind(self._api, current, node)
        text = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        events.record(self._api, bound, _COMPONENT, "Scheduled", text)

    def _refuse_all(self, pods: list[Object], text: str) -> None:
        for pod in pods:
            self._refuse(pod, text.replace("{}", pod["metadata"]["name"]))

    def _refuse(self, pod: Object, message: str) -> None:
        if self._say(pod, "Unschedulable", message):
            events.record(self._api, pod, _COMPONENT, "FailedScheduling", message, warning=True)

    def _say(self, pod: Object, reason: str, message: str) -> bool:
        """Write why *pod* waits; return whether that is news."""
        conditions = pod["status"].get("conditions", [])
        old: Object = next((each for each in conditions if each["type"] == "PodScheduled"), {})
        if (old.get("reason"), old.get("message")) == (reason, message):
            return False
        body = copy.deepcopy(pod)
        condition = {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "reason": reason}
        condition |= {"lastTransitionTime": timestamp(), "message": message}
        others = [each for each in conditions if each["type"] != "PodScheduled"]
        body["status"]["conditions"] = [*others, condition]
        self._api.store.put(("", "pods"), body)
        return True


def _is_waiting(pod: Object) -> bool:
    spec = pod["spec"]
    known = spec.get("schedulerName", "default-scheduler") in SCHEDULERS
    ended = pod["status"].get("phase") in ENDED or "deletionTimestamp" in pod["metadata"]
    return known and not spec.get("nodeName") and not ended


def _order(pod: Object) -> tuple[int, str, str]:
    meta = pod["metadata"]
    return (-pod["spec"].get("priority", 0), meta["creationTimestamp"], meta["name"])


def gang_of(pod: Object) -> Group | None:
    """Return the gang that a pod belongs to, by the labels of coscheduling, new and old."""
    labels = pod["metadata"].get("labels") or {}
    name = labels.get(GROUP_LABEL) or labels.get(GANG_NAME)
    return (pod["metadata"]["namespace"], name) if name else None


def _choose(pod: Object, nodes: list[NodeState]) -> tuple[NodeState | None, list[Verdict]]:
    """Return the node that suits *pod* best, the emptiest, or what each node says against it."""
    verdicts, fitting = [], []
    for node in nodes:
        verdict = judge(pod, node, nodes)
        if verdict is None:
            fitting.append(node)
        else:
            verdicts.append(verdict)
    best = min(fitting, key=lambda node: (_load(pod, node), node.name), default=None)
    return best, verdicts


def _load(pod: Object, node: NodeState) -> float:
    """Return the mean share in use after *pod*, of cpu, memory and whatever else it requests."""
    names = ({"cpu", "memory"} | requests_of(pod).keys()) - {"pods"}
    shares = [1 - node.free.get(name, 0) / node.capacity[name] for name in names if node.capacity.get(name)]
    return round(sum(shares) / len(shares), 6) + len(node.pods) * 1e-6 if shares else 0.0


def explain(verdicts: list[Verdict]) -> str:
    """Return kube-scheduler's message for a pod that no node can take."""
    total = len(verdicts)
    head = f"0/{total} nodes are available"
    if not total:
        return "no nodes available to schedule pods"
    counts = Counter(reason for verdict in verdicts for reason in verdict.reasons)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    helpless = sum(verdict.helpless for verdict in verdicts)
    tails = []
    if total - helpless:
        tails.append(f"{total - helpless} No preemption victims found for incoming pod")
    if helpless:
        tails.append(f"{helpless} Preemption is not helpful for scheduling")
    return f"{head}: {reasons}. no new claims to deallocate, preemption: {head}: {', '.join(sorted(tails))}."
