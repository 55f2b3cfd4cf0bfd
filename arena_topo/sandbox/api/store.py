"""Where objects and logs live: a version for every change, and the history that watches resume from.

Example: a store at version 7 puts a changed object, which gets version 8, and remembers the change with the
object before and after it. A watch from version 7 gets that change, however late it comes, until ``compact``
or too many later changes make 8 the floor; from then on the watch gets 410 and its client lists again.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.resources import ResourceKey

ObjectKey = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""

_Owner = tuple[ResourceKey, str, str]
"""Resource and namespace of objects, and the uid of their controller."""

_HISTORY = 20_000
"""How many changes are remembered for watches and pages."""


class Stored:
    """One revision of an object; ``body`` must never be changed in place."""

    __slots__ = ("_encoded", "body", "version")

    def __init__(self, body: Object, version: int) -> None:
        self.body = body
        self.version = version
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The object as JSON, encoded once."""
        if self._encoded is None:
            self._encoded = json.dumps(self.body, separators=(",", ":"), ensure_ascii=False).encode()
        return self._encoded


@dataclass(frozen=True, slots=True)
class Change:
    """One event of the history; ``before`` is the former revision of a modified or deleted object."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: ResourceKey
    key: ObjectKey
    after: Stored
    before: Stored | None = None


class Store:
    """All objects, by resource and name.

    ``version`` is the newest resource version; watches can resume from ``floor`` or later.
    """

    def __init__(self, *, history: int = _HISTORY) -> None:
        # Not 0: to a watch, version 0 means "any", which begins with the present objects.
        self.version = 1
        self.floor = 1
        self._tables: dict[ResourceKey, dict[ObjectKey, Stored]] = {}
        # Each step of a controller asks for the objects of each of its jobs: a scan would be quadratic.
        self._controlled: dict[_Owner, dict[str, Stored]] = {}
        self._history: deque[Change] = deque()
        self._limit = history
        self._listeners: list[Callable[[Change], None]] = []

    def get(self, resource: ResourceKey, namespace: str, name: str) -> Stored | None:
        """Return an object's newest revision."""
        return self._tables.get(resource, {}).get((namespace, name))

    def scan(self, resource: ResourceKey, namespace: str = "") -> Iterator[Stored]:
        """Yield the objects of a resource in the order of their names; of all namespaces if none is given."""
        table = self._tables.get(resource, {})
        for key in sorted(table):
            if not namespace or key[0] == namespace:
                yield table[key]

    def controlled(self, resource: ResourceKey, namespace: str, uid: str) -> list[Object]:
        """Return the objects of a resource whose controller has *uid*, in the order of their names."""
        found = self._controlled.get((resource, namespace, uid), {})
        return [found[name].body for name in sorted(found)]

    def values(self, resource: ResourceKey) -> list[Object]:
        """Return all objects of a resource, in no order."""
        return [stored.body for stored in self._tables.get(resource, {}).values()]

    def resources(self) -> list[ResourceKey]:
        """Return every resource that has objects."""
        return [key for key, table in self._tables.items() if table]

    def put(self, resource: ResourceKey, body: Object) -> Object:
        """Store *body* as the newest revision; its metadata must be its own to change."""
        key = object_key(body)
        before = self._tables.get(resource, {}).get(key)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        stored = Stored(body, self.version)
        self._tables.setdefault(resource, {})[key] = stored
        self._assign(resource, before, stored)
        self._record(Change("MODIFIED" if before else "ADDED", resource, key, stored, before))
        return body

    def drop(self, resource: ResourceKey, body: Object) -> Object:
        """Remove an object that is stored; its last state, with the version of the removal, is returned."""
        key = object_key(body)
        before = self._tables[resource].pop(key)
        self._assign(resource, before, None)
        self.version += 1
        meta = before.body["metadata"] | {"resourceVersion": str(self.version)}
        stored = Stored(before.body | {"metadata": meta}, self.version)
        self._record(Change("DELETED", resource, key, stored, before))
        return stored.body

    def since(self, version: int) -> Iterator[Change]:
        """Yield the changes after *version*, which must not be older than ``floor``."""
        return (change for change in list(self._history) if change.after.version > version)

    def compact(self) -> None:
        """Forget the history: a watch from an older version gets 410."""
        self._history.clear()
        self.floor = self.version

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call *listener* with every further change; return a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def dump(self) -> Object:
        """Return the whole state."""
        tables = [
            {"group": group, "plural": plural, "items": [stored.body for stored in table.values()]}
            for (group, plural), table in self._tables.items()
        ]
        return {"version": self.version, "tables": tables}

    def load(self, state: Object) -> None:
        """Replace everything by a dumped state."""
        self.version = state["version"]
        self._tables = {
            (table["group"], table["plural"]): {
                object_key(body): Stored(body, int(body["metadata"]["resourceVersion"]))
                for body in table["items"]
            }
            for table in state["tables"]
        }
        self._controlled = {}
        for resource, table in self._tables.items():
            for stored in table.values():
                self._assign(resource, None, stored)
        # The history is not dumped, so no watch can resume from a version before the dump.
        self.compact()

    def _assign(self, resource: ResourceKey, before: Stored | None, after: Stored | None) -> None:
        """Keep *after* with the others of its controller, in place of *before*."""
        if before is not None:
            for owner in _controllers(resource, before.body):
                others = self._controlled[owner]
                del others[before.body["metadata"]["name"]]
                if not others:
                    del self._controlled[owner]
        if after is not None:
            for owner in _controllers(resource, after.body):
                self._controlled.setdefault(owner, {})[after.body["metadata"]["name"]] = after

    def _record(self, change: Change) -> None:
        self._history.append(change)
        if len(self._history) > self._limit:
            self.floor = self._history.popleft().after.version
        for listener in list(self._listeners):
            listener(change)


def object_key(body: Object) -> ObjectKey:
    """Return the key under which an object is stored."""
    meta = body["metadata"]
    return (meta.get("namespace", ""), meta["name"])


def _controllers(resource: ResourceKey, body: Object) -> set[_Owner]:
    """Return where an object is kept by its controller; what others write may name more than one."""
    meta = body["metadata"]
    return {
        (resource, meta.get("namespace", ""), reference["uid"])
        for reference in meta.get("ownerReferences") or ()
        if reference.get("controller")
    }


# What containers have printed.


@dataclass(slots=True)
class ContainerLog:
    """The stamped lines of one run of one container, and whether it has ended."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    closed: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self, text: str) -> None:
        """Add a line, stamped with the present instant."""
        # Kubelets stamp lines with nanoseconds, which Python's clock does not have.
        self.lines.append((datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), text))
        self._notify()

    def close(self) -> None:
        """Mark the run as ended."""
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        # Each follower waits for the event that it took before it read; the next change gets a new one.
        self.changed.set()
        self.changed = asyncio.Event()


class ContainerLogs:
    """The logs of all containers, by the pod's uid, the container's name and the run's number."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str, int], ContainerLog] = {}

    def open(self, uid: str, container: str, run: int = 0) -> ContainerLog:
        """Return the log of a run, a new one if there is none."""
        return self._logs.setdefault((uid, container, run), ContainerLog())

    def find(self, uid: str, container: str, run: int) -> ContainerLog:
        """Return the log of a run; an ended one without lines if there is none."""
        return self._logs.get((uid, container, run), ContainerLog(closed=True))

    def forget(self, uid: str) -> None:
        """Drop the logs of a pod that is gone; followers see their end."""
        for key in [key for key in self._logs if key[0] == uid]:
            self._logs.pop(key).close()

    def dump(self) -> list[Object]:
        """Return all logs as JSON has them."""
        return [
            {"uid": uid, "container": container, "run": run, "lines": log.lines, "closed": log.closed}
            for (uid, container, run), log in self._logs.items()
        ]

    def load(self, logs: list[Object]) -> None:
        """Restore dumped logs."""
        for log in logs:
            lines = [(stamp, text) for stamp, text in log["lines"]]
            self._logs[log["uid"], log["container"], log["run"]] = ContainerLog(lines, closed=log["closed"])
