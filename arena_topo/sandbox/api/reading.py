"""Lists and watches over the store: selectors, pages that stay one snapshot, and where a watch resumes.

A list is answered as of one resource version, and its continue token carries that version. Example: a list with
``limit=2`` at version 7 returns a, b and the token (7, after b); then c is created as version 8. The second page is
computed as of version 7: all objects of now, with the changes since 7 taken back from the store's history, which
removes c. The client sees the list of version 7 whole, and a watch from version 7 then sends c as ADDED.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.requests import number_of
from arena_topo.sandbox.api.schema.selectors import Matcher, matcher
from arena_topo.sandbox.api.status_errors import StatusError, bad_request
from arena_topo.sandbox.api.store import Change, ObjectKey, Store, Stored, object_key

BOOKMARK_SECONDS = 5.0
_WATCH_SECONDS = 3600  # without a limit of the client's, an API server takes half an hour to an hour
_INITIAL_END = {"annotations": {"k8s.io/initial-events-end": "true"}}
View = Callable[[Stored], bool]
"""Whether an object is in the namespace of a watch and chosen by its selectors."""
_LIST_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list"
    " without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list: its objects, the version they are of, and where the next part begins."""

    items: list[Stored]
    version: int
    token: str = ""
    remaining: int | None = None

    def meta(self) -> Object:
        """Return the ListMeta."""
        meta: Object = {"resourceVersion": str(self.version)}
        meta |= {"continue": self.token} if self.token else {}
        return meta | ({} if self.remaining is None else {"remainingItemCount": self.remaining})


def _matcher(kind: Kind, query: Mapping[str, str]) -> Matcher:
    return matcher(query.get("labelSelector", ""), query.get("fieldSelector", ""), kind)


def page(store: Store, kind: Kind, namespace: str, query: Mapping[str, str]) -> Page:
    """Return the part of a list that a request asks for; raises StatusError for what cannot be answered."""
    matches = _matcher(kind, query)
    limit = max(number_of(query, "limit") or 0, 0)
    # A list has no use for it, and refuses what is not a number all the same.
    number_of(query, "timeoutSeconds")
    version, start = _position(store, query)
    objects = _as_of(store, kind, version)
    keys = [key for key in sorted(objects) if (not namespace or key[0] == namespace) and key > start]
    chosen = [key for key in keys if matches(objects[key].body)]
    items = [objects[key] for key in chosen]
    if not limit or len(chosen) <= limit:
        return Page(items, version)
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(chosen[limit - 1])}
    encoded = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    # The API server counts the rest only where no selector makes it look at each object.
    selective = query.get("labelSelector") or query.get("fieldSelector")
    return Page(items[:limit], version, encoded, None if selective else len(chosen) - limit)


def _position(store: Store, query: Mapping[str, str]) -> tuple[int, ObjectKey]:
    """Return the version to show and the key after which to begin."""
    if token := query.get("continue", ""):
        version, start = _decode_token(token)
        if version < store.floor:
            raise _expired(_LIST_EXPIRED)
        return version, start
    # Any version that exists is answered with the newest state, which satisfies "not older than"; the call only checks.
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
    """Return the resource version of a request, 0 where it names none; raises StatusError for one yet to come."""
    text = query.get("resourceVersion") or "0"
    if not text.isdigit():
        raise bad_request(f'invalid resource version: Invalid value: "{text}"')
    # On a real server a client may be ahead of the watch cache, so it is asked to try again a second later.
    if int(text) > store.version:
        message = f"Too large resource version: {text}, current: {store.version}"
        raise StatusError(504, "Timeout", message, {"retryAfterSeconds": 1})
    return int(text)


def _as_of(store: Store, kind: Kind, version: int) -> dict[ObjectKey, Stored]:
    """Return the objects of a kind as they were at *version*, by taking later changes back, the newest first."""
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


def encode_list(kind: Kind, part: Page) -> bytes:
    """Return a page as the JSON of a List, from objects that are encoded already."""
    head: Object = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": part.meta()}
    # Each revision is encoded once and spliced in: a list of thousands of pods is then a matter of joining bytes.
    body = json.dumps(head, separators=(",", ":"))[:-1].encode()
    return body + b',"items":[' + b",".join(stored.encoded for stored in part.items) + b"]}"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch."""

    type: str
    object: Object

    def line(self) -> bytes:
        """Return the event as a line of the stream."""
        return json.dumps({"type": self.type, "object": self.object}, separators=(",", ":")).encode() + b"\n"


def watch(store: Store, kind: Kind, namespace: str, query: Mapping[str, str]) -> AsyncIterator[WatchEvent]:
    """Return the events of a watch until ``timeoutSeconds`` have passed; raises StatusError before the first."""
    matches, version = _matcher(kind, query), _version_of(store, query)
    # A generator refuses nothing before its first event.
    number_of(query, "timeoutSeconds")

    def inside(stored: Stored) -> bool:
        return (not namespace or object_key(stored.body)[0] == namespace) and matches(stored.body)

    return _events(store, kind, query, version, inside)


async def _events(
    store: Store, kind: Kind, query: Mapping[str, str], version: int, inside: View
) -> AsyncIterator[WatchEvent]:
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
            # After an expired version there is nothing to go on from; the client lists again.
            if event.type == "ERROR":
                return
        if streams_list and bookmarks:
            yield _bookmark(kind, store.version, _INITIAL_END)
        while (left := end - loop.time()) > 0:
            try:
                change = await asyncio.wait_for(queue.get(), min(left, BOOKMARK_SECONDS))
            except TimeoutError:
                # A quiet watch must still learn of new versions, or its own falls out of the history.
                if bookmarks:
                    yield _bookmark(kind, store.version)
                continue
            if change.resource == kind.key and (seen := _event_of(change, inside)):
                yield seen
    finally:
        stop()


def _initial_events(store: Store, kind: Kind, version: int, inside: View) -> Iterator[WatchEvent]:
    """Yield what comes before the first new change: the present objects, or the changes since a version."""
    if version == 0:
        yield from (WatchEvent("ADDED", stored.body) for stored in store.scan(kind.key) if inside(stored))
    elif version < store.floor:
        text = f"too old resource version: {version} ({store.floor})"
        yield WatchEvent("ERROR", _expired(text).status())
    else:
        changes = (change for change in store.since(version) if change.resource == kind.key)
        yield from (event for change in changes if (event := _event_of(change, inside)))


def _event_of(change: Change, inside: View) -> WatchEvent | None:
    """Return the event that a watch with a selector sees of a change: objects enter and leave its view.

    With ``tier=gold``, a ConfigMap that is relabelled from gold to iron is DELETED for the watch, and one that is
    relabelled from iron to gold is ADDED, although both changes are modifications.
    """
    seen_before = change.before is not None and inside(change.before)
    if change.type == "DELETED":
        return WatchEvent("DELETED", change.after.body) if seen_before else None
    if inside(change.after):
        return WatchEvent("MODIFIED" if seen_before else "ADDED", change.after.body)
    # The client knows the object as it was when it matched, so that is what it gets, with the version of the change.
    if seen_before and change.before is not None:
        meta = change.before.body["metadata"] | {"resourceVersion": str(change.after.version)}
        return WatchEvent("DELETED", change.before.body | {"metadata": meta})
    return None


def _bookmark(kind: Kind, version: int, extra: Object | None = None) -> WatchEvent:
    """Return the event that says how far the watch has come."""
    meta = {"resourceVersion": str(version), **(extra or {})}
    return WatchEvent("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})
