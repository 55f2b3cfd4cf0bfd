"""A server to ask, and both ways to ask it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.official_client import from_target
from arena_topo.kube.static_client import StaticTransport
from arena_topo.kube.transport import HttpTransport
from tests.kube.asking import Make
from tests.kube.server import Reply, Server, serve


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Close in the end whatever was opened."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def official(stack: ExitStack) -> Make:
    """Make transports of the official client."""
    return _closing(from_target, stack)


@pytest.fixture
def static(stack: ExitStack) -> Make:
    """Make transports of the standard library."""
    return _closing(StaticTransport, stack)


@pytest.fixture(params=["standard library", "official client"])
def make(request: pytest.FixtureRequest, static: Make, official: Make) -> Make:
    """Make transports of one kind after the other."""
    return official if request.param == "official client" else static


def _closing(kind: Make, stack: ExitStack) -> Make:
    def made(target: Target) -> HttpTransport:
        transport = kind(target)
        stack.callback(transport.close)
        return transport

    return made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Run a server that says yes to everything."""
    with serve(
        tmp_path, lambda _: Reply(body=b'{"ok": true}'), hosts=("localhost", "other.example.com")
    ) as running:
        yield running
