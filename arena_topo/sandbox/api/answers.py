"""One function per verb: from what a request asks for to the bytes of its answer."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import admission, container_logs, reading
from arena_topo.sandbox.api.container_logs import ContainerLogs
from arena_topo.sandbox.api.objects import APPLY_PATCH, Api
from arena_topo.sandbox.api.requests import ApiRequest
from arena_topo.sandbox.api.status_errors import StatusError
from arena_topo.sandbox.api.tables import table

_INTO_A_PROCESS = frozenset({"exec", "attach", "portforward"})
CREATED = 201
NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send: a body, or a stream of lines."""

    body: bytes = b""
    status: int = 200
    warnings: tuple[str, ...] = ()
    stream: AsyncIterator[bytes] | None = None
    media: str = "application/json"


def _json(body: Object, status: int = 200, warnings: list[str] | None = None) -> Answer:
    return Answer(json.dumps(body, separators=(",", ":")).encode(), status, tuple(warnings or ()))


class Answers:
    """Answers requests for resources."""

    def __init__(self, api: Api, logs: ContainerLogs) -> None:
        self._api = api
        self._logs = logs
        self._verbs: Mapping[str, Callable[[ApiRequest], Answer]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def answer(self, request: ApiRequest) -> Answer:
        """Return the answer; raises StatusError."""
        if request.target.subresource == "log":
            return self._log(request)
        if request.target.subresource in _INTO_A_PROCESS:
            raise self._no_process(request)
        return self._verbs[request.verb](request)

    def _get(self, request: ApiRequest) -> Answer:
        target = request.target
        obj = _versioned(request, self._api.get(target.kind, target.namespace, target.name))
        if not request.wants_table:
            return _json(obj)
        meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return _json(table(target.kind, [obj], meta, _include(request)))

    def _list(self, request: ApiRequest) -> Answer:
        kind = request.target.kind
        page = reading.page(self._api.store, kind, request.target.namespace, request.query)
        if request.wants_table:
            rows = [stored.body for stored in page.items]
            return _json(table(kind, rows, page.meta(), _include(request)))
        return Answer(reading.encode_list(kind, page))

    def _watch(self, request: ApiRequest) -> Answer:
        target, query = request.target, dict(request.query)
        # A watch of one object is a watch of its collection, as the API server treats it.
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        events = reading.watch(self._api.store, target.kind, target.namespace, query)
        if request.wants_table:
            return Answer(stream=_table_lines(request, events))
        return Answer(stream=(event.line() async for event in events))

    def _log(self, request: ApiRequest) -> Answer:
        target = request.target
        pod = self._api.get(target.kind, target.namespace, target.name)
        container = container_logs.container_of(pod, request.query.get("container", ""))
        # Without a node there is no kubelet to ask: the API server answers with an empty log.
        if not pod["spec"].get("nodeName"):
            return Answer(status=NO_CONTENT, media="text/plain")
        previous = request.query.get("previous") == "true"
        run = container_logs.run_of(pod, container, previous=previous)
        log = self._logs.find(pod["metadata"]["uid"], container, run)
        return Answer(stream=container_logs.read(log, request.query), media="text/plain")

    def _no_process(self, request: ApiRequest) -> StatusError:
        """Return the refusal of what needs a process in a pod: an answer made up would be taken for a container's."""
        target = request.target
        # As on a cluster, a pod that does not exist comes first.
        self._api.get(target.kind, target.namespace, target.name)
        text = f"the sandbox runs no processes: pod {target.name} has a log, and nothing to run commands in or to connect to"
        return StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", text)

    def _create(self, request: ApiRequest) -> Answer:
        target, options = request.target, request.write_options()
        # Reviews are answered and never stored.
        if target.kind.virtual:
            return _json(_access_review(request), CREATED)
        created = self._api.create(target.kind, target.namespace, request.body, options)
        return _json(created, CREATED, options.warnings)

    def _update(self, request: ApiRequest) -> Answer:
        target, options = request.target, request.write_options()
        updated = self._api.update(target.kind, target.namespace, target.name, request.body, options)
        return _json(updated, warnings=options.warnings)

    def _patch(self, request: ApiRequest) -> Answer:
        target, options = request.target, request.write_options()
        key = (target.kind, target.namespace, target.name)
        # Only server-side apply creates what is not there; it is answered like a creation then.
        creates = request.media == APPLY_PATCH and self._api.find(*key) is None
        patched = self._api.patch(*key, request.body, media=request.media, options=options)
        return _json(_versioned(request, patched), CREATED if creates else 200, options.warnings)

    def _delete(self, request: ApiRequest) -> Answer:
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

    def _delete_collection(self, request: ApiRequest) -> Answer:
        kind, options = request.target.kind, admission.delete_options(request.body, request.query)
        page = reading.page(self._api.store, kind, request.target.namespace, request.query)
        for stored in page.items:
            meta = stored.body["metadata"]
            self._api.delete(kind, meta.get("namespace", ""), meta["name"], options)
        return Answer(reading.encode_list(kind, page))


def _access_review(request: ApiRequest) -> Object:
    """Answer who the caller is (SelfSubjectReview), or whether it may do something (SelfSubjectAccessReview)."""
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


async def _table_lines(
    request: ApiRequest, events: AsyncIterator[reading.WatchEvent]
) -> AsyncIterator[bytes]:
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
        yield reading.WatchEvent(event.type, shown).line()
