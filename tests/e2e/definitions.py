"""Definitions of custom resources that other projects would install."""

from arena_topo.model.objects import Object


def definition(kind: str, plural: str, api: str, schema: Object, *, namespaced: bool = True) -> Object:
    """Return the definition of *kind*, served as *api* (``group/version``), whose objects have *schema*."""
    group, _, version = api.partition("/")
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [served],
        },
    }
