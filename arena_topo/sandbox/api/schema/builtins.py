"""The built-in kinds that the sandbox serves, and the CRDs that it starts with."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from arena_topo.sandbox.api.kinds import VERBS, Kind
from arena_topo.sandbox.api.schema import go_times

_REVIEWS = ("SelfSubjectAccessReview", "SelfSubjectReview")
_CLUSTER_WIDE = frozenset(
    {
        "Node",
        "Namespace",
        "PriorityClass",
        "CustomResourceDefinition",
        "DeviceClass",
        "ResourceSlice",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        *_REVIEWS,
    }
)
_STATUS = ("status",)
_APIEXTENSIONS = "apiextensions.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """What differs between the built-in kinds, all of which are of version v1."""

    group: str
    kind: str
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


_KINDS = (
    _BuiltIn("", "Pod", ("po",), ("status", "log", "exec", "attach", "portforward"), ("all",)),
    _BuiltIn("", "Node", ("no",), _STATUS),
    _BuiltIn("", "Namespace", ("ns",), ("status", "finalize")),
    _BuiltIn("", "ConfigMap", ("cm",)),
    _BuiltIn("", "Secret"),
    _BuiltIn("", "Service", ("svc",), _STATUS, ("all",)),
    _BuiltIn("", "ServiceAccount", ("sa",)),
    _BuiltIn("", "Event", ("ev",)),
    _BuiltIn("", "PersistentVolumeClaim", ("pvc",), _STATUS),
    _BuiltIn("apps", "Deployment", ("deploy",), _STATUS, ("all",)),
    _BuiltIn("apps", "DaemonSet", ("ds",), _STATUS, ("all",)),
    _BuiltIn("apps", "StatefulSet", ("sts",), _STATUS, ("all",)),
    _BuiltIn("batch", "Job", (), _STATUS, ("all",)),
    _BuiltIn("coordination.k8s.io", "Lease"),
    _BuiltIn("scheduling.k8s.io", "PriorityClass", ("pc",)),
    _BuiltIn("resource.k8s.io", "DeviceClass"),
    _BuiltIn("resource.k8s.io", "ResourceSlice"),
    _BuiltIn("resource.k8s.io", "ResourceClaim", (), _STATUS),
    _BuiltIn("resource.k8s.io", "ResourceClaimTemplate"),
    _BuiltIn(_APIEXTENSIONS, "CustomResourceDefinition", ("crd", "crds"), _STATUS, ("api-extensions",)),
    # The sandbox has two users and asks neither roles nor policies nor quotas: these are kept for whoever reads them.
    _BuiltIn("", "ResourceQuota", ("quota",), _STATUS),
    _BuiltIn(_RBAC, "Role"),
    _BuiltIn(_RBAC, "RoleBinding"),
    _BuiltIn(_RBAC, "ClusterRole"),
    _BuiltIn(_RBAC, "ClusterRoleBinding"),
    _BuiltIn(_ADMISSION, "ValidatingAdmissionPolicy", (), _STATUS),
    _BuiltIn(_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    _BuiltIn("authorization.k8s.io", "SelfSubjectAccessReview"),
    _BuiltIn("authentication.k8s.io", "SelfSubjectReview"),
)


@cache
def components() -> dict[str, Any]:
    """Return the schemas of the built-in kinds by their OpenAPI names (from kube-apiserver 1.36.3)."""
    text = files("arena_topo.sandbox").joinpath("data/schemas.json").read_text("utf-8")
    schemas: dict[str, Any] = json.loads(text)
    # OpenAPI calls both a date-time.
    for name, layout in (("Time", go_times.SECONDS), ("MicroTime", go_times.MICROSECONDS)):
        schemas[f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}"]["layout"] = layout
    return schemas


def initial_crds() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of a new sandbox."""
    folder = files("arena_topo.sandbox").joinpath("data/crds")
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda p: p.name)
    return [json.loads(path.read_text("utf-8")) for path in paths]


def _component(group: str, kind: str) -> str:
    if group == _APIEXTENSIONS:
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{kind}"
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.v1.{kind}"


def _plural(singular: str) -> str:
    """Return the plural as Kubernetes forms it: ``priorityclasses``, ``validatingadmissionpolicies``, ``pods``."""
    if singular.endswith("y"):
        return singular.removesuffix("y") + "ies"
    return singular + ("es" if singular.endswith("s") else "s")


def builtin_kinds() -> list[Kind]:
    """Return the built-in kinds."""
    return [
        Kind(
            group=row.group,
            version="v1",
            kind=row.kind,
            plural=_plural(row.kind.lower()),
            singular=row.kind.lower(),
            namespaced=row.kind not in _CLUSTER_WIDE,
            schema={"$ref": _component(row.group, row.kind)},
            short_names=row.short_names,
            categories=row.categories,
            subresources=row.subresources,
            verbs=("create",) if row.kind in _REVIEWS else VERBS,
            virtual=row.kind in _REVIEWS,
        )
        for row in _KINDS
    ]
