"""One method a verb: from what a request asks to the bytes of its answer."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import access, refusals
from arena_topo.sandbox.api.access import User
from arena_topo.sandbox.api.options import DeleteOptions, WriteOptions
from arena_topo.sandbox.api.tables import table
from arena_topo.sandbox.api.targets import Target
from arena_topo.sandbox.api.verbs import binding, container_logs, listing, watching
from arena_topo.sandbox.api.verbs.container_logs import Logbook
from arena_topo.sandbox.api.verbs.objects import APPLY_PATCHES, Api

CREATED = 201
NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose path, verb and body are understood."""

    user: User
    target: Target
    verb: str
    query: dict[str, str]
    body: Any
    media: str
    accept: str
    agent: str

    @property
    def as_table(self) -> bool:
        """Whether the client wants a Table."""
        return "as=Table" in self.accept

    def write_options(self) -> WriteOptions:
        """Return the options of a write; raises Refusal for values that do not exist."""
        query = self.query
        dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation") or "Warn"
        if dry_run not in {"", "All"}:
            raise refusals.bad_request(
                f'invalid dryRun: Unsupported value: "{dry_run}": supported values: "All"'
            )
        match validation:
            case "Strict" | "Warn" | "Ignore":
                pass
            case other:
                raise refusals.bad_request(f'fieldValidation: Unsupported value: "{other}"')
        return WriteOptions(
            manager=query.get("fieldManager") or self.agent or "unknown",
            dry_run=bool(dry_run),
            validation=validation,
            force=query.get("force") == "true",
            subresource=self.target.subresource if self.target.subresource == "status" else "",
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send: a body, or a stream; ``eager`` streams may still be refused at their first line."""

    body: bytes = b""
    status: int = 200
    warnings: list[str] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    media: str = "application/json"
    eager: bool = False


def _json(body: Object, status: int = 200, warnings: list[str] | None = None) -> Answer:
    return Answer(json.dumps(body, separators=(",", ":")).encode(), status, warnings or [])


class Resources:
    """Answers calls on resources."""

    def __init__(self, api: Api, books: Logbook, users: dict[str, User]) -> None:
        self._api = api
        self._books = books
        self._users = users

    def answer(self, call: Call) -> Answer:
        """Return the answer; raises Refusal."""
        target = call.target
        if target.kind.virtual:
            return _json(access.review(call.user, target.kind, call.body or {}, self._users), CREATED)
        if target.subresource == "log":
            return self._log(call)
        if call.verb == "create" and target.subresource in {"binding", "eviction"}:
            return _json(binding.answer(self._api, target, call.body or {}), CREATED)
        readers = {"get": self._get, "list": self._list, "watch": self._watch}
        readers |= {"delete": self._delete, "deletecollection": self._delete_all}
        return readers.get(call.verb, self._write)(call)

    def _get(self, call: Call) -> Answer:
        target = call.target
        obj = self._api.get(target.kind, target.namespace, target.name)
        obj = self._versioned(call, obj)
        if call.as_table:
            meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            include = call.query.get("includeObject", "Metadata")
            return _json(table.table(target.kind, [obj], meta, include))
        return _json(obj)

    @staticmethod
    def _versioned(call: Call, obj: Object) -> Object:
        version = call.target.kind.api_version
        return obj if obj.get("apiVersion") == version else {**obj, "apiVersion": version}

    def _list(self, call: Call) -> Answer:
        target, query = call.target, call.query
        found = listing.page(self._api.store, target.kind, target.namespace, query)
        if call.as_table:
            include = query.get("includeObject", "Metadata")
            rows = [stored.body for stored in found.items]
            return _json(table.table(target.kind, rows, found.meta(), include))
        return Answer(listing.encode_list(target.kind, found))

    def _watch(self, call: Call) -> Answer:
        target, query = call.target, dict(call.query)
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        events = watching.watch(self._api.store, target.kind, target.namespace, query)
        if not call.as_table:
            lines = (event.line() async for event in events)
            return Answer(stream=lines)
        return Answer(stream=_table_lines(call, events))

    def _log(self, call: Call) -> Answer:
        target, query = call.target, call.query
        pod = self._api.get(target.kind, target.namespace, target.name)
        container = container_logs.choose_container(pod, query.get("container", ""))
        if not pod["spec"].get("nodeName"):
            return Answer(status=NO_CONTENT, media="text/plain")
        previous = query.get("previous") == "true"
        container_logs.waiting(pod, container, previous=previous)
        states = pod["status"].get("containerStatuses", [])
        run = next((each.get("restartCount", 0) for each in states if each["name"] == container), 0)
        book = self._books.find(pod["metadata"]["uid"], container, run - 1 if previous else run)
        lines = container_logs.read(book or container_logs.Book(closed=True), query)
        return Answer(stream=lines, media="text/plain")

    def _delete(self, call: Call) -> Answer:
        target = call.target
        options = DeleteOptions.read(call.body or {}, call.query)
        obj, gone = self._api.delete(target.kind, target.namespace, target.name, options)
        if not gone or target.kind.plural == "pods":
            return _json(self._versioned(call, obj))
        details = {"name": target.name, "group": target.kind.group, "kind": target.kind.plural}
        details |= {"uid": obj["metadata"]["uid"]}
        details = {key: value for key, value in details.items() if value}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json(status | {"details": details})

    def _delete_all(self, call: Call) -> Answer:
        target = call.target
        options = DeleteOptions.read(call.body or {}, call.query)
        found = listing.page(self._api.store, target.kind, target.namespace, call.query)
        for stored in found.items:
            meta = stored.body["metadata"]
            self._api.delete(target.kind, meta.get("namespace", ""), meta["name"], options)
        return Answer(listing.encode_list(target.kind, found))

    def _write(self, call: Call) -> Answer:
        target, options, api = call.target, call.write_options(), self._api
        if call.verb == "create":
            namespace = target.namespace
            made = api.create(target.kind, namespace, call.body, options)
            return _json(made, CREATED, options.warnings)
        if call.verb == "update":
            done = api.update(target.kind, target.namespace, target.name, call.body, options)
            return _json(done, warnings=options.warnings)
        new = call.media in APPLY_PATCHES and api.find(target.kind, target.namespace, target.name) is None
        done = api.patch(
            target.kind, target.namespace, target.name, call.body, media=call.media, options=options
        )
        return _json(self._versioned(call, done), CREATED if new else 200, options.warnings)


async def _table_lines(call: Call, events: AsyncIterator[watching.Event]) -> AsyncIterator[bytes]:
    include = call.query.get("includeObject", "Metadata")
    first = True
    async for event in events:
        if event.type == "ERROR":
            yield event.line()
            continue
        meta = {"resourceVersion": event.object["metadata"].get("resourceVersion", "")}
        rows = [] if event.type == "BOOKMARK" else [event.object]
        if event.type == "BOOKMARK":
            meta |= {key: value for key, value in event.object["metadata"].items() if key == "annotations"}
        shown = table.table(call.target.kind, rows, meta, include, headers=first)
        first = False
        yield watching.Event(event.type, shown).line()
