"""What a URL of the API asks for.

Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
"""

from dataclasses import dataclass

from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.refusals import no_such_resource

_NAMESPACED = 2


@dataclass(frozen=True, slots=True)
class Target:
    """The object or list that a request is about."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(registry: Registry, parts: list[str]) -> Target:
    """Return what the path's *parts* name, from ``api`` or ``apis`` on; raises Refusal where nothing is served."""
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if len(rest) > _NAMESPACED and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[_NAMESPACED:]
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced):
        raise no_such_resource()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > _NAMESPACED else ""
    if subresource and subresource not in kind.subresources:
        raise no_such_resource()
    return Target(kind, namespace, name, subresource)


def verb_of(method: str, target: Target, query: dict[str, str]) -> str:
    """Return the API verb of an HTTP method."""
    if method in {"GET", "HEAD"}:
        if query.get("watch") in {"true", "1"}:
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
