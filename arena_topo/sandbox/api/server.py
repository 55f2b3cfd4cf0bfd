"""The API over HTTP: authentication, routing, and the form of every answer."""

import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import yaml
from aiohttp import web

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import requests
from arena_topo.sandbox.api.answers import Answer, Answers
from arena_topo.sandbox.api.container_logs import ContainerLogs
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.api.requests import ApiRequest, User
from arena_topo.sandbox.api.schema import discovery
from arena_topo.sandbox.api.status_errors import StatusError, bad_request, details_of, unsupported_media

VERSION: Object = {
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
Control = Callable[[str, str, Object], Object]
"""Answers a request about the sandbox itself, by method, path and body."""


class Server:
    """The handler of all requests; ``users`` maps tokens to users, ``control`` answers ``/_sandbox``."""

    def __init__(self, api: Api, logs: ContainerLogs, users: Mapping[str, User], control: Control) -> None:
        self._registry = api.registry
        self._users = users
        self._answers = Answers(api, logs)
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
        except Exception as error:  # noqa: BLE001  # one request that the server stumbles over is answered as such
            traceback.print_exc(file=sys.stderr)
            failure = StatusError(500, "InternalError", f"Internal error occurred: {error!r:.200}")
            return web.json_response(failure.status(), status=failure.code)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        parts = [part for part in request.path.split("/") if part]
        # An API server shows its version to everybody, too (role system:public-info-viewer).
        if parts == ["version"]:
            return web.json_response(VERSION)
        user = self._user(request)
        match parts:
            case ["_sandbox", *_]:
                return await self._controlled(request, user)
            case ["openapi", "v3", *path]:
                document = discovery.openapi(self._registry, "/".join(path))
            case ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _]:
                document = discovery.document(self._registry, parts)
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


async def _stream(request: web.Request, answer: Answer, lines: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send a watch or a log line by line, each at the moment it is written."""
    response = web.StreamResponse(headers={"Content-Type": answer.media})
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for line in lines:
        await response.write(line)
    return response


async def _read_body(request: web.Request) -> Any:
    """Return the decoded body of a request, None where it has none; raises StatusError where it is unreadable."""
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
