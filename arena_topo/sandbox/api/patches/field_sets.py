"""Sets of fields, as ``metadata.managedFields`` writes them (FieldsV1).

Source of the format: sigs.k8s.io/structured-merge-diff (``f:`` field, ``k:`` list item by keys, ``v:`` set
member, ``.`` the item itself). Example: of ``{"spec": {"containers": [{"name": "main", "image": "a"}]}}`` the set holds
``f:spec/f:containers/k:{"name":"main"}`` with ``.``, ``f:name`` and ``f:image`` below it, as three paths; FieldsV1 is
the tree of these paths.
"""

import json
from typing import Any

from arena_topo.sandbox.api.schema.structural import Schema, child, resolve

Path = tuple[str, ...]
FieldSet = dict[Path, Any]
"""Paths with the values they have; a path that ends in a list item carries None."""

_IDENTITY = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
)
_DELETION = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
_UNOWNED = frozenset(
    {("f:apiVersion",), ("f:kind",), *(("f:metadata", f"f:{name}") for name in _IDENTITY + _DELETION)}
)
_KEY_DEFAULTS = {"protocol": "TCP"}
"""Keys of list items that may be left out, because the API server fills them before it compares."""


def is_atomic(schema: Schema) -> bool:
    """Whether a list or map is owned and replaced as one value."""
    if schema.get("x-kubernetes-map-type") == "atomic":
        return True
    listed = schema.get("type") == "array"
    return listed and schema.get("x-kubernetes-list-type", "atomic") == "atomic"


def item_key(item: Any, schema: Schema) -> str:
    """Return the path element of a list item: by its keys, or by its value in a set."""
    if schema.get("x-kubernetes-list-type") == "set":
        return "v:" + json.dumps(item, separators=(",", ":"))
    keys, items = schema.get("x-kubernetes-list-map-keys", ()), resolve(schema.get("items"))
    values = {}
    for key in sorted(keys):
        value = item.get(key, (child(items, key) or {}).get("default", _KEY_DEFAULTS.get(key)))
        if value is not None:
            values[key] = value
    return "k:" + json.dumps(values, separators=(",", ":"), sort_keys=True)


def fields_of(obj: Any, schema: Schema) -> FieldSet:
    """Return the leaves of *obj* and their values, without those that nobody owns."""
    found: FieldSet = {}
    _collect(obj, schema, (), found)
    return {path: value for path, value in found.items() if path[:2] not in _UNOWNED and path not in _UNOWNED}


def _collect(value: Any, schema: Schema, path: Path, found: FieldSet) -> None:
    if isinstance(value, dict) and value and not is_atomic(schema):
        for name, field in value.items():
            _collect(field, child(schema, name) or {}, (*path, f"f:{name}"), found)
    elif isinstance(value, list) and value and not is_atomic(schema) and schema:
        items = resolve(schema.get("items"))
        for item in value:
            where = (*path, item_key(item, schema))
            if isinstance(item, dict):
                found[(*where, ".")] = None
                _collect(item, items, where, found)
            else:
                found[where] = item
    else:
        found[path] = value


def encode(paths: "set[Path] | FieldSet") -> dict[str, Any]:
    """Return FieldsV1 of *paths*."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for part in path:
            node = node.setdefault(part, {})
    return tree


def decode(fields: dict[str, Any], path: Path = ()) -> set[Path]:
    """Return the paths of FieldsV1."""
    if not fields:
        return {path} if path else set()
    found: set[Path] = set()
    for part, below in fields.items():
        found |= decode(below, (*path, part))
    return found


def readable(path: Path) -> str:
    """Return a path as conflict messages write it, for example ``.spec.containers[name="main"].image``."""
    text = ""
    for part in path:
        sort, _, rest = part.partition(":")
        if sort == "f":
            text += f".{rest}"
        elif sort == "k":
            pairs = json.loads(rest)
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in pairs.items()) + "]"
        elif sort == "v":
            text += f"[={rest}]"
    return text
