"""Choosing lines by regular expressions, each in bounded time.

Python's expressions backtrack: ``(a+)+$`` on thirty letters takes minutes. While one is matched, a timer of the process's
CPU time runs, so that a laptop that sleeps in between is no excuse, and the user who wrote such an expression reads which.
"""

import re
import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from arena_topo.errors import UsageError
from arena_topo.model.log_line import LogLine

_LONGEST = 1.0
"""Seconds of CPU time for all expressions on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """Lines are wanted that any of *include* matches, or all without any, and none of *exclude*."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()

    def wanted(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Yield those of *lines* that are wanted, in the main thread. Raises ``UsageError`` at one that takes too long."""
        if not self.include and not self.exclude:
            yield from lines
            return
        with _timer():
            for line in lines:
                if self._wants(line):
                    yield line

    def _wants(self, line: LogLine) -> bool:
        # Logs may be of any encoding; what is no UTF-8 matches no letter.
        text = line.text.rstrip(b"\r\n").decode(errors="surrogateescape")
        signal.setitimer(signal.ITIMER_VIRTUAL, _LONGEST)
        try:
            return (not self.include or any(each.search(text) for each in self.include)) and not any(
                each.search(text) for each in self.exclude
            )
        except _TooSlowError:
            raise UsageError(
                f"--include and --exclude took more than {_LONGEST:g} s on one line of {line.instance} "
                f"({len(text)} characters)",
                hint="an expression with nested repetitions, such as (a+)+, backtracks: write it without",
            ) from None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def compiled(flag: str, patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Return the compiled *patterns* of *flag*. Raises ``UsageError``."""
    return tuple(_compiled(flag, pattern) for pattern in patterns)


def _compiled(flag: str, pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # What a later Python may read differently is of no use to the user who types it today.
            warnings.simplefilter("ignore")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"{flag}: {pattern[:80]!r} is not a regular expression: {error}",
            hint="it is read as Python's re does; quote it for the shell",
        ) from error


class _TooSlowError(Exception):
    """The time for one line is over."""


@contextmanager
def _timer() -> Iterator[None]:
    """Let the timer's signal interrupt a match."""

    def stop(_: int, __: FrameType | None) -> None:
        raise _TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)
