"""What kube-scheduler reserves for a pod.

Source: ``k8s.io/component-helpers/resource``, ``PodRequests``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arena_topo.model.text.quantity import Resources, resources, total

if TYPE_CHECKING:
    # It is defined with all that a cluster has, of which a job names only its tolerations.
    from arena_topo.model.cluster import Taint

CPU = "cpu"
_POD_LEVEL = frozenset({CPU, "memory"})


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """What a container requests; a ``sidecar`` is an init container that runs on (restartPolicy Always)."""

    requests: Resources
    sidecar: bool = False


def effective_requests(
    containers: Iterable[ContainerRequests],
    init_containers: Iterable[ContainerRequests] = (),
    pod_level: Resources | None = None,
    overhead: Resources | None = None,
) -> dict[str, int]:
    """Return what kube-scheduler reserves for a pod.

    Containers and sidecars run together; each other init container runs next to the sidecars that stand
    before it, and the highest of these moments counts. *pod_level* requests (cpu, memory, huge pages) replace
    the sum.

    For example, init containers ``[sidecar 1 cpu, setup 5 cpu, sidecar 1 cpu]`` before a container of 3 cpu
    have the moments 1, 1 + 5 and 1 + 1 while they start, and 3 + 1 + 1 afterwards: the pod reserves 6 cpu.
    """
    together = total(container.requests for container in containers)
    sidecars: dict[str, int] = {}
    highest: dict[str, int] = {}
    for container in init_containers:
        moment = total((container.requests, sidecars))
        if container.sidecar:
            sidecars = moment
        highest = _highest(highest, moment)
    needed = _highest(total((together, sidecars)), highest)
    for resource, amount in (pod_level or {}).items():
        # Devices cannot be requested for a pod as a whole, so theirs stays the sum.
        if resource in _POD_LEVEL or resource.startswith("hugepages-"):
            needed[resource] = amount
    return total((needed, overhead or {}))


def pod_spec_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what kube-scheduler reserves for a pod with the well-formed *spec*; raises ``ValueError``.

    Objects that a server may have garbled are read with ``topology.objects.pod_facts``, which names the key
    at fault.
    """
    pod_level = (spec.get("resources") or {}).get("requests")
    return effective_requests(
        map(_container, spec.get("containers") or ()),
        map(_container, spec.get("initContainers") or ()),
        resources(pod_level) if pod_level else None,
        resources(spec.get("overhead")),
    )


def aligned_requests(spec: Mapping[str, Any]) -> tuple[dict[str, int], ...]:
    """Return what each container of a pod with the well-formed *spec* asks of the kubelet's topology manager.

    Those are devices, and whole cores of a pod of the QoS class Guaranteed: its static CPU manager gives out
    no others. Init containers that end are left out, as what they had goes to those after them. Raises
    ``ValueError``.
    """
    running = [
        *(
            container
            for container in spec.get("initContainers") or ()
            if container.get("restartPolicy") == "Always"
        ),
        *(spec.get("containers") or ()),
    ]
    is_guaranteed = _is_guaranteed(spec)
    return tuple(
        {
            name: amount
            for name, amount in _container(container).requests.items()
            if amount > 0 and (is_aligned(name) or (name == CPU and is_guaranteed and amount % 1000 == 0))
        }
        for container in running
    )


def is_aligned(resource: str) -> bool:
    """Whether the kubelet hands out *resource* by a device plugin, which may tie it to NUMA nodes."""
    return "/" in resource


def _is_guaranteed(spec: Mapping[str, Any]) -> bool:
    """Whether a pod is of the QoS class Guaranteed: all of its containers are limited to what they request.

    Source: ``k8s.io/kubernetes/pkg/apis/core/v1/helper/qos``.
    """
    # Of a pod that asks for cores as a whole no container gets its own.
    if (spec.get("resources") or {}).get("requests") or (spec.get("resources") or {}).get("limits"):
        return False
    sections = [
        container.get("resources") or {}
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    ]
    for section in sections:
        limits = resources(section.get("limits"))
        requests = {**limits, **resources(section.get("requests"))}
        if any(not limits.get(name) or limits[name] != requests[name] for name in _POD_LEVEL):
            return False
    return bool(sections)


def _container(container: Mapping[str, Any]) -> ContainerRequests:
    section = container.get("resources") or {}
    # The API server fills requests from limits; an object that was never there may lack them.
    requests = {**(section.get("limits") or {}), **(section.get("requests") or {})}
    return ContainerRequests(resources(requests), container.get("restartPolicy") == "Always")


def _highest(left: Resources, right: Resources) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *right)}


# Where a pod may run: tolerations, node selectors and node affinity, by kube-scheduler's rules.
#
# Source: ``k8s.io/component-helpers/scheduling/corev1`` (helpers.go, nodeaffinity).

# PreferNoSchedule only makes a node less attractive.
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod; empty fields match everything, as in the API."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: "Taint") -> bool:
        """Whether this toleration covers *taint*."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        # Without a key only Exists is valid: Equal would compare a value with that of any taint.
        return bool(self.key) and self.value == taint.value


def untolerated(taints: "tuple[Taint, ...]", tolerations: tuple[Toleration, ...]) -> "Taint | None":
    """Return the first of *taints* that keeps a pod with *tolerations* off a node, or None."""
    for taint in taints:
        if taint.effect in _BLOCKING and not any(toleration.tolerates(taint) for toleration in tolerations):
            return taint
    return None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node selector term: ``key operator values``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether *labels* meet this requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":  # a node without the label meets it too, as in the API
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and _compare(self.operator, value, self.values)
            # kube-scheduler matches no node by an operator that it does not know.
            case _:
                return False


def _compare(operator: str, value: str, values: tuple[str, ...]) -> bool:
    try:
        left, right = int(value), int(values[0])
    # As in kube-scheduler, a label that is not a whole number meets neither operator.
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """One term of a required node affinity; all of its requirements must hold.

    ``fields`` are requirements on ``metadata.name``, the only field that the API allows.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node *name* with *labels* meets this term; an empty term selects nothing."""
        if not self.expressions and not self.fields:
            return False
        fields = {"metadata.name": name}
        return all(expression.holds(labels) for expression in self.expressions) and all(
            field.holds(fields) for field in self.fields
        )
