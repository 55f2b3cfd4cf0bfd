"""Merge patches (RFC 7386), strategic merge patches of built-in kinds, and server-side apply.

Rules of strategic merge patches: the document "Strategic Merge Patch" of the Kubernetes community
(sig-api-machinery). Of its directives, lists have ``$patch: delete``, by which ``kubectl apply`` takes an
item away. Those about order and unions are ignored, all others refused.
"""

import copy
import json
from dataclasses import dataclass
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.resources import StatusError, bad_request
from arena_topo.sandbox.api.schema import Schema, child, resolve


def merge_patch(target: Any, patch: Any) -> Any:
    """Return *target* with a merge patch applied: ``null`` removes a field, a list is replaced whole."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def strategic_patch(target: Object, patch: Any, schema: Schema) -> Any:
    """Return *target* with a strategic merge patch applied; raises StatusError for unknown directives.

    Lists whose schema has keys are merged item by item. Example: containers are merged by ``name``, so that
    ``[{"name": "main", "image": "b"}]`` on ``[{"name": "main", "image": "a"}, {"name": "side"}]`` changes one
    image and keeps the other container; ``[{"name": "side", "$patch": "delete"}]`` removes it.
    """
    return _merge(target, patch, schema, strategic=True)


# Who owns which field: ``metadata.managedFields`` after every kind of write, and server-side apply.
#
# Rules: the Kubernetes documentation on Server-Side Apply. Example: manager ``one`` applies ``{x: 1, y: 1}``
# and owns ``.data.x`` and ``.data.y``. When ``two`` applies ``{x: 2}``, ``.data.x`` is a conflict, unless it
# forces: then ``two`` owns ``.data.x``. When ``one`` applies ``{}`` afterwards, ``.data.y`` is removed,
# because its only owner gave it up, and ``.data.x`` stays.
#
# Sets of fields are written as FieldsV1 (sigs.k8s.io/structured-merge-diff: ``f:`` field, ``k:`` list item by
# its keys, ``v:`` member of a set, ``.`` the item itself). Example: of ``{"containers": [{"name": "main",
# "image": "a"}]}`` the set holds ``f:containers/k:{"name":"main"}`` with ``.``, ``f:name`` and ``f:image``
# below it, as three paths; FieldsV1 is the tree of these paths.

_Path = tuple[str, ...]
_FieldSet = dict[_Path, Any]
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


def _is_atomic(schema: Schema) -> bool:
    """Whether a list or map is owned and replaced as one value."""
    if schema.get("x-kubernetes-map-type") == "atomic":
        return True
    # A list without a list type is atomic, a map without a map type is not.
    listed = schema.get("type") == "array"
    return listed and schema.get("x-kubernetes-list-type", "atomic") == "atomic"


def _item_key(item: Any, schema: Schema) -> str:
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


def _fields_of(obj: Any, schema: Schema) -> _FieldSet:
    """Return the leaves of *obj* and their values, without those that have no owner."""
    fields: _FieldSet = {}
    _collect(obj, schema, (), fields)
    return {
        path: value for path, value in fields.items() if path[:2] not in _UNOWNED and path not in _UNOWNED
    }


def _collect(value: Any, schema: Schema, path: _Path, fields: _FieldSet) -> None:
    # An empty map or list is a leaf of its own: it has no fields below it that could be owned.
    if isinstance(value, dict) and value and not _is_atomic(schema):
        for name, field in value.items():
            _collect(field, child(schema, name) or {}, (*path, f"f:{name}"), fields)
    elif isinstance(value, list) and value and not _is_atomic(schema) and schema:
        items = resolve(schema.get("items"))
        for item in value:
            item_path = (*path, _item_key(item, schema))
            if isinstance(item, dict):
                fields[(*item_path, ".")] = None
                _collect(item, items, item_path, fields)
            else:
                fields[item_path] = item
    else:
        fields[path] = value


def _encode(paths: "set[_Path] | _FieldSet") -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for part in path:
            node = node.setdefault(part, {})
    return tree


def _decode(fields: dict[str, Any], path: _Path = ()) -> set[_Path]:
    if not fields:
        return {path} if path else set()
    return set[_Path]().union(*(_decode(below, (*path, part)) for part, below in fields.items()))


def _readable(path: _Path) -> str:
    """Return a path as conflict messages write it, for example ``.spec.containers[name="main"].image``."""
    text = ""
    for part in path:
        sort, _, rest = part.partition(":")
        # The "." of a list item adds nothing: its keys name it already.
        if sort == "f":
            text += f".{rest}"
        elif sort == "k":
            pairs = json.loads(rest)
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in pairs.items()) + "]"
        elif sort == "v":
            text += f"[={rest}]"
    return text


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the manager's name, the operation (Apply or Update), the subresource, when."""

    manager: str
    operation: str
    api_version: str
    time: str
    subresource: str = ""

    def matches(self, entry: Object) -> bool:
        """Whether a managedFields entry is this writer's."""
        own = (self.manager, self.operation, self.subresource)
        return own == (entry.get("manager"), entry.get("operation"), entry.get("subresource", ""))

    def entry(self, paths: "set[_Path] | _FieldSet") -> Object:
        """Return the managedFields entry of this writer for *paths*."""
        body: Object = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        body |= {"time": self.time, "fieldsType": "FieldsV1", "fieldsV1": _encode(paths)}
        return body | ({"subresource": self.subresource} if self.subresource else {})


def after_update(before: Object | None, after: Object, schema: Schema, writer: Writer) -> list[Object]:
    """Return the managedFields of *after*: the writer owns what it changed, others what is left."""
    old = _fields_of(before, schema) if before else {}
    new = _fields_of(after, schema)
    changed = {path for path, value in new.items() if path not in old or old[path] != value}
    entries, own, own_entries = [], set(changed), []
    for entry in before["metadata"].get("managedFields", []) if before else []:
        owned = _decode(entry.get("fieldsV1", {}))
        # The writer keeps what it set earlier; the others lose what this write changed or removed.
        if writer.matches(entry):
            own |= owned & new.keys()
            own_entries.append(entry)
        else:
            entries += _without(entry, owned - (new.keys() - changed))
    # An unchanged object keeps the entry with its time, so that a write without effect changes nothing.
    return entries + ([writer.entry(own)] if changed else own_entries if own else [])


def _without(entry: Object, paths: set[_Path]) -> list[Object]:
    """Return an entry that no longer owns *paths*, or nothing if it owned nothing else."""
    owned = _decode(entry.get("fieldsV1", {}))
    if not owned & paths:
        return [entry]
    return [entry | {"fieldsV1": _encode(owned - paths)}] if owned - paths else []


def apply(live: Object | None, config: Object, schema: Schema, writer: Writer, *, force: bool) -> Object:
    """Return *live* with an apply configuration merged in; raises StatusError on a conflict not forced."""
    applied = _fields_of(config, schema)
    # There is no conflict about an object that does not exist yet.
    if live is None:
        created: Object = copy.deepcopy(config)
        created["metadata"]["managedFields"] = [writer.entry(applied)]
        return created
    current = _fields_of(live, schema)
    entries = live["metadata"].get("managedFields", [])
    others = [entry for entry in entries if not writer.matches(entry)]
    # Two managers may own a field together as long as they agree on its value.
    contested = {path for path, value in applied.items() if path in current and current[path] != value}
    if not force:
        _check_conflicts(others, contested)
    former = set[_Path]().union(*(_decode(e.get("fieldsV1", {})) for e in entries if writer.matches(e)))
    shared = set[_Path]().union(*(_decode(entry.get("fieldsV1", {})) for entry in others))
    merged: Object = _merge(live, config, schema)
    # What the manager applied before and does not apply now goes, the innermost first, unless others own it,
    # too.
    for path in sorted(former - applied.keys() - shared, key=len, reverse=True):
        _remove(merged, path, schema)
    own = writer.entry(applied)
    same = next((e for e in entries if writer.matches(e) and e["fieldsV1"] == own["fieldsV1"]), None)
    # An apply without effect keeps the entry with its time.
    if same is not None and _fields_of(merged, schema) == current:
        own = same
    kept = [rest for entry in others for rest in _without(entry, contested)]
    merged["metadata"]["managedFields"] = [*kept, own]
    return merged


def _check_conflicts(others: list[Object], contested: set[_Path]) -> None:
    """Raise StatusError where other managers own contested fields."""
    causes = []
    for entry in others:
        using = f" using {entry['apiVersion']}" if entry["operation"] == "Update" else ""
        message = f'conflict with "{entry["manager"]}"{using}'
        causes += [
            {"reason": "FieldManagerConflict", "message": message, "field": _readable(path)}
            for path in sorted(contested & _decode(entry.get("fieldsV1", {})))
        ]
    if not causes:
        return
    count = f"{len(causes)} conflict" + ("s" if len(causes) > 1 else "")
    texts = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    raise StatusError(409, "Conflict", f"Apply failed with {count}: {texts}", {"causes": causes})


def _merge(live: Any, config: Any, schema: Schema, *, strategic: bool = False) -> Any:
    """Return *live* with *config* merged in: an apply configuration, or a *strategic* merge patch.

    In a patch ``null`` removes a field, and maps are merged that an apply configuration replaces as one
    value.
    """
    if isinstance(config, dict) and isinstance(live, dict) and (strategic or not _is_atomic(schema)):
        merged = dict(live)
        for name, value in config.items():
            if strategic and name.startswith("$"):
                _check_directive(name, value)
            elif strategic and value is None:
                merged.pop(name, None)
            elif name in live:
                merged[name] = _merge(live[name], value, child(schema, name) or {}, strategic=strategic)
            else:
                merged[name] = value
        return copy.deepcopy(merged)
    if isinstance(config, list) and isinstance(live, list) and schema and not _is_atomic(schema):
        items = resolve(schema.get("items"))
        by_key = {_item_key(item, schema): item for item in live}
        for item in config:
            key = _item_key(item, schema)
            if strategic and isinstance(item, dict) and item.get("$patch") == "delete":
                by_key.pop(key, None)
            else:
                by_key[key] = _merge(by_key[key], item, items, strategic=strategic) if key in by_key else item
        return copy.deepcopy(list(by_key.values()))
    return copy.deepcopy(config)


def _check_directive(name: str, value: Any) -> None:
    # Order and unions change nothing that this API server compares.
    if not name.startswith(("$setElementOrder/", "$retainKeys")):
        raise bad_request(f"the sandbox does not know the directive {name}: {json.dumps(value)} here")


def _remove(value: Any, path: _Path, schema: Schema) -> None:
    """Take the field at *path* out of *value* in place."""
    part, rest = path[0], path[1:]
    if isinstance(value, dict) and part.startswith("f:"):
        name = part[2:]
        if name not in value:
            return
        if not rest:
            del value[name]
            return
        _remove(value[name], rest, child(schema, name) or {})
        # A map or list that was there only for its fields goes with the last of them.
        if value[name] in ({}, []):
            del value[name]
    elif isinstance(value, list):
        index = next((i for i, item in enumerate(value) if _item_key(item, schema) == part), None)
        if index is None:
            return
        if not rest or rest == (".",):
            del value[index]
        else:
            _remove(value[index], rest, resolve(schema.get("items")))
