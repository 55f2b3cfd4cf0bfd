"""Lists as tables (meta.k8s.io/v1 Table), which ``kubectl get`` asks for."""

import re
from collections.abc import Iterable
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Column, Kind
from arena_topo.sandbox.api.tables.ages import age
from arena_topo.sandbox.api.tables.columns import Cell, table_of

_STEP = re.compile(r"\.([\w-]+)|\[\?\(@\.([\w.]+)==[\"']([^\"']*)[\"']\)\]|\[['\"]?([\w./-]+)['\"]?\]")


def table(kind: Kind, items: Iterable[Object], meta: Object, include: str, *, headers: bool = True) -> Object:
    """Return a Table of *items*; *include* is Metadata, Object or None, as in the request."""
    items = list(items)
    definitions, rows = _custom(kind, items) if kind.custom else _builtin(kind, items)
    body: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    body["columnDefinitions"] = definitions if headers else None
    body["rows"] = [
        {"cells": cells, **_row_object(item, include)} for cells, item in zip(rows, items, strict=True)
    ]
    return body


def _row_object(item: Object, include: str) -> Object:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {"object": head | {"metadata": item["metadata"]}}


def _definition(name: str, type_: str, format_: str, priority: int) -> Object:
    return {"name": name, "type": type_, "format": format_, "description": "", "priority": priority}


def _builtin(kind: Kind, items: list[Object]) -> tuple[list[Object], list[list[Cell]]]:
    headers, row = table_of(kind.plural)
    definitions = [
        _definition(
            each.name, each.type, "name" if each.name == "Name" and index == 0 else "", int(each.wide)
        )
        for index, each in enumerate(headers)
    ]
    return definitions, [row(item) for item in items]


def _custom(kind: Kind, items: list[Object]) -> tuple[list[Object], list[list[Cell]]]:
    columns = kind.columns or (Column("Age", "date", ".metadata.creationTimestamp"),)
    definitions = [_definition("Name", "string", "name", 0)]
    definitions += [_definition(each.name, each.type, each.format, each.priority) for each in columns]
    rows = [[item["metadata"]["name"], *(_cell(each, item) for each in columns)] for item in items]
    return definitions, rows


def _cell(column: Column, item: Object) -> Cell:
    value = _look_up(item, column.path)
    if column.type == "date":
        return age(value) if isinstance(value, str) else "<unknown>"
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str | int) else "" if value is None else str(value)


def _look_up(item: Any, path: str) -> Any:
    """Return the first value at a simple JSON path: fields, quoted keys, and ``[?(@.key=="value")]``."""
    value = item
    for field, key, wanted, quoted in _STEP.findall(path):
        if key:
            value = next((each for each in value or [] if str(each.get(key)) == wanted), None)
        elif isinstance(value, list):
            value = value[int(quoted)] if quoted.isdigit() and int(quoted) < len(value) else None
        else:
            value = value.get(field or quoted) if isinstance(value, dict) else None
    return value
