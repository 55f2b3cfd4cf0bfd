"""Where resources live: the paths of the API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from arena_topo.model import objects
from arena_topo.model.kind import Kind
from arena_topo.model.text.documents import Part


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type; ``group`` is empty for the core API."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """Return the path of an object, a subresource, or the collection (of all namespaces if empty)."""
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        tail = "".join(f"/{quote(part, safe='')}" for part in (name, sub) if part)
        return f"{base}{inside}/{self.plural}{tail}"


PODS = Resource("", "v1", "pods")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas")
NODES = Resource("", "v1", "nodes", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps")
EVENTS = Resource("", "v1", "events")
SERVICES = Resource("", "v1", "services")
JOBS = Resource("batch", "v1", "jobs")
DEPLOYMENTS = Resource("apps", "v1", "deployments")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)
SELF_SUBJECT_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)
KAI_API = "kai.scheduler/v1alpha1"
KAI_TOPOLOGIES = Resource("kai.scheduler", "v1alpha1", "topologies", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)


_TRAINING_JOBS = {
    "MPIJob": "mpijobs",
    "PyTorchJob": "pytorchjobs",
    "TFJob": "tfjobs",
    "TrainJob": "trainjobs",
    "JobSet": "jobsets",
}
"""The plurals of the kinds of jobs, which most commands would import all the modules of kinds for."""

# Discovery would give the plurals as well, at the price of one request for each API group.
_PLURALS = {
    "ServiceAccount": ("serviceaccounts", True),
    "ConfigMap": ("configmaps", True),
    "Service": ("services", True),
    "Deployment": ("deployments", True),
    "DaemonSet": ("daemonsets", True),
    "Role": ("roles", True),
    "RoleBinding": ("rolebindings", True),
    "ClusterRole": ("clusterroles", False),
    "ClusterRoleBinding": ("clusterrolebindings", False),
    "MutatingAdmissionPolicy": ("mutatingadmissionpolicies", False),
    "MutatingAdmissionPolicyBinding": ("mutatingadmissionpolicybindings", False),
    "ValidatingAdmissionPolicy": ("validatingadmissionpolicies", False),
    "ValidatingAdmissionPolicyBinding": ("validatingadmissionpolicybindings", False),
    "AdmissionCheck": ("admissionchecks", False),
    "CustomResourceDefinition": ("customresourcedefinitions", False),
    **{kind: (plural, True) for kind, plural in _TRAINING_JOBS.items()},
    "PodGroup": ("podgroups", True),
    "ResourceClaim": ("resourceclaims", True),
}


def resource_of(api_version: str, kind: str) -> Resource:
    """Return the resource of a *kind* that this program writes. Raises ``KeyError`` for any other."""
    group, _, version = api_version.rpartition("/")
    plural, namespaced = _PLURALS[kind]
    return Resource(group, version, plural, namespaced)


_SHAPES: Mapping[str, Part] = {
    "pods": objects.POD,
    "nodes": objects.NODE,
    **dict.fromkeys(_TRAINING_JOBS.values(), objects.TRAINING_JOB),
    "jobs": objects.BATCH_JOB,
    "deployments": objects.DEPLOYMENT,
    "events": objects.EVENT,
    "services": objects.SERVICE,
    "configmaps": objects.CONFIG_MAP,
    "leases": objects.LEASE,
    "resourceclaims": objects.RESOURCE_CLAIM,
    "mutatingadmissionpolicies": objects.MUTATING_POLICY,
    "selfsubjectaccessreviews": objects.ACCESS_REVIEW,
    "selfsubjectreviews": objects.IDENTITY,
}
_PATH = re.compile(
    r"/(?:api/[^/]+|apis/[^/]+/[^/]+)(?:/namespaces/[^/]+(?=/))?/(?P<plural>[^/]+)(?P<name>/[^/]+)?"
)
_NAMED = frozenset({"pods", "nodes", "jobs", *_TRAINING_JOBS.values()})
"""Whose objects are read again by the name that they have."""

_OPEN_API = "/openapi/v3/"
_DISCOVERY = re.compile(r"/apis(?P<version>/[^/]+/[^/]+)?")


class Answered(NamedTuple):
    """What an answer must be.

    An object, or a list of objects, of a shape, and of the kind that *plural* names.
    """

    shape: Part
    plural: str = ""
    is_list: bool = False
    is_named: bool = False


def answered_at(method: str, path: str) -> Answered:
    """Return what a server must answer at *path*, which has no query."""
    if path == "/version":
        return Answered(objects.VERSION)
    if discovery := _DISCOVERY.fullmatch(path):
        return Answered(objects.RESOURCES if discovery["version"] else objects.GROUPS)
    if path.startswith(_OPEN_API):
        return Answered(objects.OPEN_API)
    # Subresources and what a deletion answers are looked into by those who asked.
    match = _PATH.fullmatch(path)
    if match is None or method == "DELETE":
        return Answered(Part({}))
    plural, name = match["plural"], match["name"]
    # Of all that is created only jobs are read again from what their creation answers.
    is_created = method == "POST" and not name and plural in {"jobs", *_TRAINING_JOBS.values()}
    return Answered(
        _SHAPES.get(plural, objects.OBJECT),
        plural,
        is_list=method == "GET" and not name,
        is_named=is_created or (method in ("GET", "PATCH") and bool(name) and plural in _NAMED),
    )


def is_of(kind: str, plural: str) -> bool:
    """Whether objects of *kind* are those of the resource *plural*.

    MutatingAdmissionPolicy, of mutatingadmissionpolicies.
    """
    return plural.startswith(kind.lower().removesuffix("y"))


def path_of(item: Mapping[str, Any]) -> str:
    """Return the path of an object that this program writes."""
    metadata = item["metadata"]
    resource = resource_of(item["apiVersion"], item["kind"])
    return resource.path(metadata.get("namespace", ""), metadata["name"])


def admission_policies(api: str) -> Resource:
    """Return the resource of MutatingAdmissionPolicies in version *api*."""
    return Resource("admissionregistration.k8s.io", api, "mutatingadmissionpolicies", namespaced=False)


def admission_bindings(api: str) -> Resource:
    """Return the resource of MutatingAdmissionPolicyBindings in version *api*."""
    return Resource("admissionregistration.k8s.io", api, "mutatingadmissionpolicybindings", namespaced=False)


def resource_slices(api: str) -> Resource:
    """Return the resource of DRA's ResourceSlices in version *api*."""
    return Resource("resource.k8s.io", api, "resourceslices", namespaced=False)


def jobs_of(kind: Kind) -> Resource:
    """Return the resource of jobs of *kind*."""
    return Resource(kind.group, kind.version, kind.plural)
