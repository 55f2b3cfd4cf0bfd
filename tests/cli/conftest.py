"""Running the command line in this process, away from the user's own configuration."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from arena_topo.cli.errors import run
from tests.e2e.arena import Outcome
from tests.fakes import FakeTransport, Script, session

Invoke = Callable[..., Outcome]


@pytest.fixture
def invoke(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Invoke:
    """Return a function that runs a command line; no cluster is configured."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for variable in [name for name in os.environ if name.startswith("ARENA_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setattr("sys.argv", ["arena-topo"])

    def invoked(*args: str) -> Outcome:
        code = run(args)
        printed = capfd.readouterr()
        return Outcome(int(code), printed.out, printed.err)

    return invoked


Serve = Callable[[Script], FakeTransport]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Serve:
    """Return a function that makes every command talk to a cluster that answers from a script."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def served(script: Script) -> FakeTransport:
        opened, transport = session(script)
        monkeypatch.setattr("arena_topo.kube.session.connect", lambda *_: opened)
        return transport

    return served


class Typed(io.StringIO):
    """What is typed on a terminal."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True
