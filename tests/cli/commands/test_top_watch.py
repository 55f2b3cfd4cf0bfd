"""``arena-topo top --watch`` takes a terminal, gives it back as it was, and says what it needs."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.sandbox.served import served

PROGRAM = Path(sys.executable).parent / "arena-topo"


def test_it_says_how_to_install_what_it_needs(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional."""
    monkeypatch.setattr("arena_topo.extras.find_spec", lambda _: None)
    outcome = invoke("top", "--watch")

    assert 1 == outcome.code
    assert "the live view needs textual" in outcome.err
    assert "pip install '.[live]'" in outcome.err


@contextmanager
def on_a_terminal(
    config: Path, folder: Path, program: Sequence[str] = (str(PROGRAM),), **environment: str
) -> Iterator[tuple[int, int, "subprocess.Popen[bytes]"]]:
    """Run the view on a terminal of 100 columns; yield both ends of it, and the process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    environment = {
        "HOME": str(folder),
        "PATH": "",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **environment,
    }
    command = [*program, "top", "--watch", "--kubeconfig", str(config)]
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    try:
        yield ours, theirs, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def read_until(terminal: int, word: bytes) -> bytes:
    """Return what the program draws up to *word*."""
    drawn = b""
    while word not in drawn:
        drawn += os.read(terminal, 65536)
    return drawn


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the kubeconfig of a sandbox."""
    with served(tmp_path_factory.mktemp("sandbox") / "home", "racks") as home:
        yield home.kubeconfig


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_the_terminal_is_as_it_was(config: Path, tmp_path: Path, key: bytes) -> None:
    """Its modes, its screen and its cursor."""
    with on_a_terminal(config, tmp_path) as (ours, theirs, process):
        before = termios.tcgetattr(theirs)
        read_until(ours, b"GPUs free")
        assert before != termios.tcgetattr(theirs)
        os.write(ours, key)
        # Leaving the other screen, and showing the cursor, are its last words.
        read_until(ours, b"\x1b[?1049l")
        assert {b"q": 0, b"\x03": 130}[key] == process.wait(60)
        assert before == termios.tcgetattr(theirs)


def test_a_signal_leaves_the_terminal_as_it_was(config: Path, tmp_path: Path) -> None:
    """As Ctrl-C does."""
    with on_a_terminal(config, tmp_path) as (ours, theirs, process):
        before = termios.tcgetattr(theirs)
        read_until(ours, b"GPUs free")
        process.terminate()
        read_until(ours, b"\x1b[?1049l")
        assert 130 == process.wait(60)
        assert before == termios.tcgetattr(theirs)


FAULTS = {
    "reading": "from arena_topo.cli.commands.top import LiveCluster as at; at.wait = lambda self: 1 / 0",
    "drawing": "import arena_topo.live.app as at; at.summary = lambda overview: 1 / 0",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_leaves_the_terminal_as_it_was(config: Path, tmp_path: Path, fault: str) -> None:
    """What went wrong is said on the user's own screen,
    with the cursor back, after the view's has been left.
    """
    ended = "import sys; from arena_topo.cli.errors import run; sys.exit(run(sys.argv[1:]))"
    program = (sys.executable, "-c", f"{FAULTS[fault]}\n{ended}")
    with on_a_terminal(config, tmp_path, program) as (ours, theirs, process):
        before = termios.tcgetattr(theirs)
        drawn = read_until(ours, b"ZeroDivisionError")
        assert 1 == process.wait(60)
        assert before == termios.tcgetattr(theirs)
    view, _, after = drawn.rpartition(b"\x1b[?1049l")
    assert b"\x1b[?1049h" in view
    assert b"internal error" in after
    assert b"\x1b[?25h" in drawn
    assert b"\x1b[?25l" not in after


def test_a_server_that_never_answered_is_an_error(tmp_path: Path) -> None:
    """As for any other command, and nothing is drawn."""
    config = tmp_path / "config"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],"
        " clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: a, user: {token: t}}]}"
    )
    with on_a_terminal(config, tmp_path) as (ours, _, process):
        assert 1 == process.wait(60)
        drawn = os.read(ours, 65536)
    assert b"the connection to the server 127.0.0.1:1 was refused" in drawn
    assert b"\x1b[?1049h" not in drawn


def test_a_terminal_that_draws_nothing_is_refused(config: Path, tmp_path: Path) -> None:
    """Editors that show no codes set TERM to dumb."""
    with on_a_terminal(config, tmp_path, TERM="dumb") as (ours, _, process):
        assert 2 == process.wait(60)
        with suppress(OSError):
            assert b"TERM names none" in os.read(ours, 65536)
