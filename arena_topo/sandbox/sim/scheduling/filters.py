"""Which nodes can take a pod, and why the others cannot, in kube-scheduler's words.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins (the wording seen on 1.36.3).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from arena_topo.model.cluster.scheduling import Requirement, SelectorTerm, Toleration, untolerated
from arena_topo.model.cluster.snapshot import Taint
from arena_topo.model.notation.quantity import resources, total
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.schema.selectors import label_selector

UNSCHEDULABLE = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
SPREAD = "node(s) didn't match pod topology spread constraints"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
POD_AFFINITY = "node(s) didn't match pod affinity rules"
TOO_MANY_PODS = "Too many pods"


@dataclass(slots=True)
class NodeState:
    """A node as the scheduler sees it; ``free`` amounts and ``pods`` change as pods are placed."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    capacity: dict[str, int]
    free: dict[str, int]
    pods: list[Object] = field(default_factory=list)

    def take(self, pod: Object) -> None:
        """Count *pod* as here."""
        for name, value in requests_of(pod).items():
            self.free[name] = self.free.get(name, 0) - value
        self.pods.append(pod)

    def give(self, pod: Object) -> None:
        """Count *pod* as not here."""
        for name, value in requests_of(pod).items():
            self.free[name] = self.free.get(name, 0) + value
        self.pods.remove(pod)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a node cannot take a pod; ``helpless`` when no preemption would change it."""

    reasons: tuple[str, ...] = ()
    helpless: bool = False


def node_state(node: Object) -> NodeState:
    """Return the state of an empty node."""
    spec, meta = node.get("spec", {}), node["metadata"]
    taints = tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in spec.get("taints") or ())
    allocatable = resources(node.get("status", {}).get("allocatable"))
    unschedulable = bool(spec.get("unschedulable"))
    labels = meta.get("labels") or {}
    return NodeState(meta["name"], labels, taints, unschedulable, allocatable, dict(allocatable))


def requests_of(pod: Object) -> dict[str, int]:
    """Return what a pod requests, one pod included."""
    spec = pod["spec"]
    needed = total(resources(each.get("resources", {}).get("requests")) for each in spec["containers"])
    for each in spec.get("initContainers") or []:
        for name, value in resources(each.get("resources", {}).get("requests")).items():
            needed[name] = max(needed.get(name, 0), value)
    for name, value in resources(spec.get("overhead")).items():
        needed[name] = needed.get(name, 0) + value
    return needed | {"pods": 1}


def judge(pod: Object, node: NodeState, nodes: Iterable[NodeState]) -> Verdict | None:
    """Return why *node* cannot take *pod*, or None if it can; the first filter that refuses speaks."""
    tolerations = tuple(
        Toleration(t.get("key", ""), t.get("operator") or "Equal", t.get("value", ""), t.get("effect", ""))
        for t in pod["spec"].get("tolerations") or ()
    )
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if node.unschedulable and untolerated((cordon,), tolerations):
        return Verdict((UNSCHEDULABLE,), helpless=True)
    if untolerated(node.taints, tolerations):
        return Verdict((TAINTED,), helpless=True)
    if not selected(pod["spec"], node):
        return Verdict((AFFINITY,), helpless=True)
    lacking = _lacking(pod, node)
    if lacking is not None:
        return lacking
    return _by_neighbours(pod, node, list(nodes))


def _lacking(pod: Object, node: NodeState) -> Verdict | None:
    needed = requests_of(pod)
    short = [name for name, value in needed.items() if value > max(node.free.get(name, 0), 0)]
    if not short:
        return None
    words = tuple(TOO_MANY_PODS if name == "pods" else f"Insufficient {name}" for name in short)
    return Verdict(words, helpless=any(needed[name] > node.capacity.get(name, 0) for name in short))


def selected(spec: Object, node: NodeState) -> bool:
    """Whether a pod's node selector and required node affinity choose *node*."""
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = [_term(term) for term in required.get("nodeSelectorTerms") or []]
    return any(term.selects(node.name, node.labels) for term in terms)


def _term(term: Object) -> SelectorTerm:
    def read(expressions: list[Object] | None) -> tuple[Requirement, ...]:
        return tuple(
            Requirement(each["key"], each["operator"], tuple(each.get("values") or ()))
            for each in expressions or ()
        )

    return SelectorTerm(read(term.get("matchExpressions")), read(term.get("matchFields")))


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector chooses an object with *labels*; none at all chooses nothing."""
    if selector is None:
        return False
    wanted = ",".join(f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items())
    requirements = [
        Requirement(e["key"], e["operator"], tuple(e.get("values") or ()))
        for e in selector.get("matchExpressions") or ()
    ]
    return label_selector(wanted)(labels) and all(each.holds(labels) for each in requirements)


def _by_neighbours(pod: Object, node: NodeState, nodes: list[NodeState]) -> Verdict | None:
    for constraint in pod["spec"].get("topologySpreadConstraints") or ():
        if constraint.get("whenUnsatisfiable") == "DoNotSchedule" and _skewed(pod, constraint, node, nodes):
            return Verdict((SPREAD,))
    affinity = pod["spec"].get("affinity") or {}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    for term in (affinity.get("podAffinity") or {}).get(key) or ():
        anywhere = any(_count(pod, term, each) for each in nodes) or not selects(
            term.get("labelSelector"), pod["metadata"].get("labels") or {}
        )
        if anywhere and not _count_domain(pod, term, node, nodes):
            return Verdict((POD_AFFINITY,), helpless=True)
    for term in (affinity.get("podAntiAffinity") or {}).get(key) or ():
        if _count_domain(pod, term, node, nodes):
            return Verdict((ANTI_AFFINITY,))
    return None


def _count(pod: Object, term: Object, node: NodeState) -> int:
    """Return how many pods on *node* the term's selector chooses, in the pod's own namespace."""
    namespace = pod["metadata"]["namespace"]
    return sum(
        each["metadata"]["namespace"] == namespace
        and selects(term.get("labelSelector"), each["metadata"].get("labels") or {})
        for each in node.pods
    )


def _count_domain(pod: Object, term: Object, node: NodeState, nodes: list[NodeState]) -> int:
    domain = node.labels.get(term["topologyKey"])
    if domain is None:
        return 0
    return sum(_count(pod, term, each) for each in nodes if each.labels.get(term["topologyKey"]) == domain)


def _skewed(pod: Object, constraint: Object, node: NodeState, nodes: list[NodeState]) -> bool:
    key = constraint["topologyKey"]
    if key not in node.labels:
        return True
    counts: dict[str, int] = {}
    for each in nodes:
        if key in each.labels and selected(pod["spec"], each):
            domain = each.labels[key]
            counts[domain] = counts.get(domain, 0) + _count(pod, constraint, each)
    own = selects(constraint.get("labelSelector"), pod["metadata"].get("labels") or {})
    skew = counts.get(node.labels[key], 0) + own - min(counts.values(), default=0)
    return skew > int(constraint["maxSkew"])
