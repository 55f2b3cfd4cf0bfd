"""Lists and watches over the store: selectors, pages that stay one snapshot, and tables."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.model.pods import Requirement
from arena_topo.model.text.quantity import parse_instant
from arena_topo.sandbox.api.resources import (
    ApiRequest,
    Column,
    Kind,
    StatusError,
    bad_request,
    number_of,
)
from arena_topo.sandbox.api.store import Change, ObjectKey, Store, Stored, object_key

# Label and field selectors of lists, watches and deletions.

_Matcher = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>[\w./-]+)\s+(?P<sign>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[\w./-]+)\s*(?P<sign>==|!=|=|>|<)\s*(?P<values>[\w.-]*)")
_PRESENCE = re.compile(r"(?P<sign>!?)\s*(?P<key>[\w./-]+)")
_SEPARATOR = re.compile(r",(?![^(]*\))")  # a comma that is not inside of parentheses
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, frozenset[str]] = {
    "pods": frozenset({"spec.nodeName", "spec.schedulerName", "status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "events": frozenset({"reason", "type"} | {f"involvedObject.{key}" for key in _INVOLVED}),
}
"""The fields by which lists of a resource can be narrowed, next to name and namespace."""


def _label_selector(text: str) -> list[Requirement]:
    """Return the requirements of a label selector; raises StatusError when it is malformed.

    Example: ``tier in (gold, iron),!own`` is ``tier In gold, iron`` and ``own DoesNotExist``.
    """
    return [_label_term(term.strip()) for term in _SEPARATOR.split(text) if term.strip()]


def _label_term(term: str) -> Requirement:
    if match := _SET.fullmatch(term) or _EQUALITY.fullmatch(term):
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], _OPERATORS[match["sign"]], values)
    if match := _PRESENCE.fullmatch(term):
        return Requirement(match["key"], "DoesNotExist" if match["sign"] else "Exists")
    raise bad_request(f'unable to parse requirement: found "{term}"')


def _field_term(term: str, kind: Kind) -> _Matcher:
    match = re.fullmatch(r"([\w.]+)\s*(==|!=|=)\s*(.*)", term)
    if match is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path, sign, value = match.groups()
    if path not in _FIELDS.get(kind.plural, frozenset()) | {"metadata.name", "metadata.namespace"}:
        # Kinds with conversions of field labels word it otherwise than those with the two common fields.
        if kind.plural in _FIELDS or kind.custom:
            raise bad_request(f"field label not supported: {path}")
        common = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{path}" is not a known field selector: only {common}')
    return lambda obj: (_field(obj, path) == value) != (sign == "!=")


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    # An absent boolean of a built-in object is false for selectors, any other absent field the empty text.
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value)


def _matcher(kind: Kind, query: Mapping[str, str]) -> _Matcher:
    """Return the test of a request's selectors; an empty selector matches everything. Raises StatusError."""
    requirements = _label_selector(query.get("labelSelector", ""))
    fields = query.get("fieldSelector", "").split(",")
    field_tests = [_field_term(term.strip(), kind) for term in fields if term.strip()]

    def matches(obj: Object) -> bool:
        own = obj["metadata"].get("labels") or {}
        labelled = all(requirement.holds(own) for requirement in requirements)
        return labelled and all(test(obj) for test in field_tests)

    return matches


# Lists and watches over the store: selectors, pages that stay one snapshot, and where a watch resumes.
#
# A list is answered as of one resource version, and its continue token carries that version. Example: a list
# with ``limit=2`` at version 7 returns a, b and the token (7, after b); then c is created as version 8. The
# second page is computed as of version 7: all objects of now, with the changes since 7 taken back from the
# store's history, which removes c. The client sees the list of version 7 whole, and a watch from version 7
# then sends c as ADDED.

_BOOKMARK_SECONDS = 5.0
_WATCH_SECONDS = 3600  # without a limit of the client's, an API server takes half an hour to an hour
_INITIAL_END = {"annotations": {"k8s.io/initial-events-end": "true"}}
_View = Callable[[Stored], bool]
"""Whether an object is in the namespace of a watch and chosen by its selectors."""
_LIST_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list"
    " without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class _WatchEvent:
    """One event of a watch."""

    type: str
    object: Object

    def line(self) -> bytes:
        """Return the event as a line of the stream."""
        return json.dumps({"type": self.type, "object": self.object}, separators=(",", ":")).encode() + b"\n"


def encoded_list(store: Store, request: ApiRequest) -> bytes:
    """Return the list or the table that a request asks for; raises StatusError for an invalid request."""
    items, meta = _page_of(store, request)
    if request.wants_table:
        rows = [stored.body for stored in items]
        return json.dumps(table(request, rows, meta), separators=(",", ":")).encode()
    kind = request.target.kind
    head: Object = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta}
    # Each revision is encoded once and spliced in: a list of thousands of pods is then a matter of joining
    # bytes.
    body = json.dumps(head, separators=(",", ":"))[:-1].encode()
    return body + b',"items":[' + b",".join(stored.encoded for stored in items) + b"]}"


def _page_of(store: Store, request: ApiRequest) -> tuple[list[Stored], Object]:
    """Return the objects of a page, and its ListMeta: their version, and where the next page begins."""
    kind, namespace, query = request.target.kind, request.target.namespace, request.query
    matches = _matcher(kind, query)
    limit = max(number_of(query, "limit") or 0, 0)
    # A list has no use for it, but refuses what is not a number.
    number_of(query, "timeoutSeconds")
    version, start = _position(store, query)
    objects = _as_of(store, kind, version)
    keys = [key for key in sorted(objects) if (not namespace or key[0] == namespace) and key > start]
    chosen = [key for key in keys if matches(objects[key].body)]
    items = [objects[key] for key in chosen]
    meta: Object = {"resourceVersion": str(version)}
    if not limit or len(chosen) <= limit:
        return items, meta
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(chosen[limit - 1])}
    meta["continue"] = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    # The API server counts the rest only where no selector makes it look at each object.
    if not query.get("labelSelector") and not query.get("fieldSelector"):
        meta["remainingItemCount"] = len(chosen) - limit
    return items[:limit], meta


def _position(store: Store, query: Mapping[str, str]) -> tuple[int, ObjectKey]:
    if token := query.get("continue", ""):
        version, start = _decode_token(token)
        if version < store.floor:
            raise _expired(_LIST_EXPIRED)
        return version, start
    # Any version that exists is answered with the newest state, which satisfies "not older than"; the call
    # only checks.
    _version_of(store, query)
    return store.version, ("", "")


def _decode_token(token: str) -> tuple[int, ObjectKey]:
    try:
        # Tokens carry no padding, as Go's RawURLEncoding writes them; Python's decoder insists on it.
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = content["start"].partition("/")
        return int(content["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError):
        raise bad_request("continue key is not valid: illegal base64 data") from None


def _expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def _version_of(store: Store, query: Mapping[str, str]) -> int:
    """Return the resource version of a request, 0 without one; raises StatusError for a future one."""
    text = query.get("resourceVersion") or "0"
    if not text.isdigit():
        raise bad_request(f'invalid resource version: Invalid value: "{text}"')
    # On a real server a client may be ahead of the watch cache, so it is asked to try again a second later.
    if int(text) > store.version:
        message = f"Too large resource version: {text}, current: {store.version}"
        raise StatusError(504, "Timeout", message, {"retryAfterSeconds": 1})
    return int(text)


def _as_of(store: Store, kind: Kind, version: int) -> dict[ObjectKey, Stored]:
    """Return the objects of a kind as of *version*, by taking later changes back, the newest first."""
    objects = {object_key(stored.body): stored for stored in store.scan(kind.key)}
    later = list(store.since(version)) if version < store.version else []
    for change in reversed(later):
        if change.resource != kind.key:
            continue
        if change.before is None:
            objects.pop(change.key, None)
        else:
            objects[change.key] = change.before
    return objects


def watch(store: Store, request: ApiRequest) -> AsyncIterator[bytes]:
    """Return the lines of a watch for ``timeoutSeconds``; raises StatusError before the first."""
    kind, namespace, query = request.target.kind, request.target.namespace, dict(request.query)
    # A watch of one object is a watch of its collection, as the API server treats it.
    if request.target.name:
        query["fieldSelector"] = f"metadata.name={request.target.name}"
    matches, version = _matcher(kind, query), _version_of(store, query)
    # A generator refuses nothing before its first event.
    number_of(query, "timeoutSeconds")

    def inside(stored: Stored) -> bool:
        return (not namespace or object_key(stored.body)[0] == namespace) and matches(stored.body)

    events = _events(store, kind, query, version, inside)
    return _table_lines(request, events) if request.wants_table else (event.line() async for event in events)


async def _table_lines(request: ApiRequest, events: AsyncIterator[_WatchEvent]) -> AsyncIterator[bytes]:
    """Yield the lines of a watch as tables of one row; only the first has the columns' headers."""
    headers = True
    async for event in events:
        # The object of an error is a Status, which has no row.
        if event.type == "ERROR":
            yield event.line()
            continue
        meta = event.object["metadata"]
        # The annotation of a bookmark says that the initial events have ended.
        rows = [] if event.type == "BOOKMARK" else [event.object]
        kept = ("resourceVersion", "annotations") if event.type == "BOOKMARK" else ("resourceVersion",)
        list_meta = {key: meta[key] for key in kept if key in meta}
        shown = table(request, rows, list_meta, headers=headers)
        headers = False
        yield _WatchEvent(event.type, shown).line()


async def _events(
    store: Store, kind: Kind, query: Mapping[str, str], version: int, inside: _View
) -> AsyncIterator[_WatchEvent]:
    bookmarks = query.get("allowWatchBookmarks") == "true"
    streams_list = query.get("sendInitialEvents") == "true"
    loop = asyncio.get_running_loop()
    end = loop.time() + (number_of(query, "timeoutSeconds") or _WATCH_SECONDS)
    queue: asyncio.Queue[Change] = asyncio.Queue()
    # Listening begins before the first event, so that no change falls between the two.
    stop = store.listen(queue.put_nowait)
    try:
        for event in list(_initial_events(store, kind, 0 if streams_list else version, inside)):
            yield event
            # After an expired version there is nothing to continue from; the client lists again.
            if event.type == "ERROR":
                return
        if streams_list and bookmarks:
            yield _bookmark(kind, store.version, _INITIAL_END)
        while (left := end - loop.time()) > 0:
            try:
                change = await asyncio.wait_for(queue.get(), min(left, _BOOKMARK_SECONDS))
            except TimeoutError:
                # A quiet watch must still learn of new versions, or its own falls out of the history.
                if bookmarks:
                    yield _bookmark(kind, store.version)
                continue
            if change.resource == kind.key and (seen := _event_of(change, inside)):
                yield seen
    finally:
        stop()


def _initial_events(store: Store, kind: Kind, version: int, inside: _View) -> Iterator[_WatchEvent]:
    """Yield what comes before the first new change: the present objects, or the changes since a version."""
    if version == 0:
        yield from (_WatchEvent("ADDED", stored.body) for stored in store.scan(kind.key) if inside(stored))
    elif version < store.floor:
        text = f"too old resource version: {version} ({store.floor})"
        yield _WatchEvent("ERROR", _expired(text).status())
    else:
        changes = (change for change in store.since(version) if change.resource == kind.key)
        yield from (event for change in changes if (event := _event_of(change, inside)))


def _event_of(change: Change, inside: _View) -> _WatchEvent | None:
    """Return the event that a watch with a selector sees of a change: objects enter and leave its view.

    With ``tier=gold``, a ConfigMap that is relabelled from gold to iron is DELETED for the watch, and one
    that is relabelled from iron to gold is ADDED, although both changes are modifications.
    """
    seen_before = change.before is not None and inside(change.before)
    if change.type == "DELETED":
        return _WatchEvent("DELETED", change.after.body) if seen_before else None
    if inside(change.after):
        return _WatchEvent("MODIFIED" if seen_before else "ADDED", change.after.body)
    # The client knows the object as it was when it matched, so that is what it gets, with the version of the
    # change.
    if seen_before and change.before is not None:
        meta = change.before.body["metadata"] | {"resourceVersion": str(change.after.version)}
        return _WatchEvent("DELETED", change.before.body | {"metadata": meta})
    return None


def _bookmark(kind: Kind, version: int, extra: Object | None = None) -> _WatchEvent:
    """Return the event that says how far the watch has come."""
    meta = {"resourceVersion": str(version), **(extra or {})}
    return _WatchEvent("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})


# Lists as tables (meta.k8s.io/v1 Table), which ``kubectl get`` asks for.
#
# Pods and nodes have the columns of k8s.io/kubernetes pkg/printers/internalversion/printers.go, custom
# resources those of their definitions. Other kinds show a few fields by path, or their name and age.

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


def table(request: ApiRequest, items: Sequence[Object], meta: Object, *, headers: bool = True) -> Object:
    """Return a Table of *items*, whose rows hold the objects, or their metadata, as the request says."""
    kind, include = request.target.kind, request.query.get("includeObject", "Metadata")
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
