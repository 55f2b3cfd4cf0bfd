"""Strategic merge patches, by the merge keys of the built-in schemas.

Rules: the document "Strategic Merge Patch" of the Kubernetes community (sig-api-machinery).
"""

import copy
from typing import Any

from arena_topo.sandbox.api.refusals import bad_request
from arena_topo.sandbox.api.schema.structural import Schema, child, resolve

_DIRECTIVES = ("$patch", "$retainKeys")
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_patch(target: Any, patch: Any, schema: Schema) -> Any:
    """Return *target* with a strategic merge patch applied."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        merged = {name: value for name, value in merged.items() if name in retained}
    for name, value in patch.items():
        if name in _DIRECTIVES or name.startswith(_ORDER):
            continue
        if name.startswith(_DELETE):
            field = name.removeprefix(_DELETE)
            merged[field] = [each for each in merged.get(field) or [] if each not in value]
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_field(merged.get(name), value, child(schema, name) or {})
    for name, order in patch.items():
        if name.startswith(_ORDER):
            _reorder(merged, name.removeprefix(_ORDER), order, schema)
    return merged


def _merge_field(current: Any, value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        if value.get("$patch") == "delete":
            return {}
        return strategic_patch(current, value, schema)
    if not isinstance(value, list) or "merge" not in schema.get("x-kubernetes-patch-strategy", ""):
        return copy.deepcopy(value)
    items = resolve(schema.get("items"))
    key = schema.get("x-kubernetes-patch-merge-key")
    if key is None or items.get("type") not in {None, "object"}:
        merged = list(current or [])
        return merged + [each for each in value if each not in merged]
    return _merge_list(list(current or []), value, key, items)


def _merge_list(current: list[Any], patches: list[Any], key: str, items: Schema) -> list[Any]:
    if any(each.get("$patch") == "replace" for each in patches):
        return [each for each in patches if each.get("$patch") != "replace"]
    for patch in patches:
        if key not in patch:
            raise bad_request(f"map: {patch} does not contain declared merge key: {key}")
        at = next((index for index, each in enumerate(current) if each.get(key) == patch[key]), None)
        if patch.get("$patch") == "delete":
            current = [each for each in current if each.get(key) != patch[key]]
        elif at is None:
            current.append(strategic_patch({}, patch, items))
        else:
            current[at] = strategic_patch(current[at], patch, items)
    return current


def _reorder(merged: dict[str, Any], name: str, order: list[Any], schema: Schema) -> None:
    values = merged.get(name)
    if not isinstance(values, list):
        return
    key = (child(schema, name) or {}).get("x-kubernetes-patch-merge-key")
    wanted = [each.get(key) if isinstance(each, dict) else each for each in order]

    def place(item: Any) -> int:
        own = item.get(key) if isinstance(item, dict) else item
        return wanted.index(own) if own in wanted else len(wanted)

    merged[name] = sorted(values, key=place)
