"""A server to ask, and users of both kinds of credentials who ask it."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.transport import HttpTransport, Transport
from tests.kube.asking import Make
from tests.kube.server import Reply, Server, serve


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Close in the end whatever was opened."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def static(stack: ExitStack) -> Make:
    """Make transports of users as they are given."""

    def made(target: Target) -> HttpTransport:
        transport = Transport(target)
        stack.callback(transport.close)
        return transport

    return made


@pytest.fixture
def resolved(static: Make) -> Make:
    """Make transports of users whose auth provider the package resolves, which passes by an unknown one."""

    def made(target: Target) -> HttpTransport:
        return static(replace(target, user={**target.user, "auth-provider": {"name": "unknown"}}))

    return made


@pytest.fixture(params=["static", "resolved"])
def make(request: pytest.FixtureRequest, static: Make, resolved: Make) -> Make:
    """Make transports of users of one kind after the other."""
    return resolved if request.param == "resolved" else static


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Run a server that says yes to everything."""
    with serve(
        tmp_path, lambda _: Reply(body=b'{"ok": true}'), hosts=("localhost", "other.example.com")
    ) as running:
        yield running
