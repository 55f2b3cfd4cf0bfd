"""The API over HTTP: authentication, routing, and the form of every answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import access, refusals, targets
from arena_topo.sandbox.api.access import User
from arena_topo.sandbox.api.http.bodies import read_body
from arena_topo.sandbox.api.http.faults import Faults
from arena_topo.sandbox.api.schema import discovery, openapi
from arena_topo.sandbox.api.verbs.answers import Answer, Call, Resources
from arena_topo.sandbox.api.verbs.container_logs import Logbook
from arena_topo.sandbox.api.verbs.objects import Api

VERSION = "v1.36.3+arena-topo-sandbox"
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_DEPTHS = {"api": 2, "apis": 3}
"""How many parts of a path are discovery."""


class Server:
    """The handler of all requests; ``users`` maps tokens to users, ``control`` answers ``/_sandbox``."""

    def __init__(
        self,
        api: Api,
        logbook: Logbook,
        users: dict[str, User],
        control: Callable[[str, str, Object], Object],
    ) -> None:
        self.api = api
        self.users = users
        self.faults = Faults()
        self._resources = Resources(api, logbook, users)
        self._control = control

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        try:
            return await self._answer(request)
        except refusals.Refusal as refusal:
            return web.json_response(refusal.status(), status=refusal.code, headers=refusal.headers)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in _HEALTH or path == "/version":
            return web.json_response(_version()) if path == "/version" else web.Response(text="ok")
        user = self._user(request)
        if path.startswith("/_sandbox"):
            return await self._controlled(request, user)
        self.faults.strike()
        parts = [part for part in path.split("/") if part]
        if parts and parts[0] == "openapi":
            return self._openapi(parts)
        depth = _DEPTHS.get(parts[0] if parts else "", -1)
        if depth < 0:
            return _nothing()
        if len(parts) <= depth:
            return self._discover(request, parts)
        return await self._resource(request, user, parts)

    async def _controlled(self, request: web.Request, user: User) -> web.Response:
        if not user.may_write:
            raise refusals.Refusal(403, "Forbidden", "only the administrator controls the sandbox")
        body = await read_body(request) if request.can_read_body else {}
        return web.json_response(self._control(request.method, request.path, body))

    def _user(self, request: web.Request) -> User:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self.users.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise refusals.unauthorized()
        return user

    def _openapi(self, parts: list[str]) -> web.Response:
        if parts[1:2] != ["v3"]:
            return _nothing()
        registry = self.api.registry
        found = openapi.document(registry, "/".join(parts[2:])) if parts[2:] else openapi.index(registry)
        return web.json_response(found)

    def _discover(self, request: web.Request, parts: list[str]) -> web.Response:
        registry = self.api.registry
        if len(parts) == 1:
            if "g=apidiscovery.k8s.io;v=v2;" in request.headers.get("Accept", ""):
                body = discovery.aggregated(registry, core=parts[0] == "api")
                answer = web.json_response(body)
                answer.headers["Content-Type"] = discovery.AGGREGATED
                return answer
            body = discovery.versions() if parts[0] == "api" else discovery.group_list(registry)
        elif parts[0] == "api":
            body = discovery.resources(registry, "", parts[1])
        elif len(parts) == len(("apis", "group")):
            body = discovery.group_of(registry, parts[1])
        else:
            body = discovery.resources(registry, parts[1], parts[2])
        return web.json_response(body)

    async def _resource(self, request: web.Request, user: User, parts: list[str]) -> web.StreamResponse:
        query = dict(request.query)
        target = targets.parse(self.api.registry, parts)
        verb = targets.verb_of(request.method, target, query)
        access.check(
            user,
            verb,
            target.kind,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
        )
        if verb not in target.kind.verbs:
            raise refusals.method_not_allowed(verb, target.kind)
        body = await read_body(request) if request.can_read_body else None
        call = _call(request, user, target, verb, body)
        answer = self._resources.answer(call)
        if answer.stream is not None:
            return await self._stream(request, answer, slow=verb == "watch")
        headers = [("Warning", f'299 - "{_escaped(text)}"') for text in answer.warnings]
        response = web.Response(body=answer.body, status=answer.status, content_type=answer.media)
        for name, value in headers:
            response.headers.add(name, value)
        return response

    async def _stream(self, request: web.Request, answer: Answer, *, slow: bool) -> web.StreamResponse:
        """Send a watch or a log; what is refused before its first line is refused as any request."""
        lines = _checked(answer.stream)
        first = await anext(lines, None) if answer.eager else b""
        response = web.StreamResponse(headers={"Content-Type": answer.media})
        response.enable_chunked_encoding()
        await response.prepare(request)
        cut, sent = self.faults.cut(), 0
        if first:
            await response.write(first)
            sent = 1
        if first is None:
            return response
        async for line in lines:
            if slow and self.faults.slow_watch:
                await asyncio.sleep(self.faults.slow_watch)
            if cut and sent >= cut:
                if request.transport is not None:
                    request.transport.abort()
                return response
            await response.write(line)
            sent += 1
        return response


def _call(request: web.Request, user: User, target: targets.Target, verb: str, body: Any) -> Call:
    return Call(
        user=user,
        target=target,
        verb=verb,
        query=dict(request.query),
        body=body,
        media=request.content_type,
        accept=request.headers.get("Accept", ""),
        agent=request.headers.get("User-Agent", "").partition("/")[0],
    )


async def _checked(stream: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    if stream is not None:
        async for line in stream:
            yield line


def _nothing() -> web.Response:
    return web.Response(text="404 page not found\n", status=HTTPStatus.NOT_FOUND)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _version() -> Object:
    return {
        "major": "1",
        "minor": "36",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "simulated",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "simulated/arena-topo",
    }
