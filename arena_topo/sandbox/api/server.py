"""The API over HTTP: authentication, routing, and the form of every answer."""

import asyncio
import base64
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import yaml
from aiohttp import web

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import admission, container_logs, requests, schema
from arena_topo.sandbox.api.container_logs import ContainerLogs
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.objects import APPLY_PATCH, Api
from arena_topo.sandbox.api.requests import (
    ApiRequest,
    StatusError,
    User,
    bad_request,
    details_of,
    number_of,
    unsupported_media,
)
from arena_topo.sandbox.api.schema import Matcher, matcher
from arena_topo.sandbox.api.store import Change, ObjectKey, Store, Stored, object_key
from arena_topo.sandbox.api.tables import table

_VERSION: Object = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+arena-topo-sandbox",
    "gitCommit": "",
    "gitTreeState": "simulated",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "simulated/arena-topo",
}
_MAX_BODY = 64 * 2**20  # aiohttp's default of 1 MiB is below the 3 MiB that an API server takes
_BODIES = (
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/octet-stream",
)
_INTO_A_PROCESS = frozenset({"exec", "attach", "portforward"})
_CREATED = 201
_NO_CONTENT = 204
_Control = Callable[[str, str, Object], Object]
"""Answers a request about the sandbox itself, by method, path and body."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What to send: a body, or a stream of lines."""

    body: bytes = b""
    status: int = 200
    warnings: tuple[str, ...] = ()
    stream: AsyncIterator[bytes] | None = None
    media: str = "application/json"


class Server:
    """The handler of all requests; ``users`` maps tokens to users, ``control`` answers ``/_sandbox``."""

    def __init__(self, api: Api, logs: ContainerLogs, users: Mapping[str, User], control: _Control) -> None:
        self._registry = api.registry
        self._users = users
        self._answers = _Answers(api, logs)
        self._control = control

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._respond(request)
        except StatusError as error:
            return web.json_response(error.status(), status=error.code)
        except web.HTTPException:
            raise
        except Exception as error:  # noqa: BLE001  # one request must not end the server
            traceback.print_exc(file=sys.stderr)
            failure = StatusError(500, "InternalError", f"Internal error occurred: {error!r:.200}")
            return web.json_response(failure.status(), status=failure.code)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        parts = [part for part in request.path.split("/") if part]
        # An API server shows its version to everybody, too (role system:public-info-viewer).
        if parts == ["version"]:
            return web.json_response(_VERSION)
        user = self._user(request)
        match parts:
            case ["_sandbox", *_]:
                return await self._controlled(request, user)
            case ["openapi", "v3", *path]:
                document = schema.openapi(self._registry, "/".join(path))
            case ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _]:
                document = schema.document(self._registry, parts)
            case ["api" | "apis", *_]:
                return await self._resource(request, user, parts)
            case _:
                return web.Response(text="404 page not found\n", status=404)
        return web.json_response(document)

    async def _controlled(self, request: web.Request, user: User) -> web.Response:
        if not user.may_write:
            raise StatusError(403, "Forbidden", "only the administrator controls the sandbox")
        body = await _read_body(request) or {}
        return web.json_response(self._control(request.method, request.path, body))

    def _user(self, request: web.Request) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self._users.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return user

    async def _resource(self, request: web.Request, user: User, parts: list[str]) -> web.StreamResponse:
        query = dict(request.query)
        target = requests.target_of(self._registry, parts)
        api_request = ApiRequest(
            user=user,
            target=target,
            verb=requests.verb_of(request.method, target, query),
            query=query,
            body=await _read_body(request),
            media=request.content_type,
            accept=request.headers.get("Accept", ""),
            # "kubectl/v1.36.3 (linux/amd64)" is kubectl.
            agent=request.headers.get("User-Agent", "").partition("/")[0],
        )
        api_request.check_access()
        if api_request.verb not in target.kind.verbs:
            text = f"{api_request.verb} is not supported on resources of kind {target.kind.resource!r}"
            raise StatusError(405, "MethodNotAllowed", text, details_of(target.kind, ""))
        answer = self._answers.answer(api_request)
        if answer.stream is not None:
            return await _stream(request, answer, answer.stream)
        response = web.Response(body=answer.body, status=answer.status, content_type=answer.media)
        # The form of a warning by RFC 7234, 5.5: code, agent ("-" where there is no name), quoted text.
        for text in answer.warnings:
            escaped = text.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{escaped}"')
        return response


async def _stream(request: web.Request, answer: _Answer, lines: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send a watch or a log line by line, each at the moment it is written."""
    response = web.StreamResponse(headers={"Content-Type": answer.media})
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for line in lines:
        await response.write(line)
    return response


async def _read_body(request: web.Request) -> Any:
    """Return the decoded body of a request, None without one; raises StatusError if unreadable."""
    raw = await request.read()
    if not raw:
        return None
    media = request.content_type
    if media not in _BODIES:
        raise unsupported_media(media, _BODIES[:2])
    try:
        # kubectl sends JSON as apply-patch+yaml, too: json reads it a hundred times faster.
        is_yaml = "yaml" in media and not raw.lstrip().startswith(b"{")
        return yaml.safe_load(raw) if is_yaml else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


# One function per verb: from what a request asks for to the bytes of its answer.


@dataclass(frozen=True, slots=True)
class _WatchEvent:
    """One event of a watch."""

    type: str
    object: Object

    def line(self) -> bytes:
        """Return the event as a line of the stream."""
        return json.dumps({"type": self.type, "object": self.object}, separators=(",", ":")).encode() + b"\n"


class _Answers:
    """Answers requests for resources."""

    def __init__(self, api: Api, logs: ContainerLogs) -> None:
        self._api = api
        self._logs = logs
        self._verbs: Mapping[str, Callable[[ApiRequest], _Answer]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
        }

    def answer(self, request: ApiRequest) -> _Answer:
        """Return the answer; raises StatusError."""
        if request.target.subresource == "log":
            return self._log(request)
        if request.target.subresource in _INTO_A_PROCESS:
            raise self._no_process(request)
        return self._verbs[request.verb](request)

    def _get(self, request: ApiRequest) -> _Answer:
        target = request.target
        obj = _versioned(request, self._api.get(target.kind, target.namespace, target.name))
        if not request.wants_table:
            return _json(obj)
        meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return _json(table(target.kind, [obj], meta, _include(request)))

    def _list(self, request: ApiRequest) -> _Answer:
        kind = request.target.kind
        found = _page_of(self._api.store, kind, request.target.namespace, request.query)
        if request.wants_table:
            rows = [stored.body for stored in found.items]
            return _json(table(kind, rows, found.meta(), _include(request)))
        return _Answer(_encode_list(kind, found))

    def _watch(self, request: ApiRequest) -> _Answer:
        target, query = request.target, dict(request.query)
        # A watch of one object is a watch of its collection, as the API server treats it.
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        events = _watch_events(self._api.store, target.kind, target.namespace, query)
        if request.wants_table:
            return _Answer(stream=_table_lines(request, events))
        return _Answer(stream=(event.line() async for event in events))

    def _log(self, request: ApiRequest) -> _Answer:
        target = request.target
        pod = self._api.get(target.kind, target.namespace, target.name)
        container = container_logs.container_of(pod, request.query.get("container", ""))
        # Without a node there is no kubelet to ask: the API server answers with an empty log.
        if not pod["spec"].get("nodeName"):
            return _Answer(status=_NO_CONTENT, media="text/plain")
        previous = request.query.get("previous") == "true"
        run = container_logs.run_of(pod, container, previous=previous)
        log = self._logs.find(pod["metadata"]["uid"], container, run)
        return _Answer(stream=container_logs.read(log, request.query), media="text/plain")

    def _no_process(self, request: ApiRequest) -> StatusError:
        """Return the refusal of what needs a process in a pod."""
        target = request.target
        # As on a cluster, a pod that does not exist comes first.
        self._api.get(target.kind, target.namespace, target.name)
        has = f"pod {target.name} has a log, and nothing to run commands in or to connect to"
        text = f"the sandbox runs no processes: {has}"
        return StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", text)

    def _create(self, request: ApiRequest) -> _Answer:
        target, options = request.target, request.write_options()
        # Reviews are answered and never stored.
        if target.kind.virtual:
            return _json(_access_review(request), _CREATED)
        created = self._api.create(target.kind, target.namespace, request.body, options)
        return _json(created, _CREATED, options.warnings)

    def _update(self, request: ApiRequest) -> _Answer:
        target, options = request.target, request.write_options()
        updated = self._api.update(target.kind, target.namespace, target.name, request.body, options)
        return _json(updated, warnings=options.warnings)

    def _patch(self, request: ApiRequest) -> _Answer:
        target, options = request.target, request.write_options()
        key = (target.kind, target.namespace, target.name)
        # Only server-side apply creates what is not there; it is answered like a creation then.
        creates = request.media == APPLY_PATCH and self._api.find(*key) is None
        patched = self._api.patch(*key, request.body, media=request.media, options=options)
        return _json(_versioned(request, patched), _CREATED if creates else 200, options.warnings)

    def _delete(self, request: ApiRequest) -> _Answer:
        target = request.target
        options = admission.delete_options(request.body, request.query)
        obj, gone = self._api.delete(target.kind, target.namespace, target.name, options)
        # A pod is answered as it was even when it is gone at once, any other object by a Status.
        if not gone or target.kind.plural == "pods":
            return _json(_versioned(request, obj))
        details = {"name": target.name, "group": target.kind.group, "kind": target.kind.plural}
        details = {key: value for key, value in details.items() if value} | {"uid": obj["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json(status | {"details": details})


def _json(body: Object, status: int = 200, warnings: list[str] | None = None) -> _Answer:
    return _Answer(json.dumps(body, separators=(",", ":")).encode(), status, tuple(warnings or ()))


def _access_review(request: ApiRequest) -> Object:
    """Answer who the caller is (SelfSubjectReview), or what the caller may do (SelfSubjectAccessReview)."""
    body: Object = request.body or {}
    if request.target.kind.kind == "SelfSubjectReview":
        info = {"username": request.user.name, "groups": list(request.user.groups)}
        return body | {"status": {"userInfo": info}}
    # A question without a verb or a resource is about all of them.
    asked = body.get("spec", {}).get("resourceAttributes") or {}
    allowed = request.user.may(asked.get("verb", "*"), asked.get("group", ""), asked.get("resource", "*"))
    return body | {"status": {"allowed": allowed}}


def _versioned(request: ApiRequest, obj: Object) -> Object:
    """Return *obj* in the version of the URL: all versions of a resource are stored together."""
    version = request.target.kind.api_version
    return obj if obj.get("apiVersion") == version else {**obj, "apiVersion": version}


def _include(request: ApiRequest) -> str:
    return request.query.get("includeObject", "Metadata")


async def _table_lines(request: ApiRequest, events: AsyncIterator[_WatchEvent]) -> AsyncIterator[bytes]:
    """Yield the lines of a watch as tables of one row; only the first has the columns' headers."""
    headers = True
    async for event in events:
        # The object of an error is a Status, which has no row.
        if event.type == "ERROR":
            yield event.line()
            continue
        meta = event.object["metadata"]
        # The annotation of a bookmark tells the client that the initial events have ended.
        rows = [] if event.type == "BOOKMARK" else [event.object]
        kept = ("resourceVersion", "annotations") if event.type == "BOOKMARK" else ("resourceVersion",)
        list_meta = {key: meta[key] for key in kept if key in meta}
        shown = table(request.target.kind, rows, list_meta, _include(request), headers=headers)
        headers = False
        yield _WatchEvent(event.type, shown).line()


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
class _Page:
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


def _page_of(store: Store, kind: Kind, namespace: str, query: Mapping[str, str]) -> _Page:
    """Return the part of a list that a request asks for; raises StatusError for what cannot be answered."""
    matches = _matcher(kind, query)
    limit = max(number_of(query, "limit") or 0, 0)
    # A list has no use for it, but refuses what is not a number.
    number_of(query, "timeoutSeconds")
    version, start = _position(store, query)
    objects = _as_of(store, kind, version)
    keys = [key for key in sorted(objects) if (not namespace or key[0] == namespace) and key > start]
    chosen = [key for key in keys if matches(objects[key].body)]
    items = [objects[key] for key in chosen]
    if not limit or len(chosen) <= limit:
        return _Page(items, version)
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(chosen[limit - 1])}
    encoded = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    # The API server counts the rest only where no selector makes it look at each object.
    selective = query.get("labelSelector") or query.get("fieldSelector")
    return _Page(items[:limit], version, encoded, None if selective else len(chosen) - limit)


def _matcher(kind: Kind, query: Mapping[str, str]) -> Matcher:
    return matcher(query.get("labelSelector", ""), query.get("fieldSelector", ""), kind)


def _position(store: Store, query: Mapping[str, str]) -> tuple[int, ObjectKey]:
    """Return the version to show and the key after which to begin."""
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


def _encode_list(kind: Kind, part: _Page) -> bytes:
    """Return a page as the JSON of a List, from objects that are encoded already."""
    head: Object = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": part.meta()}
    # Each revision is encoded once and spliced in: a list of thousands of pods is then a matter of joining
    # bytes.
    body = json.dumps(head, separators=(",", ":"))[:-1].encode()
    return body + b',"items":[' + b",".join(stored.encoded for stored in part.items) + b"]}"


def _watch_events(
    store: Store, kind: Kind, namespace: str, query: Mapping[str, str]
) -> AsyncIterator[_WatchEvent]:
    """Return the events of a watch for ``timeoutSeconds``; raises StatusError before the first."""
    matches, version = _matcher(kind, query), _version_of(store, query)
    # A generator refuses nothing before its first event.
    number_of(query, "timeoutSeconds")

    def inside(stored: Stored) -> bool:
        return (not namespace or object_key(stored.body)[0] == namespace) and matches(stored.body)

    return _events(store, kind, query, version, inside)


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
