"""Watch requests: from a version on, through the selectors, with bookmarks."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import refusals
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.schema.selectors import Matcher, matcher
from arena_topo.sandbox.api.store import Change, Store
from arena_topo.sandbox.api.verbs import listing

BOOKMARK_SECONDS = 5.0
_INITIAL_END = {"annotations": {"k8s.io/initial-events-end": "true"}}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a watch."""

    type: str
    object: Object

    def line(self) -> bytes:
        """Return the event as a line of the stream."""
        return json.dumps({"type": self.type, "object": self.object}, separators=(",", ":")).encode() + b"\n"


def seen_through(change: Change, matches: Matcher, namespace: str) -> Event | None:
    """Return the event that a watch with a selector sees of a change: objects enter and leave its view."""
    if namespace and change.key[0] != namespace:
        return None
    now = change.type != "DELETED" and matches(change.after.body)
    before = change.before is not None and matches(change.before.body)
    if change.type == "DELETED":
        return Event("DELETED", change.after.body) if before else None
    if now:
        return Event("MODIFIED" if before else "ADDED", change.after.body)
    if before and change.before is not None:
        meta = change.before.body["metadata"] | {"resourceVersion": str(change.after.version)}
        return Event("DELETED", change.before.body | {"metadata": meta})
    return None


def bookmark(kind: Kind, version: int, extra: Object | None = None) -> Event:
    """Return the event that says how far the watch has come."""
    meta = {"resourceVersion": str(version), **(extra or {})}
    body: Object = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
    return Event("BOOKMARK", body)


def _initial(
    store: Store, kind: Kind, namespace: str, query: dict[str, str], matches: Matcher
) -> list[Event]:
    """Return what is sent before the first change: present objects, or the changes since a version."""
    text = query.get("resourceVersion", "")
    version = listing.version_of(text)
    streaming = query.get("sendInitialEvents") == "true"
    if version > store.version:
        raise listing.too_large(version, store.version)
    if streaming or version == 0:
        found = [
            Event("ADDED", stored.body) for stored in store.scan(kind.key, namespace) if matches(stored.body)
        ]
        bookmarks = streaming and query.get("allowWatchBookmarks") == "true"
        return [*found, bookmark(kind, store.version, _INITIAL_END)] if bookmarks else found
    if version < store.floor:
        gone = refusals.expired(f"too old resource version: {version} ({store.floor})")
        return [Event("ERROR", gone.status())]
    changes = (change for change in store.since(version) if change.resource == kind.key)
    return [event for change in changes if (event := seen_through(change, matches, namespace))]


async def watch(store: Store, kind: Kind, namespace: str, query: dict[str, str]) -> AsyncIterator[Event]:
    """Yield the events of a watch until ``timeoutSeconds`` have passed; raises Refusal before the first."""
    matches = matcher(
        query.get("labelSelector", ""), query.get("fieldSelector", ""), kind.plural, custom=kind.custom
    )
    queue: asyncio.Queue[Change] = asyncio.Queue()
    stop = store.listen(queue.put_nowait)
    loop = asyncio.get_running_loop()
    end = loop.time() + float(query.get("timeoutSeconds") or 3600)
    with contextlib.ExitStack() as stack:
        stack.callback(stop)
        for event in _initial(store, kind, namespace, query, matches):
            yield event
            if event.type == "ERROR":
                return
        while (left := end - loop.time()) > 0:
            try:
                change = await asyncio.wait_for(queue.get(), min(left, BOOKMARK_SECONDS))
            except TimeoutError:
                if query.get("allowWatchBookmarks") == "true":
                    yield bookmark(kind, store.version)
                continue
            if change.resource == kind.key and (found := seen_through(change, matches, namespace)):
                yield found
