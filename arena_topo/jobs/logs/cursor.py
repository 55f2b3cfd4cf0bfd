"""Where a log was left: which lines of a resumed stream are new.

Within one stream every line is new, whatever its stamp: the writers of stdout and stderr race, and clocks step back.
Only the beginning of a resumed stream repeats lines. The API server resumes at whole seconds, and ``since`` is one second
before that of the last line, because a line that comes after it may have a slightly older stamp. For example, after
``02.5 a`` and ``02.5 b`` the stream is resumed from second 1 and brings ``01.2 z``, ``02.5 a``, ``02.5 b``, ``02.5 c``: the first
is older than all that was seen, the next two were seen, and with the second the overlap is over: ``c`` is new.

Seen lines are known by stamp and hash of their text, the last few thousand of them; of older ones only the newest stamp is
kept. The overlap ends with the last line that was seen, or with a line newer than all that was seen, where the kubelet
has rotated the seen ones away. Stamps are RFC 3339 with up to nine fractional digits.

A line that the container wrote in pieces has a time for each piece, and the kubelet resumes in the middle of it: such
a rest has no stamp, and comes before any line that has one. A line that is too long to be read at once is admitted
piece by piece, and each piece is known like a line.
"""

import re
from collections import Counter, deque
from datetime import UTC, datetime
from functools import lru_cache

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")

_REMEMBERED = 4096
"""Lines; what a stream brings twice is the output of one or two seconds."""

_MARGIN = 1
"""Seconds by which a line may be older than the one before it and still be resumed."""

Moment = tuple[int, int]
"""Whole seconds since 1970 and the nanoseconds beyond them."""

_Print = tuple[Moment, int]
"""What a line is known by: its stamp, and the hash of its text."""


class LogCursor:
    """The lines that were seen last in a log; one that is not *whole* had lines before its first one, as with --tail."""

    def __init__(self, *, whole: bool = True) -> None:
        self._is_whole = whole
        self._recent: deque[_Print] = deque(maxlen=_REMEMBERED)
        self._forgotten: Moment | None = None
        self._overlap: Counter[_Print] = Counter()
        self._last: _Print | None = None
        self._newest: Moment | None = None
        self._is_found = False
        self._is_begun = True
        self._unended: tuple[Moment, int] | None = None

    @property
    def since(self) -> str:
        """The second to resume from, as RFC 3339, empty before the first line."""
        if not self._recent:
            return ""
        second = self._recent[-1][0][0] - _MARGIN
        return datetime.fromtimestamp(second, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def resume(self) -> None:
        """Expect the lines that were seen last once more."""
        self._overlap = Counter(self._recent)
        self._last = self._recent[-1] if self._recent else None
        self._newest = max((moment for moment, _ in self._recent), default=None)
        self._is_found = False
        self._is_begun = self._last is None
        self._unended = None

    def admit(self, line: bytes) -> tuple[bytes, bytes] | None:
        """Return the stamp and the text of *line* if it is new, else None.

        A line without an end is continued by the next one, which then has no stamp. A line without a stamp is new,
        unless it is the rest of one at the beginning of a resumed log.
        """
        if self._unended is not None:
            (moment, index), stamp, text = self._unended, b"", line
        elif (match := _STAMP.match(line)) and (read := _moment(match)):
            moment, index, stamp, text = read, 0, match.group(0).rstrip(), line[match.end() :]
        else:
            return (b"", line) if self._is_begun else None
        self._is_begun = True
        self._unended = None if line.endswith(b"\n") else (moment, index + 1)
        if self._was_seen(print_ := (moment, hash((index, text)))):
            return None
        self._remember(print_)
        return stamp, text

    def _was_seen(self, line: _Print) -> bool:
        """Whether *line* belongs to what a resumed stream repeats."""
        if not self._overlap:
            return False
        if self._overlap[line]:
            self._overlap[line] -= 1
            self._is_found = True
            # Of equal lines with one stamp, as many are old as were seen.
            if line == self._last and not self._overlap[line]:
                self._overlap.clear()
            return True
        # Before the first line that is remembered come those that are not any more, and those before the user's --tail.
        if not self._is_found and self._forgotten is not None and line[0] <= self._forgotten:
            return True
        if self._newest is not None and line[0] > self._newest:
            self._overlap.clear()
        return False

    def _remember(self, line: _Print) -> None:
        if not self._recent and not self._is_whole:
            self._forgotten = line[0]
        elif len(self._recent) == _REMEMBERED:
            self._forgotten = max(self._forgotten or line[0], self._recent[0][0])
        self._recent.append(line)


def _moment(match: re.Match[bytes]) -> Moment | None:
    """Return the moment of a stamp, None for what only looks like one, such as the 31st of February."""
    second, fraction, zone = match.groups()
    try:
        return _epoch(second, zone), int((fraction or b"0").ljust(9, b"0"))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _epoch(second: bytes, zone: bytes) -> int:
    offset = "+00:00" if zone == b"Z" else zone.decode()
    return int(datetime.fromisoformat(second.decode() + offset).timestamp())
