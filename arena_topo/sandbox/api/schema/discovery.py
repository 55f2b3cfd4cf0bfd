"""What the server serves: ``/api``, ``/apis`` and below, plain and aggregated.

Source: k8s.io/api/apidiscovery/v2 and k8s.io/apimachinery/pkg/apis/meta/v1.
"""

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.refusals import no_such_resource

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUB_VERBS = {"status": ["get", "patch", "update"], "log": ["get"], "finalize": ["update"]}
_SUB_KINDS = {"binding": ("", "v1", "Binding"), "eviction": ("policy", "v1", "Eviction")}


def versions() -> Object:
    """Return ``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(registry: Registry) -> Object:
    """Return ``/apis``."""
    groups = [group_of(registry, name) for name in registry.groups() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_of(registry: Registry, name: str) -> Object:
    """Return ``/apis/GROUP``."""
    served = registry.groups().get(name)
    if not served:
        raise no_such_resource()
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    head = {"name": name, "versions": entries, "preferredVersion": entries[0]}
    return {"kind": "APIGroup", "apiVersion": "v1"} | head


def resources(registry: Registry, group: str, version: str) -> Object:
    """Return ``/apis/GROUP/VERSION``."""
    kinds = [kind for kind in registry if (kind.group, kind.version) == (group, version)]
    if not kinds:
        raise no_such_resource()
    entries = [entry for kind in kinds for entry in _entries(kind)]
    head = {"groupVersion": kinds[0].api_version, "resources": entries}
    return {"kind": "APIResourceList", "apiVersion": "v1"} | head


def _entries(kind: Kind) -> list[Object]:
    entry: Object = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    entries = [entry]
    for sub in kind.subresources:
        group, version, name = _SUB_KINDS.get(sub, ("", "", kind.kind))
        below: Object = {"name": f"{kind.plural}/{sub}", "singularName": "", "namespaced": kind.namespaced}
        below |= {"kind": name, "verbs": _SUB_VERBS.get(sub, ["create"])}
        if version:
            below |= {"group": group, "version": version}
        entries.append(below)
    return entries


def aggregated(registry: Registry, *, core: bool) -> Object:
    """Return all of ``/api`` or of ``/apis`` in one document."""
    items = []
    for name, served in registry.groups().items():
        if bool(name) == core:
            continue
        kinds = [kind for kind in registry if kind.group == name]
        listed = [
            {
                "version": version,
                "freshness": "Current",
                "resources": [_aggregated(kind) for kind in kinds if kind.version == version],
            }
            for version in served
        ]
        items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
    return head | {"items": items}


def _aggregated(kind: Kind) -> Object:
    response = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    entry: Object = {"resource": kind.plural, "responseKind": response}
    entry["scope"] = "Namespaced" if kind.namespaced else "Cluster"
    entry |= {"singularResource": kind.singular, "verbs": list(kind.verbs)}
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    below = []
    for sub in kind.subresources:
        group, version, name = _SUB_KINDS.get(sub, (kind.group, kind.version, kind.kind))
        about = {"group": group, "version": version, "kind": name}
        below.append({"subresource": sub, "responseKind": about, "verbs": _SUB_VERBS.get(sub, ["create"])})
    return entry | ({"subresources": below} if below else {})
