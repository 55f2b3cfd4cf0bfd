"""Where a log was left: which lines of a resumed stream are new.

The API server resumes at whole seconds, so some lines come twice. The time stamp that the kubelet writes before every
line, and the number of lines that had the last stamp, tell old lines from new ones. For example, after ``01.5 a`` and
``01.5 b`` the stream is resumed from second 1 and brings ``01.2 z``, ``01.5 a``, ``01.5 b``, ``01.5 c``: the first is
older than the last stamp, the next two are skipped as the two that had it, and ``c`` is new. Stamps are RFC 3339 with up
to nine fractional digits.

A line that the container wrote in pieces has a time for each piece, and the kubelet resumes in the middle of it: such
a rest has no stamp, and comes before any line that has one.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")

Moment = tuple[int, int]
"""Whole seconds since 1970 and the nanoseconds beyond them."""


class LogCursor:
    """The last stamp seen in a log, and how many lines had it."""

    def __init__(self) -> None:
        self._last: Moment | None = None
        self._count = 0
        self._skip = 0
        self._is_begun = True

    @property
    def since(self) -> str:
        """The second to resume from, as RFC 3339, empty before the first line."""
        if self._last is None:
            return ""
        return datetime.fromtimestamp(self._last[0], tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def resume(self) -> None:
        """Expect the lines with the last stamp once more."""
        self._skip = self._count
        self._is_begun = self._last is None

    def admit(self, line: bytes) -> tuple[bytes, bytes] | None:
        """Return the stamp and the text of *line* if it is new, else None.

        A line without a stamp is new, unless it is the rest of one at the beginning of a resumed log.
        """
        match = _STAMP.match(line)
        if match is None:
            return (b"", line) if self._is_begun else None
        self._is_begun = True
        moment = _moment(match)
        # The server resumed at the whole second: everything before the last stamp has been printed.
        if self._last is not None and moment < self._last:
            return None
        if moment == self._last:
            # Of the lines with the last stamp, as many are old as were printed.
            if self._skip:
                self._skip -= 1
                return None
            self._count += 1
        else:
            self._last, self._count, self._skip = moment, 1, 0
        return match.group(0).rstrip(), line[match.end() :]


def _moment(match: re.Match[bytes]) -> Moment:
    second, fraction, zone = match.groups()
    return _epoch(second, zone), int((fraction or b"0").ljust(9, b"0"))


@lru_cache(maxsize=256)
def _epoch(second: bytes, zone: bytes) -> int:
    offset = "+00:00" if zone == b"Z" else zone.decode()
    return int(datetime.fromisoformat(second.decode() + offset).timestamp())
