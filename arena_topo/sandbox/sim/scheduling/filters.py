"""Which nodes can take a pod, and why the others cannot, in kube-scheduler's words.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins (the wording seen on 1.36.3).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.scheduling import Requirement, SelectorTerm, Toleration, untolerated
from arena_topo.model.cluster.snapshot import Taint
from arena_topo.model.notation.quantity import resources
from arena_topo.model.objects import Object
from arena_topo.topology.pod_facts import pod_facts

UNSCHEDULABLE = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
SPREAD = "node(s) didn't match pod topology spread constraints"
TOO_MANY_PODS = "Too many pods"
_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


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
        for name, value in requests_of(pod).items():
            self.free[name] = self.free.get(name, 0) - value
        self.pods.append(pod)

    def remove(self, pod: Object) -> None:
        """Count *pod* as not running here."""
        for name, value in requests_of(pod).items():
            self.free[name] = self.free.get(name, 0) + value
        self.pods.remove(pod)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a node cannot take a pod, and whether preempting others there would change it."""

    reasons: tuple[str, ...] = ()
    preemptible: bool = False


def node_state(node: Object) -> SchedulerNode:
    """Return the state of an empty node."""
    spec, meta = node.get("spec", {}), node["metadata"]
    taints = tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints") or ())
    allocatable = resources(node.get("status", {}).get("allocatable"))
    unschedulable = bool(spec.get("unschedulable"))
    labels = meta.get("labels") or {}
    return SchedulerNode(meta["name"], labels, taints, unschedulable, allocatable, dict(allocatable))


def requests_of(pod: Object) -> dict[str, int]:
    """Return the amounts that a pod requests, of which ``pods`` is always 1."""
    return {**pod_facts(pod).requests, "pods": 1}


def judge(
    pod: Object, requests: Mapping[str, int], node: SchedulerNode, nodes: list[SchedulerNode]
) -> Verdict | None:
    """Return why *node* cannot take *pod* with its *requests*, or None if it can; the first filter decides."""
    tolerations = tolerations_of(pod["spec"])
    # A pod that tolerates the taint of a cordoned node may go there before the node has the taint, too.
    if node.unschedulable and untolerated((_CORDON,), tolerations):
        return Verdict((UNSCHEDULABLE,))
    if untolerated(node.taints, tolerations):
        return Verdict((TAINTED,))
    if not is_selected(pod["spec"], node):
        return Verdict((AFFINITY,))
    # An overcommitted node has less than nothing free; a request of 0 fits even there.
    short = [name for name, value in requests.items() if value > max(node.free.get(name, 0), 0)]
    if short:
        words = tuple(TOO_MANY_PODS if name == "pods" else f"Insufficient {name}" for name in short)
        # Evicting others helps only where the node is big enough when it is empty.
        return Verdict(words, all(requests[name] <= node.capacity.get(name, 0) for name in short))
    constraints = pod["spec"].get("topologySpreadConstraints") or ()
    hard = [c for c in constraints if c.get("whenUnsatisfiable") == "DoNotSchedule"]
    if any(_is_skewed(pod, constraint, node, nodes) for constraint in hard):
        return Verdict((SPREAD,), preemptible=True)
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

    Example: with ``maxSkew: 1`` over hostnames and two pods on node a, none on b, a third pod on a would make the skew
    3 - 0, more than 1; on b it makes 1 - 0.
    """
    key = constraint["topologyKey"]
    # A node without the key is in no domain, and kube-scheduler never uses it.
    if key not in node.labels:
        return True
    counts: dict[str, int] = {}
    for other in nodes:
        # By the default nodeAffinityPolicy, Honor, nodes that the pod cannot use do not count: an empty domain of theirs
        # would make every other one look too full.
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
