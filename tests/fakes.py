"""A transport that answers from a script: the seam at which code above the wire is tested without one."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from arena_topo.errors import ConnectionFailed
from arena_topo.kube.session import Session
from arena_topo.kube.transport import Request


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the script sees it."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


class Broken:
    """The end of a stream that breaks off."""


class Silent:
    """A stream that says nothing for longer than the reader waits."""


Line = bytes | type[Broken] | type[Silent]


@dataclass(slots=True)
class Answer:
    """What the script answers: an object, or the lines of a stream."""

    status: int = 200
    body: Any = None
    lines: list[Line] = field(default_factory=list)

    def header(self, name: str) -> str:
        """Return no header."""
        del name
        return ""

    def read(self) -> bytes:
        """Return the object as JSON."""
        return json.dumps(self.body).encode()

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line, or fail as the script says."""
        line = self.lines.pop(0) if self.lines else b""
        if line is Broken:
            raise ConnectionFailed("reset by peer")
        if line is Silent:
            raise TimeoutError
        assert isinstance(line, bytes)
        if 0 <= limit < len(line):
            self.lines.insert(0, line[limit:])
            line = line[:limit]
        return line

    def close(self) -> None:
        """Drop the rest."""


def refusal(status: int, reason: str, message: str = "", **details: str) -> Answer:
    """Return a Status object."""
    return Answer(status, {"kind": "Status", "reason": reason, "message": message, "details": details})


def missing(name: str) -> Answer:
    """Return the 404 for an object."""
    return refusal(404, "NotFound", f'"{name}" not found', name=name)


def unserved() -> Answer:
    """Return the 404 for a resource type."""
    return Answer(404, "404 page not found")


Script = Callable[[Call], Answer]


@dataclass(slots=True)
class FakeTransport:
    """Hands every request to a script, and remembers it."""

    script: Script
    calls: list[Call] = field(default_factory=list)

    def send(self, request: Request) -> Answer:
        """Return what the script says."""
        parts = urlsplit(request.path)
        body = json.loads(request.body) if request.body else None
        call = Call(request.method, unquote(parts.path), dict(parse_qsl(parts.query)), body)
        self.calls.append(call)
        return self.script(call)

    stream = send

    def renew(self) -> bool:
        """Return that there is nothing to renew."""
        return False

    def close(self) -> None:
        """Close nothing."""


def session(script: Script, *, server: str = "") -> tuple[Session, FakeTransport]:
    """Return a session over *script*, and its transport; a *server* that has a name is remembered."""
    transport = FakeTransport(script)
    return Session(transport, namespace="default", server=server), transport


def in_turn(*answers: Answer) -> Script:
    """Return a script that gives one answer after another."""
    left: Iterator[Answer] = iter(answers)
    return lambda _: next(left)
