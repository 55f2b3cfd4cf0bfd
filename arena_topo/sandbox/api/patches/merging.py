"""JSON merge patches (RFC 7386), and strategic merge patches by the merge keys of the built-in schemas.

Rules of the latter: the document "Strategic Merge Patch" of the Kubernetes community (sig-api-machinery). The
directives about order (``$setElementOrder``) and unions (``$retainKeys``) are accepted and ignored.
"""

import copy
from typing import Any

from arena_topo.sandbox.api.schema.structural import Schema, child, resolve
from arena_topo.sandbox.api.status_errors import bad_request

_DELETE = "$deleteFromPrimitiveList/"


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


def strategic_patch(target: Any, patch: Any, schema: Schema) -> Any:
    """Return *target* with a strategic merge patch applied.

    Lists whose schema has a merge key are merged item by item. Example: containers are merged by ``name``, so that
    ``[{"name": "main", "image": "b"}]`` on ``[{"name": "main", "image": "a"}, {"name": "side"}]`` changes one image
    and keeps the other container; ``[{"name": "side", "$patch": "delete"}]`` removes it.
    """
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    # The directive asks for the opposite of a merge: what is there goes, but for what the patch has.
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if name.startswith(_DELETE):
            field = name.removeprefix(_DELETE)
            merged[field] = [item for item in merged.get(field) or [] if item not in value]
        # Order and unions change nothing that this API server compares.
        elif name.startswith("$"):
            continue
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_field(merged.get(name), value, child(schema, name) or {})
    return merged


def _merge_field(current: Any, value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        return {} if value.get("$patch") == "delete" else strategic_patch(current, value, schema)
    if not isinstance(value, list) or "merge" not in schema.get("x-kubernetes-patch-strategy", ""):
        return copy.deepcopy(value)
    items, key = resolve(schema.get("items")), schema.get("x-kubernetes-patch-merge-key")
    present = list(current or [])
    # A list of texts that is merged, such as finalizers, is a set.
    if key is None:
        return present + [item for item in value if item not in present]
    return _merge_list(present, value, key, items)


def _merge_list(current: list[Any], patches: list[Any], key: str, items: Schema) -> list[Any]:
    # In a list the directive is an item of its own, which stands for the whole list.
    if any(patch.get("$patch") == "replace" for patch in patches):
        return [patch for patch in patches if patch.get("$patch") != "replace"]
    for patch in patches:
        if key not in patch:
            raise bad_request(f"map: {patch} does not contain declared merge key: {key}")
        index = next((i for i, item in enumerate(current) if item.get(key) == patch[key]), None)
        if patch.get("$patch") == "delete":
            current = [item for item in current if item.get(key) != patch[key]]
        elif index is None:
            current.append(strategic_patch({}, patch, items))
        else:
            current[index] = strategic_patch(current[index], patch, items)
    return current
