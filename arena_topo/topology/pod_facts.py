"""What placement needs to know of a Pod object: where the pod is, and what it takes there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model import keys
from arena_topo.model.cluster.pod_requests import ContainerRequests, effective_requests
from arena_topo.model.notation.quantity import Resources
from arena_topo.topology.raw_objects import RawObject, amounts, items, mapping, name, optional_string

POD_ANNOTATIONS = (
    keys.ACK_GPU_GROUP,
    keys.ACK_ALLOCATION,
    keys.KOORDINATOR_ALLOCATION,
    keys.HAMI_ALLOCATED,
    keys.KOORDINATOR_DEVICES,
)
"""The annotations that say which GPUs a pod holds."""

POD_LABELS = (keys.OPERATOR_JOB_NAME, keys.ALPHA_JOB_NAME, keys.ARENA_APP, keys.ARENA_RELEASE)
"""The labels that say which MPI job a pod belongs to."""

# Pods in these phases stay in the cluster until they are deleted, and take nothing any more.
_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class PodFacts:
    """The part of a pod that placement depends on.

    ``requests`` are the amounts that kube-scheduler reserves (``effective_requests``). ``annotations`` need only hold
    ``POD_ANNOTATIONS``; ``job`` is the MPI job that the pod belongs to, by ``job_of``.
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
        """Whether the pod takes room on its node: it is bound, even if it does not run yet, and has not finished."""
        return bool(self.node) and self.phase not in _FINISHED


def job_of(labels: Mapping[str, str]) -> str:
    """Return the name of the MPI job that a pod with *labels* belongs to, or an empty string."""
    # A release label alone belongs to any Helm chart; only with Arena's app label does it name a job.
    arena = labels.get(keys.ARENA_RELEASE, "") if labels.get(keys.ARENA_APP) == keys.ARENA_APP_VALUE else ""
    return labels.get(keys.OPERATOR_JOB_NAME, "") or labels.get(keys.ALPHA_JOB_NAME, "") or arena


def pod_facts(raw: RawObject) -> PodFacts:
    """Return the facts of a Pod object; raises ``Malformed`` naming the key."""
    meta, spec = mapping(raw, "metadata"), mapping(raw, "spec")
    annotations = mapping(meta, "annotations")
    pod_level = mapping(spec, "resources")
    requests = effective_requests(
        map(_container, items(spec, "containers")),
        map(_container, items(spec, "initContainers")),
        amounts(pod_level, "requests") if pod_level else None,
        amounts(spec, "overhead"),
    )
    labels = mapping(meta, "labels")
    return PodFacts(
        namespace=optional_string(meta, "namespace"),
        name=name(raw),
        node=optional_string(spec, "nodeName"),
        phase=optional_string(mapping(raw, "status"), "phase"),
        requests=requests,
        # Only those that are needed: annotations of pods may hold anything, also what nobody should see.
        annotations={key: optional_string(annotations, key) for key in POD_ANNOTATIONS if key in annotations},
        job=job_of({key: optional_string(labels, key) for key in POD_LABELS if key in labels}),
    )


def _container(raw: RawObject) -> ContainerRequests:
    section = mapping(raw, "resources")
    # The API server fills requests from limits; an object that was never there may lack them.
    requests = {**amounts(section, "limits"), **amounts(section, "requests")}
    return ContainerRequests(requests, raw.get("restartPolicy") == "Always")
