"""Lists as tables (meta.k8s.io/v1 Table), which ``kubectl get`` asks for.

Source of the built-in columns: k8s.io/kubernetes pkg/printers/internalversion/printers.go. Kinds that the sandbox
only keeps, such as Services and ConfigMaps, show their name and age.
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
Cell = str | int
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 31_536_000
_DURATIONS = (
    (_MINUTE, "m", 3 * _HOUR, 1, "s", 10 * _MINUTE),
    (_HOUR, "h", 48 * _HOUR, _MINUTE, "m", 8 * _HOUR),
    (_DAY, "d", 2 * _YEAR, _HOUR, "h", 8 * _DAY),
    (_YEAR, "y", float("inf"), _DAY, "d", 8 * _YEAR),
)
"""Per unit: its seconds and sign, below what it is used; the next finer unit, and below what that is shown, too."""


def human_duration(seconds: float) -> str:
    """Return *seconds* as ``kubectl get`` shows ages: 119s, 2m, 3m10s, 10m, 7h59m, 2d1h, 8d.

    Source: k8s.io/apimachinery pkg/util/duration (HumanDuration).
    """
    # A clock that runs ahead of this one must not give an age below zero.
    whole = max(int(seconds), 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    size, unit, _, finer, small, exact = next(row for row in _DURATIONS if whole < row[2])
    rest = whole % size // finer
    return f"{whole // size}{unit}" + (f"{rest}{small}" if rest and whole < exact else "")


def _age_of(instant: str) -> str:
    if not instant:
        return "<unknown>"
    return human_duration((datetime.now(UTC) - parse_instant(instant)).total_seconds())


def table(kind: Kind, items: Sequence[Object], meta: Object, include: str, *, headers: bool = True) -> Object:
    """Return a Table of *items*; *include* is Metadata, Object or None, as in the request."""
    columns, cells = (_NAME, *(kind.columns or (_AGE,))), None
    if not kind.custom and kind.plural in _BUILT_IN:
        columns, cells = _BUILT_IN[kind.plural]
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
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {"object": head | {"metadata": item["metadata"]}}


def _cell(column: Column, item: Object) -> Cell:
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


def _pod_cells(pod: Object) -> list[Cell]:
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
    """Return the STATUS word of a pod: the most telling of its phase, its conditions and its containers' states."""
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


def _node_cells(node: Object) -> list[Cell]:
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


def _daemon_set_cells(daemon_set: Object) -> list[Cell]:
    status = daemon_set.get("status", {})
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    chosen = daemon_set["spec"].get("template", {}).get("spec", {}).get("nodeSelector") or {}
    return [
        daemon_set["metadata"]["name"],
        *(status.get(count, 0) for count in (*counts, "numberAvailable")),
        ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or "<none>",
        _age(daemon_set),
    ]


def _job_cells(job: Object) -> list[Cell]:
    spec, status = job["spec"], job.get("status", {})
    done, completions = status.get("succeeded", 0), spec.get("completions")
    pods = spec.get("parallelism", 1)
    # Where no number is asked for, one pod that succeeds is enough.
    asked = str(completions) if completions is not None else f"1 of {pods}" if pods > 1 else "1"
    return [job["metadata"]["name"], _job_status(job), f"{done}/{asked}", _duration(status), _age(job)]


def _job_status(job: Object) -> str:
    held = {c["type"] for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"}
    ends = next((word for word in ("Complete", "Failed") if word in held), "")
    if ends or "deletionTimestamp" in job["metadata"]:
        return ends or "Terminating"
    return "Suspended" if "Suspended" in held else "Running"


def _duration(status: Object) -> str:
    """Return how long a job has run, or ran."""
    if "startTime" not in status:
        return ""
    if "completionTime" not in status:
        return _age_of(status["startTime"])
    ran = parse_instant(status["completionTime"]) - parse_instant(status["startTime"])
    return human_duration(ran.total_seconds())


def _columns(names: str) -> tuple[Column, ...]:
    """Return the columns of a comma list; a star marks those that show with ``-o wide`` only."""
    return tuple(Column(name.strip("*"), "string", "", int("*" in name)) for name in names.split(","))


_BUILT_IN: Mapping[str, tuple[tuple[Column, ...], Callable[[Object], list[Cell]] | None]] = {
    "pods": (_columns("Name,Ready,Status,Restarts,Age,IP*,Node*"), _pod_cells),
    "nodes": (_columns("Name,Status,Roles,Age,Version,Internal-IP*"), _node_cells),
    "daemonsets": (
        _columns("Name,Desired,Current,Ready,Up-to-date,Available,Node Selector,Age"),
        _daemon_set_cells,
    ),
    "jobs": (_columns("Name,Status,Completions,Duration,Age"), _job_cells),
    "events": (
        (
            Column("Last Seen", "date", ".lastTimestamp"),
            Column("Type", "string", ".type"),
            Column("Reason", "string", ".reason"),
            Column("Object", "string", ".involvedObject.name"),
            Column("Message", "string", ".message"),
        ),
        None,
    ),
    "namespaces": ((_NAME, Column("Status", "string", ".status.phase"), _AGE), None),
}
