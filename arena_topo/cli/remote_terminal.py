"""A command in a container at the user's terminal: raw mode, the window's size, input, output, and the exit code."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from arena_topo.errors import ConnectionFailed

if TYPE_CHECKING:
    from arena_topo.kube.remote.process import RemoteProcess

_CHUNK = 32 * 1024


def run_to_the_end(process: "RemoteProcess", *, stdin: bool, tty: bool) -> int:
    """Connect the user's streams with *process* until it has ended, and return its exit code."""
    from arena_topo.kube.remote.process import Channel

    try:
        with _terminal(process, raw=tty):
            if stdin:
                # A thread of its own: a process that neither reads nor is read would else hold both ends up.
                threading.Thread(target=_pass_input, args=(process,), daemon=True).start()
            for channel, data in process.output():
                stream = sys.stderr.buffer if channel is Channel.STDERR else sys.stdout.buffer
                stream.write(data)
                stream.flush()
        return process.exit_code()
    finally:
        process.close()


def is_terminal() -> bool:
    """Whether stdin is a terminal, which raw mode needs."""
    return os.isatty(sys.stdin.fileno())


def _pass_input(process: "RemoteProcess") -> None:
    # The process may have ended meanwhile, which the other end tells.
    with suppress(ConnectionFailed, OSError):
        while data := os.read(sys.stdin.fileno(), _CHUNK):
            process.write(data)
        process.end_input()


@contextmanager
def _terminal(process: "RemoteProcess", *, raw: bool) -> Iterator[None]:
    """Hand every key to the remote terminal, Ctrl-C too, and keep its size as the user's window has it."""
    if not raw:
        yield
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)

    def resize(_: int = 0, __: FrameType | None = None) -> None:
        with suppress(ConnectionFailed, OSError):
            size = os.get_terminal_size(handle)
            process.resize(size.columns, size.lines)

    handler = signal.signal(signal.SIGWINCH, resize)
    try:
        tty.setraw(handle)
        resize()
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
