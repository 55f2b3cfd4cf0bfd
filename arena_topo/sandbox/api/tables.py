"""Lists as tables (meta.k8s.io/v1 Table), which ``kubectl get`` asks for.

Pods and nodes have the columns of k8s.io/kubernetes pkg/printers/internalversion/printers.go, custom
resources those of their definitions. Other kinds show a few fields by path, or their name and age.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.model.text.durations import parse_instant
from arena_topo.sandbox.api.kinds import Column, Kind

# One step of a JSON path: ".field", a filter "[?(@.key=="value")]", or an index or quoted key in brackets.
_STEP = re.compile(r"\.([\w-]+)|\[\?\(@\.([\w.]+)==[\"']([^\"']*)[\"']\)\]|\[['\"]?([\w./-]+)['\"]?\]")
_NAME = Column("Name", "string", ".metadata.name")
_AGE = Column("Age", "date", ".metadata.creationTimestamp")
_Cell = str | int
_UNITS = ((31_536_000, 2, "y"), (86400, 2, "d"), (3600, 3, "h"), (60, 2, "m"), (1, 0, "s"))
"""Units of time in seconds, each with how many of them an age has at least that is shown in it."""


def human_duration(seconds: float) -> str:
    """Return *seconds* as ``kubectl get`` shows ages, in the coarser of its units: 119s, 2m, 3h, 2d, 2y."""
    # A clock that runs ahead of this one must not give an age below zero.
    whole = max(int(seconds), 0)
    size, _, unit = next(row for row in _UNITS if whole >= row[0] * row[1])
    return f"{whole // size}{unit}"


def _age_of(instant: str) -> str:
    if not instant:
        return "<unknown>"
    return human_duration((datetime.now(UTC) - parse_instant(instant)).total_seconds())


def table(kind: Kind, items: Sequence[Object], meta: Object, include: str, *, headers: bool = True) -> Object:
    """Return a Table of *items*; *include* is Metadata or Object, as in the request."""
    columns = _COLUMNS.get(kind.resource) or (_NAME, *(kind.columns or (_AGE,)))
    cells = _CELLS.get(kind.resource)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            # kubectl finds the column of names by this format, for example to prefix them with the kind.
            "format": "name" if column.name == "Name" else "",
            "description": "",
            "priority": column.priority,
        }
        for column in columns
    ]
    rows = [
        {
            "cells": [_cell(column, item) for column in columns] if cells is None else cells(item),
            **_row_object(item, include),
        }
        for item in items
    ]
    body: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
    # In a watch kubectl takes the columns from the first table and prints no second header.
    return body | {"columnDefinitions": definitions if headers else None, "rows": rows}


def _row_object(item: Object, include: str) -> Object:
    if include == "Object":
        return {"object": item}
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {"object": head | {"metadata": item["metadata"]}}


def _cell(column: Column, item: Object) -> _Cell:
    value = _look_up(item, column.path)
    if column.type == "date":
        return _age_of(value) if isinstance(value, str) else "<unknown>"
    # Python writes True, JSON and therefore kubectl true.
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str | int) else "" if value is None else str(value)


def _look_up(item: Any, path: str) -> Any:
    """Return the first value at a simple JSON path: fields, quoted keys, and ``[?(@.key=="value")]``."""
    value = item
    for field, key, expected, quoted in _STEP.findall(path):
        if key:
            value = next((entry for entry in value or [] if str(entry.get(key)) == expected), None)
        elif isinstance(value, list):
            value = value[int(quoted)] if quoted.isdigit() and int(quoted) < len(value) else None
        else:
            value = value.get(field or quoted) if isinstance(value, dict) else None
    return value


def _age(obj: Object) -> str:
    return _age_of(obj["metadata"].get("creationTimestamp", ""))


def _pod_cells(pod: Object) -> list[_Cell]:
    spec, status = pod["spec"], pod.get("status", {})
    states = status.get("containerStatuses", [])
    ready = sum(1 for state in states if state.get("ready"))
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers', []))}",
        _pod_status(pod),
        str(sum(state.get("restartCount", 0) for state in states)),
        _age(pod),
        status.get("podIP", "<none>"),
        spec.get("nodeName", "<none>"),
    ]


def _pod_status(pod: Object) -> str:
    """Return the STATUS of a pod: what says most of its phase, conditions and containers' states."""
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    status = pod.get("status", {})
    word = str(status.get("reason") or status.get("phase", "Pending"))
    if any(condition.get("reason") == "SchedulingGated" for condition in status.get("conditions", [])):
        word = "SchedulingGated"
    # A container's reason, such as CrashLoopBackOff, says more than a phase that stays Running meanwhile.
    for container in status.get("containerStatuses", []):
        state = container.get("state", {})
        word = state.get("waiting", {}).get("reason") or state.get("terminated", {}).get("reason") or word
    return word


def _node_cells(node: Object) -> list[_Cell]:
    meta, status = node["metadata"], node.get("status", {})
    ready = _look_up(node, '.status.conditions[?(@.type=="Ready")].status')
    cordoned = ",SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else ""
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in meta.get("labels") or {} if key.startswith(prefix))
    return [
        meta["name"],
        ("Ready" if ready == "True" else "NotReady") + cordoned,
        ",".join(roles) or "<none>",
        _age(node),
        status.get("nodeInfo", {}).get("kubeletVersion", ""),
        _look_up(node, '.status.addresses[?(@.type=="InternalIP")].address') or "<none>",
    ]


def _paths(columns: str) -> tuple[Column, ...]:
    """Return columns by names and paths: ``Type=.type,Reason=.reason``; without paths, of a row's cells.

    A star marks a column that shows with ``-o wide`` only.
    """
    pairs = (column.partition("=") for column in columns.split(","))
    return tuple(Column(name.strip("*"), "string", path, int("*" in name)) for name, _, path in pairs)


_DAEMONS = (
    "Desired=.status.desiredNumberScheduled,Current=.status.currentNumberScheduled,Ready=.status.numberReady,"
    "Up-to-date=.status.updatedNumberScheduled,Available=.status.numberAvailable"
)
_COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "pods": _paths("Name,Ready,Status,Restarts,Age,IP*,Node*"),
    "nodes": _paths("Name,Status,Roles,Age,Version,Internal-IP*"),
    "namespaces": (_NAME, *_paths("Status=.status.phase"), _AGE),
    "daemonsets.apps": (_NAME, *_paths(_DAEMONS), _AGE),
    "jobs.batch": (_NAME, *_paths("Completions=.spec.completions,Succeeded=.status.succeeded"), _AGE),
    "events": (
        Column("Last Seen", "date", ".lastTimestamp"),
        *_paths("Type=.type,Reason=.reason,Object=.involvedObject.name,Message=.message"),
    ),
}
_CELLS: Mapping[str, Callable[[Object], list[_Cell]]] = {"pods": _pod_cells, "nodes": _node_cells}
"""What a row shows where that is not to be found at one path."""
