"""The pages of the live view that stand above its tables: texts to read, and a log that is followed."""

import threading
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import RichLog, Static

from arena_topo.errors import ArenaTopoError
from arena_topo.model.notation.printable import printable

_MOST_LINES = 5000
"""Lines of a log that can be scrolled back to."""

_LONGEST_LINE = 4000
_BATCH = 500
_PERIOD = 0.2
"""Seconds between two looks at what arrived: a job may print faster than a terminal shows."""

SCROLLING: list[BindingType] = [
    ("j,down", "scroll_down"),
    ("k,up", "scroll_up"),
    ("g,home", "scroll_home"),
    ("G,end", "scroll_end"),
    ("ctrl+d,pagedown,space", "page_down"),
    ("ctrl+u,pageup", "page_up"),
]


class Words(VerticalScroll, inherit_bindings=False):
    """A text that is scrolled as in less."""

    BINDINGS = SCROLLING


class LogLines(RichLog, inherit_bindings=False):
    """The lines of a log, which are scrolled as in less."""

    BINDINGS = SCROLLING


class Page(Screen[None]):
    """A page with a title; Esc and q leave it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q", "leave"),
    ]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = printable(title)

    def compose(self) -> ComposeResult:
        """Lay out the title, the content and the keys."""
        yield Static(Text(self._title, style="bold"), classes="line title")
        yield self.content()
        yield Static(Text("esc back  j/k scroll  g/G top and end"), classes="line keys")

    def content(self) -> Words | LogLines:
        """Return what the page shows."""
        raise NotImplementedError

    def action_leave(self) -> None:
        """Go back to the tables."""
        self.dismiss()


class TextPage(Page):
    """A text, which *read* returns in the background: the server may take its time."""

    def __init__(self, title: str, read: Callable[[], Text]) -> None:
        super().__init__(title)
        self._read = read

    def content(self) -> Words:
        """Return the text's place."""
        return Words(Static(Text("..."), id="words"))

    def on_mount(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._fill, daemon=True).start()

    def _fill(self) -> None:
        try:
            text = self._read()
        except ArenaTopoError as error:
            text = refusal(error)
        # The page may be left meanwhile.
        if self.is_running:
            self.app.call_later(self._show, text)

    def _show(self, text: Text) -> None:
        if self.is_attached:
            self.query_one("#words", Static).update(text)


class LogPage(Page):
    """The log of a job as it comes; *lines* yields it, and passes what it waits for to the function that it is given."""

    def __init__(self, title: str, lines: Callable[[Callable[[str], None]], Iterator[bytes]]) -> None:
        super().__init__(title)
        self._lines = lines
        # What is not shown yet is not read either.
        self._arrived: Queue[Text] = Queue(_BATCH)
        self._is_left = threading.Event()

    def content(self) -> LogLines:
        """Return the place of the lines."""
        return LogLines(max_lines=_MOST_LINES, wrap=True, auto_scroll=True)

    def on_mount(self) -> None:
        """Begin to follow."""
        self.set_interval(_PERIOD, self._show)
        threading.Thread(target=self._follow, daemon=True).start()

    def on_unmount(self) -> None:
        """Let the log go with its next line."""
        self._is_left.set()

    def _follow(self) -> None:
        try:
            for line in self._lines(lambda words: self._put(Text(printable(words), style="dim"))):
                cut = line[:_LONGEST_LINE].rstrip(b"\r\n").decode(errors="replace")
                self._put(Text(printable(cut.expandtabs())))
                if self._is_left.is_set():
                    return
        except ArenaTopoError as error:
            self._put(refusal(error))
        else:
            self._put(Text("the log has ended", style="dim"))

    def _put(self, line: Text) -> None:
        while not self._is_left.is_set():
            try:
                self._arrived.put(line, timeout=_PERIOD)
            except Full:
                continue
            return

    def _show(self) -> None:
        log = self.query_one(LogLines)
        # Whoever has scrolled back reads there.
        follows = log.is_vertical_scroll_end
        for _ in range(_BATCH):
            try:
                log.write(self._arrived.get_nowait(), scroll_end=follows)
            except Empty:
                return


def refusal(error: ArenaTopoError) -> Text:
    """Return what went wrong, and what to do about it."""
    text = Text(f"error: {printable(error.message)}", style="red")
    return text.append(f"\nhint: {printable(error.hint)}", style="cyan") if error.hint else text
