"""The API over HTTP: authentication, routing, discovery, and the form of every answer."""

import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import yaml
from aiohttp import web

from arena_topo.model.objects import Object
from arena_topo.model.text.quantity import parse_instant
from arena_topo.sandbox.api import lists
from arena_topo.sandbox.api.objects import APPLY_PATCH, Api
from arena_topo.sandbox.api.resources import (
    ApiRequest,
    Cause,
    DeleteOptions,
    Kind,
    Registry,
    StatusError,
    User,
    bad_request,
    details_of,
    invalid,
    no_such_resource,
    number_of,
    target_of,
    unsupported_media,
    verb_of,
)
from arena_topo.sandbox.api.schema import resolve, type_mismatch
from arena_topo.sandbox.api.store import ContainerLog, ContainerLogs

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
_DELETE_OPTIONS = Kind(
    "meta.k8s.io", "v1", "DeleteOptions", "deleteoptions", "deleteoptions", namespaced=False
)
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
        self._api = api
        self._registry = api.registry
        self._logs = logs
        self._users = users
        self._control = control
        self._verbs: Mapping[str, Callable[[ApiRequest], _Answer]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
        }

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
                document = _openapi(self._registry, "/".join(path))
            case ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _]:
                document = _discovery(self._registry, parts)
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
        target = target_of(self._registry, parts)
        api_request = ApiRequest(
            user=user,
            target=target,
            verb=verb_of(request.method, target, query),
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
        answer = self._answer(api_request)
        if answer.stream is not None:
            return await _stream(request, answer, answer.stream)
        response = web.Response(body=answer.body, status=answer.status, content_type=answer.media)
        # The form of a warning by RFC 7234, 5.5: code, agent ("-" where there is no name), quoted text.
        for text in answer.warnings:
            escaped = text.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{escaped}"')
        return response

    # One function per verb: from what a request asks for to the bytes of its answer.

    def _answer(self, request: ApiRequest) -> _Answer:
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
        return _json(lists.table(request, [obj], meta))

    def _list(self, request: ApiRequest) -> _Answer:
        return _Answer(lists.encoded_list(self._api.store, request))

    def _watch(self, request: ApiRequest) -> _Answer:
        return _Answer(stream=lists.watch(self._api.store, request))

    def _log(self, request: ApiRequest) -> _Answer:
        target = request.target
        pod = self._api.get(target.kind, target.namespace, target.name)
        container = _container_of(pod, request.query.get("container", ""))
        # Without a node there is no kubelet to ask: the API server answers with an empty log.
        if not pod["spec"].get("nodeName"):
            return _Answer(status=_NO_CONTENT, media="text/plain")
        previous = request.query.get("previous") == "true"
        run = _run_of(pod, container, previous=previous)
        log = self._logs.find(pod["metadata"]["uid"], container, run)
        return _Answer(stream=_read_log(log, request.query), media="text/plain")

    def _no_process(self, request: ApiRequest) -> StatusError:
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
        options = _delete_options(request.body, request.query)
        obj, gone = self._api.delete(target.kind, target.namespace, target.name, options)
        # A pod is answered as it was even when it is gone at once, any other object by a Status.
        if not gone or target.kind.plural == "pods":
            return _json(_versioned(request, obj))
        details = {"name": target.name, "group": target.kind.group, "kind": target.kind.plural}
        details = {key: value for key, value in details.items() if value} | {"uid": obj["metadata"]["uid"]}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json(status | {"details": details})


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


def _delete_options(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    """Return the options of a deletion, from the body or else from the query; raises StatusError."""
    options = _delete_body(body)
    grace = options.get("gracePeriodSeconds", number_of(query, "gracePeriodSeconds"))
    propagation = options.get("propagationPolicy", query.get("propagationPolicy"))
    if propagation not in {None, "Foreground", "Background", "Orphan"}:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        raise _unsupported("propagationPolicy", propagation, supported)
    dry_run = options.get("dryRun") or [value for key, value in query.items() if key == "dryRun"]
    if set(dry_run) - {"All"}:
        raise _unsupported("dryRun", dry_run, '"All"')
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        grace=grace,
        propagation=propagation,
        uid=preconditions.get("uid", ""),
        version=preconditions.get("resourceVersion", ""),
        dry_run=bool(dry_run),
    )


def _delete_body(body: Any) -> Object:
    """Return the body of a deletion; raises StatusError where its fields have not the right types."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        word = "array" if isinstance(body, list) else "string"
        raise bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {word}")
    schema = resolve({"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"})
    if mismatch := type_mismatch(body, schema):
        path, got, go = mismatch
        text = f"json: cannot unmarshal {got} into Go struct field DeleteOptions.{path} of type {go}"
        raise bad_request(text)
    return {key: value for key, value in body.items() if value is not None}


def _unsupported(field: str, value: object, supported: str) -> StatusError:
    text = f"Unsupported value: {json.dumps(value)}: supported values: {supported}"
    return invalid(_DELETE_OPTIONS, "", [Cause(field, "FieldValueNotSupported", text)])


# Requests for what containers have printed.
#
# Source of the options' meaning: k8s.io/kubernetes pkg/registry/core/pod/strategy.go (LogLocation) and the
# kubelet.

_CENTURY = 100 * 365 * 86400  # seconds
_LOG_OPTIONS = Kind("", "v1", "PodLogOptions", "podlogoptions", "podlogoptions", namespaced=True)


def _container_of(pod: Object, name: str) -> str:
    """Return the container that a log request means; raises StatusError for none, or several."""
    pod_name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for container in spec["containers"]]
    # A name may be that of an init container, but the default is only ever an ordinary one.
    if name:
        if name not in names + [container["name"] for container in spec.get("initContainers", [])]:
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(names) > 1:
        listed = "[" + " ".join(names) + "]"
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: {listed}")
    return str(names[0])


def _run_of(pod: Object, container: str, *, previous: bool) -> int:
    """Return the number of the run to show; raises StatusError when the container has not run yet."""
    name = pod["metadata"]["name"]
    states = pod.get("status", {}).get("containerStatuses", [])
    status: Object = next((state for state in states if state["name"] == container), {})
    run = int(status.get("restartCount", 0))
    if previous:
        if not status.get("lastState", {}).get("terminated"):
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        return run - 1
    state = status.get("state", {})
    if "running" not in state and "terminated" not in state:
        # While a container waits for its next start, as in CrashLoopBackOff, its last run is what it has to
        # show.
        if status.get("lastState", {}).get("terminated"):
            return run - 1
        reason = state.get("waiting", {}).get("reason", "ContainerCreating")
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    return run


def _read_log(log: ContainerLog, query: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Return the lines that a request asks for, with ``follow`` until the end; raises StatusError."""
    follow, stamped = query.get("follow") == "true", query.get("timestamps") == "true"
    return _lines(log, _first_line(log, query), follow=follow, stamped=stamped)


async def _lines(log: ContainerLog, position: int, *, follow: bool, stamped: bool) -> AsyncIterator[bytes]:
    while True:
        changed = log.changed
        while position < len(log.lines):
            stamp, text = log.lines[position]
            position += 1
            yield (f"{stamp} {text}\n" if stamped else f"{text}\n").encode()
        if not follow or log.closed:
            return
        await changed.wait()


def _first_line(log: ContainerLog, query: Mapping[str, str]) -> int:
    """Return the first line to show, by tail and since."""
    start, since = 0, None
    tail, seconds = number_of(query, "tailLines"), number_of(query, "sinceSeconds")
    if tail is not None:
        start = max(len(log.lines) - _checked("tailLines", tail, 0), 0)
    if seconds is not None:
        # A hundred years is before any log, and still an instant.
        span = min(_checked("sinceSeconds", seconds, 1), _CENTURY)
        since = datetime.now(UTC) - timedelta(seconds=span)
    elif "sinceTime" in query:
        since = _instant(query["sinceTime"])
    while since is not None and start < len(log.lines) and parse_instant(log.lines[start][0]) < since:
        start += 1
    return start


def _checked(name: str, value: int, least: int) -> int:
    """Return *value*; raises StatusError where it is below *least*, in the words of the API's validation."""
    if value < least:
        bound = "greater than or equal to 0" if least == 0 else "greater than 0"
        text = f"Invalid value: {value}: must be {bound}"
        raise invalid(_LOG_OPTIONS, "", [Cause(name, "FieldValueInvalid", text)])
    return value


def _instant(text: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError:
        raise bad_request(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}"'
        ) from None


# Discovery: ``/api``, ``/apis`` and below, and the OpenAPI v3 documents.
#
# Sources: k8s.io/apimachinery/pkg/apis/meta/v1 and k8s.io/kube-openapi. kubectl discovers group by group
# where the aggregated form is not served.

_CONNECT_VERBS = ["create", "get"]
_SUBRESOURCE_VERBS = {
    "status": ["get", "patch", "update"],
    "log": ["get"],
    "finalize": ["update"],
    "exec": _CONNECT_VERBS,
    "attach": _CONNECT_VERBS,
    "portforward": _CONNECT_VERBS,
}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def _discovery(registry: Registry, parts: list[str]) -> Object:
    """Return the discovery document at the parts of a path; raises StatusError where nothing is served."""
    match parts:
        # The core group, which is older than API groups, has a document of its own.
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(registry, name) for name in registry.groups() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", name]:
            return {"kind": "APIGroup", "apiVersion": "v1"} | _group(registry, name)
        case _:
            return _resources(registry, "/".join(parts))


def _group(registry: Registry, name: str) -> Object:
    served = registry.groups().get(name)
    if not served:
        raise no_such_resource()
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(registry: Registry, root: str) -> Object:
    kinds = _kinds_at(registry, root)
    if not kinds:
        raise no_such_resource()
    entries = [entry for kind in kinds for entry in _entries(kind)]
    head = {"groupVersion": kinds[0].api_version, "resources": entries}
    return {"kind": "APIResourceList", "apiVersion": "v1"} | head


def _entries(kind: Kind) -> list[Object]:
    entry: Object = {"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced}
    entry |= {"kind": kind.kind, "verbs": list(kind.verbs)}
    entry |= {"shortNames": list(kind.short_names)} if kind.short_names else {}
    entry |= {"categories": list(kind.categories)} if kind.categories else {}
    below: Object = {"singularName": "", "namespaced": kind.namespaced, "kind": kind.kind}
    names = kind.subresources
    return [
        entry,
        *({**below, "name": f"{kind.plural}/{name}", "verbs": _SUBRESOURCE_VERBS[name]} for name in names),
    ]


def _kinds_at(registry: Registry, root: str) -> list[Kind]:
    return [kind for kind in registry if kind.root == root]


def _openapi(registry: Registry, root: str) -> Object:
    """Return the OpenAPI v3 document of ``api/v1`` or ``apis/GROUP/VERSION``, or their list.

    It has what is read of it here: that writes validate fields, for which ``kubectl apply`` looks, and the
    schemas of custom resources, in which ``doctor`` looks for fields of pods.
    """
    if not root:
        roots = dict.fromkeys(kind.root for kind in registry)
        return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}"} for root in roots}}
    paths, schemas = {}, {}
    for kind in _kinds_at(registry, root):
        identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        parameters = [{"name": name, "in": "query"} for name in _WRITE_PARAMETERS]
        patch = {"parameters": parameters, "x-kubernetes-group-version-kind": identity, "responses": {}}
        base = f"/{root}/namespaces/{{namespace}}" if kind.namespaced else f"/{root}"
        paths[f"{base}/{kind.plural}/{{name}}"] = {"patch": patch}
        if kind.custom:
            # Such as org.kubeflow.v2beta1.MPIJob.
            name = ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))
            schemas[name] = kind.schema | {"x-kubernetes-group-version-kind": [identity]}
    info = {"title": "arena-topo sandbox", "version": "v1.36.3"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}
