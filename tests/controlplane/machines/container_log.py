"""The log of one container as a kubelet keeps it, written by a test's script."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

_NANO = 10**9

Ending = Literal["end", "drop", "close"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line, or the beginning of one: when it was written (ns since the epoch) and its bytes."""

    nanoseconds: int
    text: bytes

    def rendered(self, *, timestamps: bool) -> bytes:
        """Return the bytes a reader gets; a kubelet stamps lines with nine digits of a second."""
        if not timestamps:
            return self.text
        seconds, rest = divmod(self.nanoseconds, _NANO)
        stamp = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z "
        return stamp.encode() + self.text


@dataclass(frozen=True, slots=True)
class Request:
    """What a reader asked for: the parameters of ``containerLogs``; ``since`` in ns since the epoch."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: int | None = None


class ContainerLog:
    """Lines that readers get, and how their streams end.

    A stream that follows ends by ``end`` (the container has terminated), by ``close`` (a clean end of the
    stream though the container runs on) or by ``drop`` (the connection is torn). ``close`` and ``drop``
    concern the streams open at that moment; ``end`` concerns later readers too.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: list[Entry] = []
        self._file_begins = 0
        self._ended = False
        self._cuts: list[Ending] = []
        self._readers = 0
        self.refusal = ""

    def write(self, *lines: str, at: datetime | None = None) -> None:
        """Append whole lines, written now or ``at`` a time."""
        for line in lines:
            self._append(f"{line}\n".encode(), at)

    def write_partial(self, text: str) -> None:
        """Append the beginning of a line."""
        self._append(text.encode(), None)

    def write_bytes(self, text: bytes) -> None:
        """Append a line, or the beginning of one, as a process wrote it."""
        self._append(text, None)

    def end(self) -> None:
        """Let all streams finish after the last line: the container has terminated."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Finish the open streams cleanly though the container runs on."""
        self._cut("close")

    def drop(self) -> None:
        """Tear the connections of the open streams."""
        self._cut("drop")

    def rotate(self) -> None:
        """Begin a new file: later readers no longer get the old lines, open streams continue."""
        with self._changed:
            self._file_begins = len(self._entries)

    def wait_for_readers(self, count: int = 1, timeout: float = 60) -> None:
        """Return once at least ``count`` streams have been opened since the beginning."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._readers >= count, timeout):
                raise TimeoutError(
                    f"{self._readers} of {count} log streams were opened within {timeout:.0f} s"
                )

    def read(self, request: Request) -> Iterator[bytes | Ending]:
        """Yield what a reader gets, as it comes; the last item says how the stream ends."""
        with self._changed:
            self._readers += 1
            self._changed.notify_all()
            position, cuts = self._start(request), len(self._cuts)
        mid_line = False
        while True:
            with self._changed:
                if request.follow:
                    self._changed.wait_for(lambda: self._has_news(position, cuts))  # noqa: B023  # called at once
                entries, ended = self._entries[position:], self._ended
                cut = self._cuts[cuts] if len(self._cuts) > cuts else None
            position += len(entries)
            for entry in entries:
                if request.since is None or entry.nanoseconds >= request.since:
                    yield entry.rendered(timestamps=request.timestamps and not mid_line)
                mid_line = not entry.text.endswith(b"\n")
            if cut is not None or ended or not request.follow:
                yield cut or "end"
                return

    def _has_news(self, position: int, cuts: int) -> bool:
        return self._ended or len(self._entries) > position or len(self._cuts) > cuts

    def _start(self, request: Request) -> int:
        """Find the first entry of the newest file that ``tail`` allows."""
        if request.tail is None:
            return self._file_begins
        position, lines = len(self._entries), 0
        while position > self._file_begins:
            ends_line = self._entries[position - 1].text.endswith(b"\n")
            if lines == request.tail and ends_line:
                break
            lines += ends_line or position == len(self._entries)
            position -= 1
        return position

    def _append(self, text: bytes, at: datetime | None) -> None:
        nanoseconds = time.time_ns() if at is None else round(at.timestamp() * 10**6) * 1000
        with self._changed:
            self._entries.append(Entry(nanoseconds, text))
            self._changed.notify_all()

    def _cut(self, how: Ending) -> None:
        with self._changed:
            self._cuts.append(how)
            self._changed.notify_all()
