"""What the server serves: ``/api``, ``/apis`` and below, and the OpenAPI v3 documents as kubectl reads them.

Sources: k8s.io/apimachinery/pkg/apis/meta/v1 and k8s.io/kube-openapi. kubectl validates by the ``patch`` operations
of a document and explains by its schemas; it discovers group by group where the aggregated form is not served.
"""

import hashlib
import json
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.schema.builtins import components
from arena_topo.sandbox.api.schema.structural import root_schema
from arena_topo.sandbox.api.status_errors import no_such_resource

_STATUS_VERBS = ["get", "patch", "update"]
_CONNECT_VERBS = ["create", "get"]
_SUBRESOURCE_VERBS = {
    "status": _STATUS_VERBS,
    "log": ["get"],
    "finalize": ["update"],
    "exec": _CONNECT_VERBS,
    "attach": _CONNECT_VERBS,
    "portforward": _CONNECT_VERBS,
}
_SUBRESOURCE_KINDS = {
    "exec": "PodExecOptions",
    "attach": "PodAttachOptions",
    "portforward": "PodPortForwardOptions",
}
_PREFIX = "#/components/schemas/"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def document(registry: Registry, parts: list[str]) -> Object:
    """Return the discovery document at the parts of a path; raises StatusError where nothing is served."""
    match parts:
        # The core group, which is older than API groups, has a document of its own.
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(registry, name) for name in registry.groups() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", name]:
            return {"kind": "APIGroup", "apiVersion": "v1"} | _group(registry, name)
        case _:
            return _resources(registry, "/".join(parts))


def _group(registry: Registry, name: str) -> Object:
    served = registry.groups().get(name)
    if not served:
        raise no_such_resource()
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(registry: Registry, root: str) -> Object:
    kinds = _kinds_at(registry, root)
    if not kinds:
        raise no_such_resource()
    entries = [entry for kind in kinds for entry in _entries(kind)]
    head = {"groupVersion": kinds[0].api_version, "resources": entries}
    return {"kind": "APIResourceList", "apiVersion": "v1"} | head


def _entries(kind: Kind) -> list[Object]:
    """Return the entries of a resource and of its subresources."""
    entry: Object = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    entry |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    entry |= {"categories": list(kind.categories)} if kind.categories else {}
    below: Object = {"singularName": "", "namespaced": kind.namespaced}
    return [
        entry,
        *(
            {
                "name": f"{kind.plural}/{name}",
                "verbs": _SUBRESOURCE_VERBS[name],
                "kind": _SUBRESOURCE_KINDS.get(name, kind.kind),
                **below,
            }
            for name in kind.subresources
        ),
    ]


def _kinds_at(registry: Registry, root: str) -> list[Kind]:
    return [kind for kind in registry if kind.root == root]


def openapi(registry: Registry, root: str) -> Object:
    """Return the OpenAPI v3 document of ``api/v1`` or ``apis/GROUP/VERSION``; without *root*, the list of them."""
    if not root:
        roots = dict.fromkeys(kind.root for kind in registry)
        urls = {root: f"/openapi/v3/{root}?hash={_hash(registry, root)}" for root in roots}
        return {"paths": {root: {"serverRelativeURL": url} for root, url in urls.items()}}
    kinds = _kinds_at(registry, root)
    # Every document carries all components, because references must not leave it.
    schemas = {name: _with_references(schema) for name, schema in components().items()} if kinds else {}
    paths: Object = {}
    for kind in kinds:
        identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        # Built-in schemas are among the components; those of CRDs are known to their kinds only.
        if kind.custom:
            schema = _with_references(root_schema(kind.schema))
            schemas[_component(kind)] = schema | {"x-kubernetes-group-version-kind": [identity]}
        base = f"/{root}/namespaces/{{namespace}}" if kind.namespaced else f"/{root}"
        operations = {action: _operation(kind, identity, action) for action in ("get", "put", "patch")}
        paths[f"{base}/{kind.plural}/{{name}}"] = operations
        paths[f"{base}/{kind.plural}"] = {"post": _operation(kind, identity, "post")}
    info = {"title": "arena-topo sandbox", "version": "v1.36.3"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _hash(registry: Registry, root: str) -> str:
    """Return what changes with a document's content, by which clients cache it."""
    content = [[kind.kind, kind.schema] for kind in _kinds_at(registry, root)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest().upper()


def _with_references(schema: Any) -> Any:
    """Return a schema of the sandbox with references as OpenAPI writes them."""
    if isinstance(schema, list):
        return [_with_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    own = {"$ref", "custom", "layout"}
    full = {name: _with_references(value) for name, value in schema.items() if name not in own}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = {"$ref": _PREFIX + reference}
        # OpenAPI 3.0 ignores keywords beside a reference, so both are wrapped.
        return {**full, "allOf": [target]} if full else target
    # A field of that name, as the schema of schemas has it, and no reference.
    return full if reference is None else full | {"$ref": _with_references(reference)}


def _component(kind: Kind) -> str:
    """Return the name of a kind's schema: ``org.kubeflow.v2beta1.MPIJob`` for an MPIJob."""
    if not kind.custom:
        return str(kind.schema["$ref"])
    return f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"


def _operation(kind: Kind, identity: Object, action: str) -> Object:
    names = () if action == "get" else _WRITE_PARAMETERS
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    content = {"application/json": {"schema": {"$ref": _PREFIX + _component(kind)}}}
    marks = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity}
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
        **marks,
    }
