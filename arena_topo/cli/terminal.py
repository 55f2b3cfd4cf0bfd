"""Messages next to the data: notices, warnings and errors, all on stderr."""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from arena_topo.model.text.words import printable, printable_lines

if TYPE_CHECKING:
    from arena_topo.output.text import Fitted

_STYLES = {"error": {"fg": "red", "bold": True}, "warning": {"fg": "yellow"}, "hint": {"fg": "cyan"}}


class Level(IntEnum):
    """Arena's levels of messages."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3


_PERIOD = 2.0
"""Seconds between two looks at what changes."""
_OF_STYLE = {"warning": Level.WARN, "error": Level.ERROR, "hint": Level.ERROR}
_shown = Level.INFO
_is_drawn = False


def show_from(level: Level) -> None:
    """Print messages of *level* and above from now on; errors are always printed."""
    global _shown  # noqa: PLW0603  # one process has one stderr
    _shown = level


def say(text: str, *, style: str = "") -> None:
    """Print *text* on stderr; only its first word is coloured, and only on a terminal that wants colour.

    What others wrote into it can be seen, and does nothing; line breaks stay. On a terminal, lines that are
    too wide for it break between words.
    """
    text = printable_lines(text)
    if _OF_STYLE.get(style, Level.INFO) < _shown:
        return
    erase()
    if width := columns(sys.stderr):
        text = broken_between_words(text, width)
    colour = wants_colour(sys.stderr)
    if style and colour:
        word, colon, rest = text.partition(":")
        text = click.style(word + colon, **_STYLES[style]) + rest  # type: ignore[arg-type]  # one table for all
    # By default click asks only the terminal, and strips the colour that FORCE_COLOR demands.
    click.echo(text, err=True, color=colour)


def warn(text: str) -> None:
    """Print a warning on stderr, on one line."""
    say(f"warning: {printable(text)}", style="warning")


def wants_colour(stream: TextIO) -> bool:
    """Whether *stream* may be coloured: ``NO_COLOR``, then ``FORCE_COLOR``, then whether it is a terminal."""
    # Any value counts, even 0 (no-color.org). Editors that show no escape codes set TERM=dumb.
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


_GAP = r"\S {2,}(?=\S)"
_LEAST_ROOM = 24
"""Columns of a terminal that a sentence has next to its name."""
_MARGIN = r"(?:\x1b\[[0-9;]*m| )*"

_STATUS_COLOURS = {
    "RUNNING": "green",
    "Running": "green",
    "SUCCEEDED": "cyan",
    "Completed": "cyan",
    "PENDING": "yellow",
    "QUEUING": "yellow",
    "SUSPENDED": "yellow",
    "Pending": "yellow",
    "ContainerCreating": "yellow",
    "SchedulingGated": "yellow",
    "Terminating": "yellow",
    "Warning": "yellow",
    "FAILED": "red",
    "Error": "red",
    "OOMKilled": "red",
    "Failed": "red",
    "Evicted": "red",
    "CrashLoopBackOff": "red",
    "ImagePullBackOff": "red",
    "ErrImagePull": "red",
    "Ready": "green",
    "Ready,SchedulingDisabled": "yellow",
    "NotReady": "red",
    "NotReady,SchedulingDisabled": "red",
    "ok": "green",
    "unknown": "yellow",
    "problem": "red",
}
"""Words of jobs, pods, events, nodes and findings that fill a cell."""


def status_paint() -> Callable[[str], str] | None:
    """Return what colours the words of a status on stdout, None where stdout is to be plain."""
    if not wants_colour(sys.stdout):
        return None
    return lambda cell: click.style(cell, fg=_STATUS_COLOURS[cell]) if cell in _STATUS_COLOURS else cell


def print_out(text: str) -> None:
    """Print *text*, which ends its last line itself, on stdout, with its colours where they are wanted."""
    click.echo(text, nl=False, color=wants_colour(sys.stdout))


def print_page(text: str) -> None:
    """Print *text* as ``print_out`` does; a terminal breaks sentences that are too wide between words."""
    if width := columns():
        text = broken_between_words(text, width)
    print_out(text)


def print_document(text: str, form: str) -> None:
    """Print *text*, which is in the *form* that ``-o`` names: ``text`` as a page, anything else as it is."""
    (print_page if form == "text" else print_out)(text)


def columns(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal at *stream*, by default stdout; None if programs read it, uncut."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    # As programs do, the variable before the terminal; some terminals say 0.
    chosen = os.environ.get("COLUMNS", "")
    with suppress(OSError):
        return (
            int(chosen)
            if chosen.isdecimal() and int(chosen)
            else os.get_terminal_size(stream.fileno()).columns or 80
        )
    return 80


def print_table(fitted: "Fitted", more: str = "-o wide shows them") -> None:
    """Print a table in the colours of its states, and on stderr which of its columns are hidden."""
    from arena_topo.output.text import tabulate

    print_out(tabulate(fitted.rows, paint=status_paint()))
    if note := fitted.note(more):
        say(note)


def broken_between_words(text: str, width: int) -> str:
    """Return *text* with its sentences broken to *width* columns; rows of tables stay whole.

    At 20 columns ``  - the links lie idle`` becomes ``  - the links lie`` and ``    idle``. At 40
    the sentence of ``evidence:  the schema of MPIJob v2beta1 in /openapi/v3`` continues below its first word.
    """
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width))


def _broken(line: str, width: int) -> Iterator[str]:
    plain = click.unstyle(line)
    gaps = [gap.end() for gap in re.finditer(_GAP, plain)]
    # Only a row of a table has blanks between words at two places; at one place they part a name from its
    # sentence.
    if len(plain) <= width or len(gaps) > 1:
        yield line
        return
    # Codes may stand before the blanks that a line begins with.
    margin = re.match(_MARGIN, line)[0]  # type: ignore[index]  # it matches nothing, too
    hanging = len(click.unstyle(margin)) + 2 * plain.lstrip(" ").startswith("- ")
    if gaps and width - gaps[0] >= _LEAST_ROOM:
        hanging = gaps[0]
    head, *words = _words(line.removeprefix(margin))
    part = margin + head
    for word in words:
        if len(click.unstyle(part)) + 1 + len(click.unstyle(word)) > width:
            yield part
            part = " " * hanging + word
        else:
            part += f" {word}"
    yield part


def _words(text: str) -> Iterator[str]:
    """Yield the words of *text*; a command between backticks is one, so that it can be copied whole."""
    begun: list[str] = []
    is_quoted = False
    for word in text.split(" "):
        begun.append(word)
        is_quoted ^= word.count("`") % 2 == 1
        if not is_quoted:
            yield " ".join(begun)
            begun = []
    # A backtick that nothing closes quotes nothing.
    yield from begun


_QUIET = 2.0
"""Seconds of waiting that nobody wonders about."""

_LONG = 10.0
"""Seconds of a pause that is counted down."""


class Elapsed:
    """Passes the time between two looks, and shows on a terminal how much of it has passed.

    For example ``... 1m05s``, with *limit* seconds ``... 1m05s of 2m``, in a long pause ``... 1m55s left``.
    What was drawn is gone before anything else is printed. *clock* and *sleep* are those of ``time``.
    """

    def __init__(
        self,
        limit: float = 0.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limit, self._clock, self._sleep = limit, clock, sleep
        self._began: float | None = None

    def sleep(self, seconds: float) -> None:
        """Sleep for some *seconds*; only the main thread draws."""
        # The terminal has one line for it: what one of many logs waits for would overwrite the others.
        if threading.current_thread() is not threading.main_thread():
            self._sleep(seconds)
            return
        end = self._clock() + seconds
        try:
            while (left := end - self._clock()) > 0:
                self.show(left if seconds > _LONG else 0.0)
                self._sleep(min(left, 1.0))
        finally:
            erase()

    def show(self, left: float = 0.0) -> None:
        """Draw how much time has passed, or how much is *left* of a pause; ``erase`` takes it away."""
        if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or _shown > Level.INFO:
            return
        from arena_topo.model.text.words import written_duration

        now = self._clock()
        self._began = now if self._began is None else self._began
        passed = now - self._began
        of = f" of {written_duration(self._limit)}" if self._limit else ""
        text = f"{written_duration(round(left))} left" if left else f"{written_duration(round(passed))}{of}"
        if left or passed >= _QUIET:
            _draw(f"... {text}")


def _draw(text: str) -> None:
    global _is_drawn  # noqa: PLW0603  # one process has one stderr
    _is_drawn = bool(text)
    # From the beginning of the line, the rest of which is erased.
    sys.stderr.write(f"\r{text}\x1b[K")
    sys.stderr.flush()


def erase() -> None:
    """Take away what ``Elapsed`` has drawn."""
    if _is_drawn:
        _draw("")


def shown_again(show: Callable[[], None]) -> NoReturn:
    """Call *show* every two seconds, as Arena does, until Ctrl-C."""
    while True:
        # On a terminal each one replaces the last; elsewhere click does nothing.
        click.clear()
        show()
        time.sleep(_PERIOD)
