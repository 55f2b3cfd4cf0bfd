"""What a Pod object says that placement depends on: where it is and what it takes there.

Requests are computed as kube-scheduler does. Source: ``k8s.io/component-helpers/resource``, ``PodRequests``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from arena_topo.model import keys
from arena_topo.model.notation.quantity import Resources, total
from arena_topo.topology.raw_objects import RawObject, amounts, items, mapping, name, optional

POD_ANNOTATIONS = (
    "topology.kubernetes.io/gpu-group",
    "gputopology.alibabacloud.com/allocation",
    "topology.scheduling.koordinator.sh/gpu",
    "hami.io/vgpu-devices-allocated",
    "scheduling.koordinator.sh/device-allocated",
)
"""The annotations of a pod that tell which GPUs it holds."""

POD_LABELS = (keys.OPERATOR_JOB_NAME, keys.ALPHA_JOB_NAME, keys.ARENA_APP, keys.ARENA_RELEASE)
"""The labels of a pod that tell which MPI job it belongs to."""

_FINISHED = frozenset({"Succeeded", "Failed"})
_POD_LEVEL = frozenset({"cpu", "memory"})


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod as the API server shows it, less what nobody reads.

    ``requests`` are amounts, as ``effective_requests`` computes them. ``annotations`` need only hold
    ``POD_ANNOTATIONS``; ``job`` is the MPI job it belongs to, by ``job_of``.
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    requests: Resources = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    job: str = ""

    @property
    def occupies(self) -> bool:
        """Whether it takes room on its node."""
        return bool(self.node) and self.phase not in _FINISHED


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What a container asks; ``sidecar`` marks an init container that keeps running (restartPolicy Always)."""

    requests: Resources
    sidecar: bool = False


def effective_requests(
    containers: Iterable[ContainerFacts],
    init_containers: Iterable[ContainerFacts] = (),
    pod_level: Resources | None = None,
    overhead: Resources | None = None,
) -> dict[str, int]:
    """Return what kube-scheduler reserves for a pod.

    Containers and sidecars run together; each other init container runs beside the sidecars before it, and the
    highest of these moments counts. ``pod_level`` requests (cpu, memory, huge pages) take the place of the sum.
    """
    together = total(each.requests for each in containers)
    sidecars: dict[str, int] = {}
    highest: dict[str, int] = {}
    for each in init_containers:
        moment = total((each.requests, sidecars))
        if each.sidecar:
            sidecars = moment
        highest = _highest(highest, moment)
    needed = _highest(total((together, sidecars)), highest)
    for resource, asked in (pod_level or {}).items():
        if resource in _POD_LEVEL or resource.startswith("hugepages-"):
            needed[resource] = asked
    return total((needed, overhead or {}))


def job_of(labels: Mapping[str, str]) -> str:
    """Return the name of the MPI job that a pod with *labels* belongs to, or an empty text."""
    arena = labels.get(keys.ARENA_RELEASE, "") if labels.get(keys.ARENA_APP) == keys.ARENA_APP_VALUE else ""
    return labels.get(keys.OPERATOR_JOB_NAME, "") or labels.get(keys.ALPHA_JOB_NAME, "") or arena


def pod_facts(raw: RawObject) -> PodFacts:
    """Return the facts of a Pod object; raises ``Malformed`` naming the key."""
    meta, spec = mapping(raw, "metadata"), mapping(raw, "spec")
    written = mapping(meta, "annotations")
    pod_level = mapping(spec, "resources")
    requests = effective_requests(
        map(_container, items(spec, "containers")),
        map(_container, items(spec, "initContainers")),
        amounts(pod_level, "requests") if pod_level else None,
        amounts(spec, "overhead"),
    )
    labels = mapping(meta, "labels")
    return PodFacts(
        namespace=optional(meta, "namespace"),
        name=name(raw),
        node=optional(spec, "nodeName"),
        phase=optional(mapping(raw, "status"), "phase"),
        requests=requests,
        annotations={key: optional(written, key) for key in POD_ANNOTATIONS if key in written}
        if written
        else {},
        job=job_of({key: optional(labels, key) for key in POD_LABELS if key in labels}),
    )


def _container(raw: RawObject) -> ContainerFacts:
    asked = mapping(raw, "resources")
    # The API server fills requests from limits; an object that never was there may lack them.
    return ContainerFacts(
        {**amounts(asked, "limits"), **amounts(asked, "requests")}, raw.get("restartPolicy") == "Always"
    )


def _highest(left: Resources, right: Resources) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *right)}
