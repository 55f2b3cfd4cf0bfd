"""Values as documents, as ``-o json`` and ``-o yaml`` print them."""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from arena_topo.model.notation.printable import printable_document
from arena_topo.model.notation.yaml_documents import dump
from arena_topo.model.objects import Object


def document(value: Any, form: str) -> str:
    """Return *value* as ``json`` (indented by four, as Arena does) or ``yaml``, with a newline at the end.

    Characters that cannot be seen are written as escapes, which mean the same: documents are looked at on terminals too.
    """
    if form == "json":
        return printable_document(json.dumps(value, indent=4, ensure_ascii=False) + "\n", is_json=True)
    return printable_document(dump(value), is_json=False)


def plain(value: Any) -> Any:
    """Return *value* as mappings, lists and scalars; frozen values become mappings by the names of their fields."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    # A named tuple is a tuple too, so it must come before the others.
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def compact(value: Any) -> str:
    """Return *value* as JSON on one line, for programs: it takes a sixth of the time of the indented form."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def objects(items: Sequence[Object], form: str) -> str:
    """Return Kubernetes objects as kubectl reads them back: YAML documents, a JSON object or List, or names."""
    if form == "name":
        return "".join(f"{object_name(item)}\n" for item in items)
    if form == "yaml":
        return "---\n".join(dump(item) for item in items)
    single = items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(items)}
    return document(single, "json")


def object_name(item: Object) -> str:
    """Return ``kind.group/name``, as kubectl names an object."""
    group = str(item["apiVersion"]).rpartition("/")[0]
    kind = str(item["kind"]).lower() + (f".{group}" if group else "")
    return f"{kind}/{item['metadata']['name']}"
