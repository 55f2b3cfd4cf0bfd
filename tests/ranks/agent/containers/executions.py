"""Processes that users start in a container: ``exec``,
with pipes or with a terminal of the container's own.
"""

import contextlib
import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from tests.controlplane.machines.remote_streams import Channel, RemoteStreams
from tests.ranks.agent.containers.container import Container, children_of

_CHUNK = 1 << 16


def execute(container: Container, query: Mapping[str, Sequence[str]], streams: RemoteStreams) -> None:
    """Carry out the command of *query* in *container*, and tell its end.

    Its parameters are those of ``getExecRequestParams`` in k8s.io/kubernetes/pkg/kubelet/server.
    """
    words = query.get("command", ())
    if "tty" in query:
        _with_terminal(container, words, streams)
    else:
        _with_pipes(container, words, streams, reads="input" in query)


def _with_pipes(container: Container, words: Sequence[str], streams: RemoteStreams, *, reads: bool) -> None:
    process = subprocess.Popen(
        container.inside(words),
        stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    _in_thread(_pass_input, streams, process.stdin, process)
    errors = _in_thread(_pass_output, process.stderr, Channel.STDERR, streams)
    _pass_output(process.stdout, Channel.STDOUT, streams)
    errors.join()
    streams.end(_code(process.wait()))


def _with_terminal(container: Container, words: Sequence[str], streams: RemoteStreams) -> None:
    near, far = container.terminal()
    process = subprocess.Popen(container.inside(words, terminal=True), stdin=far, stdout=far, stderr=far)
    os.close(far)
    with os.fdopen(near, "rb", buffering=0) as terminal:
        _in_thread(_pass_input, streams, os.fdopen(os.dup(near), "wb", buffering=0), process)
        _pass_output(terminal, Channel.STDOUT, streams)
    streams.end(_code(process.wait()))


def _pass_input(streams: RemoteStreams, stdin: IO[bytes] | None, process: subprocess.Popen[bytes]) -> None:
    for channel, data in streams.messages():
        # A process need not read to the end, and the client may send more when it has ended.
        with contextlib.suppress(OSError, ValueError):
            if stdin is not None and channel is Channel.STDIN:
                _write(stdin, data)
            elif stdin is not None and channel is Channel.CLOSE and data == bytes([Channel.STDIN]):
                stdin.close()
            elif stdin is not None and channel is Channel.RESIZE:
                size = json.loads(data)
                window = struct.pack("HHHH", size["Height"], size["Width"], 0, 0)
                fcntl.ioctl(stdin, termios.TIOCSWINSZ, window)
    # A runtime kills what its client has left.
    for pid in children_of(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if stdin is not None:
        stdin.close()


def _write(stdin: IO[bytes], data: bytes) -> None:
    while data:
        data = data[stdin.write(data) :]


def _pass_output(source: IO[bytes], channel: Channel, streams: RemoteStreams) -> None:
    # A terminal whose processes have ended answers with an error.
    with contextlib.suppress(OSError):
        while data := source.read(_CHUNK):
            streams.send(channel, data)


def _in_thread(target: Callable[..., None], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def _code(status: int) -> int:
    """Return the exit code as a shell says it: 128 + n for signal n."""
    return 128 - status if status < 0 else status
