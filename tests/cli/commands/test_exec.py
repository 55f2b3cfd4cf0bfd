"""``exec`` and ``attach`` connect the user with a process
in a container, as a process at a real terminal would.
"""

import base64
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.polling import eventually
from tests.e2e.arena import PROGRAM, inside
from tests.kube.exec_server import ExecServer, Remote, serving
from tests.kube.server import Reply, Seen, serve
from tests.objects import mpijob, pod

_WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server adds to the client's key, by RFC 6455."""

LIMIT = 60.0
"""Seconds; a command takes one, on a loaded machine many more."""


def run(server: ExecServer, *args: str, home: Path, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command whose stdin is *text*."""
    command, job, *rest = args
    return subprocess.run(
        [PROGRAM, command, job, *server.flags, *rest],
        input=text,
        capture_output=True,
        check=False,
        timeout=LIMIT,
        env=environment(home),
    )


def environment(home: Path) -> dict[str, str]:
    """Return the environment of somebody without a kubeconfig."""
    return {**os.environ, "HOME": str(home), "KUBECONFIG": str(home / "none"), "XDG_CACHE_HOME": str(home)}


async def greet(remote: Remote) -> None:
    """Print on both streams, and fail."""
    await remote.send(1, b"out \xff\n")
    await remote.send(2, b"err\n")
    await remote.end(7)


async def echo(remote: Remote) -> None:
    """Print what is read, until its end."""
    while data := await remote.read():
        await remote.send(1, data)
    await remote.end()


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
def test_a_command_runs(tmp_path: Path, protocol: str) -> None:
    """Its output byte for byte, its exit code, and its words as they were typed."""
    with serving(ExecServer(greet, (protocol,)), tmp_path) as server:
        done = run(server, "exec", "job", "-i", "0", "--as=ann", "--", "ls", "-l", "a b&c=ä", home=tmp_path)

    assert (7, b"out \xff\n", b"err\n") == (done.returncode, done.stdout, done.stderr)
    request = server.seen[0]
    assert "/api/v1/namespaces/default/pods/job-worker-0/exec" == request.path
    assert ["ls", "-l", "a b&c=ä"] == request.query.getall("command")
    assert {"container": "mpi", "stdout": "true", "stderr": "true"} == {
        key: value for key, value in request.query.items() if key != "command"
    }
    assert ("Bearer secret", "ann") == (request.headers["Authorization"], request.headers["Impersonate-User"])


def test_input_is_passed_on_to_its_end(tmp_path: Path) -> None:
    """More of it than any buffer holds, while the output comes back."""
    text = os.urandom(2 << 20)
    with serving(ExecServer(echo), tmp_path) as server:
        done = run(server, "exec", "job", "--stdin", "--", "cat", home=tmp_path, text=text)

    assert (0, b"") == (done.returncode, done.stderr)
    assert text == done.stdout


@pytest.mark.parametrize(
    "form", [("exec", "job", "-it", "--", "sh"), ("attach", "job")], ids=["exec", "attach"]
)
def test_a_terminal_is_raw_and_has_the_users_size(tmp_path: Path, form: tuple[str, ...]) -> None:
    """Ctrl-C reaches the remote side as a byte, the window's size at the beginning and when it changes."""
    sizes: list[Any] = []

    async def shell(remote: Remote) -> None:
        remote.sizes = sizes
        await remote.send(1, b"$ ")
        while (data := await remote.read()) is not None:
            await remote.send(1, b"<" + data.hex().encode() + b">")
            if data == b"q":
                await remote.end(3)
                return

    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    before = termios.tcgetattr(far)
    with serving(ExecServer(shell), tmp_path) as server:
        command, job, *rest = form
        process = subprocess.Popen(
            [PROGRAM, command, job, *server.flags, *rest],
            stdin=far,
            stdout=far,
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
        )
        with killed_at_the_end(process):
            wait_for(process, near, b"$ ")
            os.write(near, b"\x03")
            wait_for(process, near, b"<03>")
            # Often, and while keys are on their way: neither may disturb the other.
            for columns in range(120, 20, -1):
                resize(near, process, columns, 40)
                os.write(near, b"x")
                wait_for(process, near, b"<78>")
            resize(near, process, 120, 40)
            eventually(lambda: {"Width": 120, "Height": 40} == sizes[-1], "the last size")
            os.write(near, b"q")
            wait_for(process, near, b"<71>")
            _, err = process.communicate(timeout=LIMIT)

    assert (3, before) == (process.returncode, termios.tcgetattr(far))
    assert {"Width": 100, "Height": 30} == sizes[0]
    assert {"Width": 120, "Height": 40} == sizes[-1]
    assert {"tty": "true", "stdin": "true", "stdout": "true", "container": "mpi", "command": "sh"} == dict(
        server.seen[0].query
    )
    greeting = b"Hello! Arena attach the container mpi of instance job-launcher-x\n"
    assert (greeting if command == "attach" else b"") == err
    os.close(near)
    os.close(far)


def resize(terminal: int, process: subprocess.Popen[bytes], columns: int, lines: int) -> None:
    """Change the window's size, and tell the process, as the kernel tells those whose terminal it is."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process.send_signal(signal.SIGWINCH)


@contextmanager
def killed_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave no process behind, also where the test fails."""
    try:
        yield
    finally:
        process.kill()
        process.wait()


def wait_for(process: subprocess.Popen[bytes], terminal: int, wanted: bytes) -> None:
    """Read the terminal until *wanted* has come; fail where the process ends before, or after a limit."""
    text, limit = b"", time.monotonic() + LIMIT
    while wanted not in text:
        # The test itself holds the terminal open, which so has no end when the process does.
        if select.select([terminal], [], [], 0.2)[0]:
            text += os.read(terminal, 1024)
        elif process.poll() is not None:
            pytest.fail(f"it ended before {wanted!r}: {process.communicate()[1].decode()}")
        elif time.monotonic() > limit:
            pytest.fail(f"{wanted!r} did not come within {LIMIT} s, only {text!r}")


async def vanish(remote: Remote) -> None:
    """Drop the connection without a word about the end."""
    await remote.send(1, b"half")


@pytest.mark.parametrize(
    ("args", "server", "code", "message"),
    [
        (("exec", "job", "--", "a"), ExecServer(greet, refusal=403), 1, "error: no exec"),
        (("exec", "job", "--", "a"), ExecServer(vanish), 1, "error: the server did not say how the command ended"),
        (("exec", "job", "-i", "0-1", "--", "a"), ExecServer(greet), 2, "error: --instance: '0-1' names several"),
        (("exec", "job", "-i", "9", "--", "a"), ExecServer(greet), 1, "error: invalid instance name job-worker-9"),
        (("exec", "job", "-i", "1", "--", "a"), ExecServer(greet), 1, "of instance job-worker-1 does not run: Pending"),
        (("exec", "job", "-c", "x", "--", "a"), ExecServer(greet), 1, "error: container x is not valid for pod"),
        (("exec", "job"), ExecServer(greet), 2, "error: COMMAND is missing"),
        (("exec", "job", "--", "\udcff"), ExecServer(greet), 2, "not UTF-8"),
    ],
    ids=["refused", "vanished", "several", "beyond", "pending", "container", "nothing", "bytes"],
)  # fmt: skip
def test_what_cannot_run_is_told(
    tmp_path: Path, args: tuple[str, ...], server: ExecServer, code: int, message: str
) -> None:
    """In one line, with the exit code of its kind."""
    command, job, *rest = args
    with serving(server, tmp_path):
        outcome = inside((command, job, *server.flags, *rest), environment(tmp_path))

    assert code == outcome.code, outcome.err
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def accepted(seen: Seen, *frames: bytes, ever: bytes = b"") -> Reply:
    """Open the websocket, and send *frames* and then *ever* again and again."""
    key = hashlib.sha1(seen.header("Sec-WebSocket-Key").encode() + _WEBSOCKET, usedforsecurity=False)
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += b"Sec-WebSocket-Accept: " + base64.b64encode(key.digest()) + b"\r\n"
    head += b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
    return Reply(raw=chain([head, *frames], repeat(ever)) if ever else [head, *frames])


@contextmanager
def hostile(answer: Callable[[Seen], Reply], folder: Path) -> Iterator[list[str]]:
    """Serve a job whose processes are answered by *answer*; yield the flags that connect with the server."""

    def rule(seen: Seen) -> Reply:
        path = seen.path.partition("?")[0]
        if path.endswith("/exec"):
            return answer(seen)
        pods = {"items": [pod("job-launcher-x", role="launcher")]}
        return Reply(body=json.dumps(pods if path.endswith("/pods") else mpijob("job", workers=2)).encode())

    with serve(folder, rule) as server:
        authority = f"--certificate-authority={server.authority.certificate}"
        yield [f"--server={server.url}", authority, "--token=secret", "--request-timeout=1s"]


def test_credentials_are_not_sent_to_where_a_server_redirects(tmp_path: Path) -> None:
    """The library of the websocket would follow, with the user's token."""
    (tmp_path / "other").mkdir()
    with serve(tmp_path / "other", lambda _: Reply(404), secure=False) as other:
        place = f"ws://127.0.0.1:{other.port}/"
        with hostile(lambda _: Reply(302, b"", {"Location": place}), tmp_path) as flags:
            outcome = inside(("exec", "job", *flags, "--", "a"), environment(tmp_path))

        assert [] == other.seen
    assert (1, 1) == (outcome.code, outcome.err.count("error: "))


@pytest.mark.parametrize(
    "answer",
    [
        lambda seen: accepted(seen, b"\x83\x01x"),
        lambda seen: accepted(seen, b"\x81\x02\x01\xff"),
        lambda seen: accepted(seen, b"\x82\x7f" + b"\x3f" * 8),
        lambda seen: accepted(seen, b"\x82\x7f" + b"\x3f" * 8, ever=b"x" * 2**20),
        lambda seen: accepted(seen, b"\x02\x01\x01", ever=b"\x00\x7f" + (2**20).to_bytes(8) + b"x" * 2**20),
        lambda _: Reply(raw=chain([b"HTTP/1.1 101 "], repeat(b"x" * 65536))),
        lambda _: Reply(raw=chain([b"HTTP/1.1 403 No\r\nContent-Length: 1" + b"0" * 18 + b"\r\n\r\n"], repeat(b"x" * 65536))),
        lambda _: Reply(raw=chain([b"HTTP/1.1 101 Yes\r\nX: "], repeat(b"y")), pace=0.02),
        lambda _: Reply(ending="silence"),
    ],
    ids=["opcode", "text", "half", "message", "fragments", "status", "refusal", "slow", "silence"],
)  # fmt: skip
def test_a_hostile_websocket_is_one_error(tmp_path: Path, answer: Callable[[Seen], Reply]) -> None:
    """Whatever it opens with, and whatever it sends then: bounded in time and in bytes."""
    with hostile(answer, tmp_path) as flags:
        outcome = inside(("exec", "job", *flags, "--", "a"), environment(tmp_path))

    assert (1, 1) == (outcome.code, outcome.err.count("error: ")), outcome.err
    assert "internal error" not in outcome.err


def test_without_a_terminal_there_is_none(tmp_path: Path) -> None:
    """A script may pipe into attach; it reads why there is no prompt."""
    with serving(ExecServer(echo), tmp_path) as server:
        done = run(server, "attach", "job", home=tmp_path, text=b"ls\n")

    assert (0, b"ls\n") == (done.returncode, done.stdout)
    assert b"warning: stdin is not a terminal" in done.stderr
    assert "tty" not in server.seen[0].query
