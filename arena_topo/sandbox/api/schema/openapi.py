"""OpenAPI v3 documents, as far as kubectl's validation, apply and explain read them."""

import hashlib
import json
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.schema.builtins import components
from arena_topo.sandbox.api.schema.structural import root_schema

_PREFIX = "#/components/schemas/"
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_ACTIONS = (
    ("get", "get", ()),
    ("put", "put", _WRITE),
    ("patch", "patch", (*_WRITE, "force")),
    ("delete", "delete", ()),
)


def _full(schema: Any) -> Any:
    """Return a distilled schema with references as OpenAPI writes them."""
    if isinstance(schema, list):
        return [_full(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    full = {name: _full(value) for name, value in schema.items() if name not in {"$ref", "custom"}}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = {"$ref": _PREFIX + reference}
        return {**full, "allOf": [target]} if full else target
    if isinstance(reference, dict):
        full["$ref"] = _full(reference)
    return full


def _name(kind: Kind) -> str:
    if not kind.custom:
        return str(kind.schema["$ref"])
    reversed_group = ".".join(reversed(kind.group.split(".")))
    return f"{reversed_group}.{kind.version}.{kind.kind}"


def _group_version(registry: Registry, path: str) -> list[Kind]:
    return [kind for kind in registry if kind.root.strip("/") == path]


def document(registry: Registry, path: str) -> Object:
    """Return the OpenAPI v3 document of ``api/v1`` or ``apis/GROUP/VERSION``."""
    kinds = _group_version(registry, path)
    schemas = {name: _full(each) for name, each in components().items()} if kinds else {}
    paths: Object = {}
    for kind in kinds:
        identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        if kind.custom:
            schemas[_name(kind)] = _full(root_schema(kind.schema)) | {
                "x-kubernetes-group-version-kind": [identity]
            }
        base = f"{kind.root}/namespaces/{{namespace}}" if kind.namespaced else kind.root
        paths[f"{base}/{kind.plural}"] = {"post": _operation(kind, identity, "post", _WRITE)}
        paths[f"{base}/{kind.plural}/{{name}}"] = {
            method: _operation(kind, identity, action, names) for method, action, names in _ACTIONS
        }
    info = {"title": "arena-topo sandbox", "version": "v1.36.3"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _operation(kind: Kind, identity: Object, action: str, names: tuple[str, ...]) -> Object:
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
    content = {"application/json": {"schema": {"$ref": _PREFIX + _name(kind)}}}
    answer = {"200": {"description": "OK", "content": content}}
    marks = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity}
    return {"parameters": parameters, "responses": answer, **marks}


def index(registry: Registry) -> Object:
    """Return ``/openapi/v3``: the documents there are, each with a hash of its content."""
    roots = dict.fromkeys(kind.root.strip("/") for kind in registry)
    return {
        "paths": {
            root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={_hash(registry, root)}"} for root in roots
        }
    }


def _hash(registry: Registry, root: str) -> str:
    content = [[kind.kind, kind.schema] for kind in _group_version(registry, root)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest().upper()
