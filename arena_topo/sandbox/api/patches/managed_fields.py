"""Who owns which field: ``metadata.managedFields`` after every kind of write, and server-side apply.

Rules: the Kubernetes documentation on Server-Side Apply.
"""

import copy
from dataclasses import dataclass
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.patches.field_sets import (
    FieldSet,
    Path,
    decode,
    encode,
    fields_of,
    is_atomic,
    item_key,
    readable,
)
from arena_topo.sandbox.api.refusals import Refusal
from arena_topo.sandbox.api.schema.structural import Schema, child, resolve


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
        mine = (self.manager, self.operation, self.subresource)
        return mine == (entry.get("manager"), entry.get("operation"), entry.get("subresource", ""))

    def entry(self, paths: "set[Path] | FieldSet") -> Object:
        """Return the managedFields entry of this writer for *paths*."""
        body: Object = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        body |= {"time": self.time, "fieldsType": "FieldsV1", "fieldsV1": encode(paths)}
        return body | ({"subresource": self.subresource} if self.subresource else {})


def updated(before: Object | None, after: Object, schema: Schema, writer: Writer) -> list[Object]:
    """Return the managedFields of *after*: the writer owns what it changed, others what is still there."""
    old = fields_of(before, schema) if before else {}
    new = fields_of(after, schema)
    changed = {path for path, value in new.items() if path not in old or old[path] != value}
    entries, mine = [], set(changed)
    for entry in (before or {}).get("metadata", {}).get("managedFields", []):
        owned = decode(entry.get("fieldsV1", {}))
        if writer.matches(entry):
            mine |= owned & new.keys()
            continue
        left = (owned & new.keys()) - changed
        if left:
            entries.append(entry if left == owned else entry | {"fieldsV1": encode(left)})
    if mine and changed:
        entries.append(writer.entry(mine))
    elif mine:
        entries += [e for e in (before or {})["metadata"]["managedFields"] if writer.matches(e)]
    return entries


def apply(live: Object | None, config: Object, schema: Schema, writer: Writer, *, force: bool) -> Object:
    """Return *live* with an apply configuration merged in; raises Refusal on a conflict not forced."""
    wanted = fields_of(config, schema)
    if live is None:
        created: Object = copy.deepcopy(config)
        created["metadata"]["managedFields"] = [writer.entry(wanted)]
        return created
    current = fields_of(live, schema)
    entries = live["metadata"].get("managedFields", [])
    others = [entry for entry in entries if not writer.matches(entry)]
    contested = {path for path, value in wanted.items() if path in current and current[path] != value}
    _refuse_conflicts(others, contested, force=force)
    kept_by_others = {path for entry in others for path in decode(entry.get("fieldsV1", {}))}
    former = {
        path for entry in entries if writer.matches(entry) for path in decode(entry.get("fieldsV1", {}))
    }
    merged: Object = _merge(live, config, schema)
    for path in sorted(former - wanted.keys() - kept_by_others, key=len, reverse=True):
        _remove(merged, path, schema)
    left = []
    for entry in others:
        owned = decode(entry.get("fieldsV1", {}))
        if owned - contested:
            left.append(entry if not owned & contested else entry | {"fieldsV1": encode(owned - contested)})
    own = writer.entry(wanted)
    same = next((e for e in entries if writer.matches(e) and e["fieldsV1"] == own["fieldsV1"]), None)
    unchanged = same is not None and fields_of(merged, schema) == current
    merged["metadata"]["managedFields"] = [*left, same if same is not None and unchanged else own]
    return merged


def _refuse_conflicts(others: list[Object], contested: set[Path], *, force: bool) -> None:
    found = [
        (entry, path) for entry in others for path in sorted(contested & decode(entry.get("fieldsV1", {})))
    ]
    if force or not found:
        return
    causes = []
    for entry, path in found:
        using = f" using {entry['apiVersion']}" if entry["operation"] == "Update" else ""
        message = f'conflict with "{entry["manager"]}"{using}'
        causes.append({"reason": "FieldManagerConflict", "message": message, "field": readable(path)})
    plural = "conflict" if len(causes) == 1 else "conflicts"
    listed = (
        f"{causes[0]['message']}: {causes[0]['field']}"
        if len(causes) == 1
        else "conflicts with "
        + "\n".join(f"{c['message'].removeprefix('conflict with ')}:\n- {c['field']}" for c in causes)
    )
    text = f"Apply failed with {len(causes)} {plural}: {listed}"
    raise Refusal(409, "Conflict", text, {"causes": causes})


def _merge(live: Any, config: Any, schema: Schema) -> Any:
    if isinstance(config, dict) and isinstance(live, dict) and not is_atomic(schema):
        merged = dict(live)
        for name, value in config.items():
            merged[name] = _merge(live.get(name), value, child(schema, name) or {}) if name in live else value
        return copy.deepcopy(merged)
    if isinstance(config, list) and isinstance(live, list) and schema and not is_atomic(schema):
        items = resolve(schema.get("items"))
        place = {item_key(each, schema): each for each in live}
        for each in config:
            key = item_key(each, schema)
            place[key] = _merge(place[key], each, items) if key in place else each
        return copy.deepcopy(list(place.values()))
    return copy.deepcopy(config)


def _remove(value: Any, path: Path, schema: Schema) -> None:
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
        if value[name] in ({}, []):
            del value[name]
    elif isinstance(value, list):
        at = next((i for i, each in enumerate(value) if item_key(each, schema) == part), None)
        if at is None:
            return
        if not rest or rest == (".",):
            del value[at]
        else:
            _remove(value[at], rest, resolve(schema.get("items")))
