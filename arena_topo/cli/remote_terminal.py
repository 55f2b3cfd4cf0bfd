"""A command in a container at the user's terminal: raw mode, the window's size, input, output, and the exit code."""

import os
import select
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
        with _terminal(raw=tty) as resized:
            if tty:
                _tell_size(process)
            if stdin or tty:
                # A thread of its own: a process that neither reads nor is read would else hold both ends up.
                own = (process, sys.stdin.fileno() if stdin else None, resized)
                threading.Thread(target=_pass_input, args=own, daemon=True).start()
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


def _pass_input(process: "RemoteProcess", typed: int | None, resized: int | None) -> None:
    """Pass on what comes from *typed* and the window's size when *resized* says so: one thread sends everything."""
    watched = [handle for handle in (typed, resized) if handle is not None]
    # The process may have ended meanwhile, which the other end reports.
    with suppress(ConnectionFailed, OSError):
        while watched:
            ready, _, _ = select.select(watched, [], [])
            if resized is not None and resized in ready:
                # Its end is that of the terminal's use.
                if not os.read(resized, _CHUNK):
                    return
                _tell_size(process)
            if typed is None or typed not in ready:
                continue
            if data := os.read(typed, _CHUNK):
                process.write(data)
            else:
                process.end_input()
                watched.remove(typed)


def _tell_size(process: "RemoteProcess") -> None:
    with suppress(ConnectionFailed, OSError):
        size = os.get_terminal_size(sys.stdin.fileno())
        process.resize(size.columns, size.lines)


@contextmanager
def _terminal(*, raw: bool) -> Iterator[int | None]:
    """Hand every key to the remote terminal, Ctrl-C too; yield what can be read after the window has changed its size."""
    if not raw:
        yield None
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def resized(_: int, __: FrameType | None) -> None:
        # A handler interrupts whatever runs, also somebody who sends: it only leaves word.
        with suppress(BlockingIOError):
            os.write(writer, b"\0")

    handler = signal.signal(signal.SIGWINCH, resized)
    try:
        tty.setraw(handle)
        yield reader
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
        os.close(writer)
