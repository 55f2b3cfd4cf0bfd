"""The built-in kinds that the sandbox serves, and the CRDs that it starts with."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from arena_topo.sandbox.api.kinds import VERBS, Kind

_CORE = "io.k8s.api.core.v1"
_CRD_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_REVIEWS = ("SelfSubjectAccessReview", "SelfSubjectReview")
_CLUSTER_WIDE = (
    "Node",
    "Namespace",
    "PriorityClass",
    "CustomResourceDefinition",
    "DeviceClass",
    "ResourceSlice",
)

_KINDS: tuple[tuple[str, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    # group, kind, plural, short names, categories, subresources
    ("", "Pod", "pods", ("po",), ("all",), ("status", "log")),
    ("", "Node", "nodes", ("no",), (), ("status",)),
    ("", "Namespace", "namespaces", ("ns",), (), ("status", "finalize")),
    ("", "ConfigMap", "configmaps", ("cm",), (), ()),
    ("", "Secret", "secrets", (), (), ()),
    ("", "Service", "services", ("svc",), ("all",), ("status",)),
    ("", "ServiceAccount", "serviceaccounts", ("sa",), (), ()),
    ("", "Event", "events", ("ev",), (), ()),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims", ("pvc",), (), ("status",)),
    ("apps", "Deployment", "deployments", ("deploy",), ("all",), ("status",)),
    ("apps", "StatefulSet", "statefulsets", ("sts",), ("all",), ("status",)),
    ("batch", "Job", "jobs", (), ("all",), ("status",)),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses", ("pc",), (), ()),
    ("resource.k8s.io", "DeviceClass", "deviceclasses", (), (), ()),
    ("resource.k8s.io", "ResourceSlice", "resourceslices", (), (), ()),
    ("resource.k8s.io", "ResourceClaim", "resourceclaims", (), (), ("status",)),
    ("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", (), (), ()),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        ("crd", "crds"),
        ("api-extensions",),
        ("status",),
    ),
    ("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", (), (), ()),
    ("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", (), (), ()),
)


@cache
def components() -> dict[str, Any]:
    """Return the schemas of the built-in kinds by their OpenAPI names (from kube-apiserver 1.36.3)."""
    text = files("arena_topo.sandbox").joinpath("data/schemas.json").read_text("utf-8")
    schemas: dict[str, Any] = json.loads(text)
    return schemas


def initial_crds() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of a new sandbox."""
    folder = files("arena_topo.sandbox").joinpath("data/crds")
    paths = sorted((each for each in folder.iterdir() if each.name.endswith(".json")), key=lambda p: p.name)
    return [json.loads(path.read_text("utf-8")) for path in paths]


def _component(group: str, kind: str) -> str:
    if kind == "CustomResourceDefinition":
        return _CRD_SCHEMA
    package = group.partition(".")[0] if group else "core"
    return f"io.k8s.api.{package}.v1.{kind}"


def builtin_kinds() -> list[Kind]:
    """Return the built-in kinds."""
    return [
        Kind(
            group=group,
            version="v1",
            kind=kind,
            plural=plural,
            singular=kind.lower(),
            namespaced=kind not in _CLUSTER_WIDE and kind not in _REVIEWS,
            schema={"$ref": _component(group, kind)},
            short_names=short,
            categories=categories,
            subresources=subresources,
            verbs=("create",) if kind in _REVIEWS else VERBS,
            virtual=kind in _REVIEWS,
        )
        for group, kind, plural, short, categories, subresources in _KINDS
    ]
