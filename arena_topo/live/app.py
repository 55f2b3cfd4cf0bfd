"""The screen of ``top --watch``, on textual: four tables that follow the cluster, and keys as in k9s.

The cluster is read in a thread of its own, which may wait for a server that does not answer: the keys work
meanwhile. On wide terminals the four tables stand side by side, on narrow ones one at a time.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, Full, Queue
from typing import ClassVar, Protocol

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Input, RichLog, Static

from arena_topo.errors import ArenaTopoError, ExitCode
from arena_topo.live.rows import TABLES, Row, Table, Zoom, chosen_rows, fitting_columns, narrowed, summary
from arena_topo.model.reports import JobKey, Overview
from arena_topo.model.text.words import printable
from arena_topo.output.text import Line

# The pages of the live view that stand above its tables: texts to read, and a log that is followed.

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
    """The log of a job as it comes; *lines* yields it, and reports what it waits for to its argument."""

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
        # Anyone who has scrolled back reads there.
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


WIDE = 100
"""Columns from which on the tables stand side by side."""

_PAUSE = 1.0
"""Seconds between two readings at the least, however much changes."""

_RETRY = 5.0
"""Seconds after which a server that did not answer is asked again."""

_HELP = """\
1 2 3 4, tab     cluster, jobs, queue, links
j k, arrows      down and up; g and G to the ends, ctrl-d and ctrl-u by pages
enter            describe the job, look into the domain, show the node or the link
esc              back: out of the domain, the filter, the page
l                follow the log of the job
/                filter all tables by a text; esc takes it away
s                sort the table by its next order
0                the jobs of all namespaces
:                go to cluster, jobs, queue, links; ns NAME for one namespace; q
q, ctrl-c        quit

A node's mark: □ its GPUs are free, ▁ to ▇ some are used, ■ all are, x it is cordoned, ! it is not ready.
A GPU's mark: □ free, ■ used, ! unhealthy.
BUSBW is predicted, in one direction; links are those of planned places, or else of the nodes where pods run.
"""


class Source(Protocol):
    """Where the view has its data from. Every method may wait, and raises ``ArenaTopoError``."""

    def look(self) -> Overview:
        """Return everything as it is now."""

    def wait(self) -> None:
        """Return when it is worth looking again."""

    def describe(self, job: JobKey) -> str:
        """Return all about a job, with a terminal's codes."""

    def node(self, name: str) -> str:
        """Return all about a node, with a terminal's codes."""

    def log(self, job: JobKey, notify: Callable[[str], None]) -> Iterator[bytes]:
        """Yield the log of a job as it comes; *notify* hears what it waits for."""


class Rows(DataTable[Text]):
    """A table whose rows are walked with vi's keys too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("j", "cursor_down"),
        ("k", "cursor_up"),
        ("g,home", "scroll_top"),
        ("G,end", "scroll_bottom"),
        ("ctrl+d", "page_down"),
        ("ctrl+u", "page_up"),
    ]


class Pane(Vertical):
    """One of the four tables, with its title."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(id=name)
        self.number = number
        self.order = 0
        self._shown: tuple[Table, Sequence[Row], Sequence[tuple[int, int]]] | None = None

    def compose(self) -> ComposeResult:
        """Lay out the title above the rows."""
        yield Static(classes="line title")
        yield Rows(cursor_type="row", zebra_stripes=False)
        yield Static(classes="rest")

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        rows = self._shown[1] if self._shown else ()
        place = self.query_one(Rows).cursor_row
        return rows[place] if 0 <= place < len(rows) else None

    def show(self, table: Table, wanted: str) -> None:
        """Show the rows of *table* that have the text *wanted*, with the cursor on the row that it was on."""
        rows = chosen_rows(table, order=self.order, wanted=wanted)
        widget = self.query_one(Rows)
        columns = fitting_columns(table, rows, max(self.size.width - 2, 1))
        order = table.orders[self.order % len(table.orders)]
        title = Text(f"{self.number} {printable(table.title)}", style="bold")
        title.append(f"  {len(rows)}" + (f", sorted by {order}" if order else ""), style="dim")
        self.query_one(".title", Static).update(title)
        if self._shown == (table, rows, columns):
            return
        before, at = self.row, widget.scroll_offset.y
        self._shown = table, rows, columns
        widget.clear(columns=True)
        for place, width in columns:
            widget.add_column(Text(table.columns[place].heading), width=width)
        for row in rows:
            widget.add_row(*(_cell(row.cells[place], width) for place, width in columns))
        # What somebody looks at stays where it is, though rows come and go above it.
        abouts = [row.about for row in rows]
        if before and before.about in abouts:
            widget.move_cursor(row=abouts.index(before.about), scroll=False)
            widget.scroll_to(y=at, animate=False)
        self.on_data_table_row_highlighted()

    def on_data_table_row_highlighted(self) -> None:
        """Show in full what has no room in the row under the cursor."""
        row, rest = self.row, self.query_one(".rest", Static)
        columns = dict(self._shown[2]) if self._shown else {}
        cut = [_line(cell) for place, cell in enumerate(row.cells) if place in columns] if row else []
        words = [text for text, width in zip(cut, columns.values(), strict=False) if text.cell_len > width]
        rest.display = bool(words)
        rest.update(Text(" ").join(words))


def _cell(cell: Line, width: int) -> Text:
    text = _line(cell)
    text.truncate(width, overflow="ellipsis")
    return text


def _line(line: Line) -> Text:
    return Text.assemble(*((span.text, span.style) for span in line))


@dataclass
class Seen(Message):
    """The cluster was read, or could not be."""

    overview: Overview | None
    error: ArenaTopoError | None = None


class Tables(Screen[None]):
    """The four tables, with a line that sums up the cluster above them and the prompt and the keys below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "app.quit"),
        ("escape", "back"),
        ("question_mark", "help"),
        ("slash", "ask('/')"),
        ("colon", "ask(':')"),
        ("s", "sort"),
        ("l", "log"),
        ("0", "all_namespaces"),
        ("tab", "next(1)"),
        ("shift+tab", "next(-1)"),
        *((str(number), f"go('{name}')") for number, name in enumerate(TABLES, 1)),
    ]

    def __init__(
        self, source: Source, fail: Callable[[Exception], None], *, first: str, cluster: str
    ) -> None:
        super().__init__()
        self._source, self._fail, self._current, self._cluster = source, fail, first, cluster
        self._overview: Overview | None = None
        self._seen_at: datetime | None = None
        self._zoom: Zoom = ()
        self._filter, self._namespace = "", ""
        self._is_over = threading.Event()

    def compose(self) -> ComposeResult:
        """Lay out the summary, the tables, the prompt and the keys."""
        yield Static("reading the cluster ...", id="summary", classes="line")
        yield Static(id="notice")
        with Container(id="panes"):
            for number, name in enumerate(TABLES, 1):
                yield Pane(name, number)
        yield Input(id="prompt", select_on_focus=False)
        keys = "? help  enter show  l log  / filter  s sort  : go to  q quit"
        yield Static(Text(keys, no_wrap=True, overflow="ellipsis"), id="keys", classes="line keys")

    def on_mount(self) -> None:
        """Begin to read the cluster."""
        self.action_go(self._current)
        threading.Thread(target=self._read, daemon=True).start()

    def on_unmount(self) -> None:
        """Let the reading end."""
        self._is_over.set()

    def _read(self) -> None:
        """Read the cluster again and again, in a thread."""
        while not self._is_over.is_set():
            pause = _PAUSE
            try:
                self.post_message(Seen(self._source.look()))
                self._source.wait()
            except ArenaTopoError as error:
                self.post_message(Seen(None, error))
                pause = _RETRY
            except Exception as error:  # noqa: BLE001  # a thread's end would go unnoticed
                self.app.call_later(self._fail, error)
                return
            self._is_over.wait(pause)

    def on_seen(self, message: Seen) -> None:
        """Show what was read; what could not be read leaves the last state on the screen."""
        if message.overview is not None:
            self._overview = message.overview
            self._seen_at = datetime.now().astimezone()
        self._notify(message.error)
        self._show()

    def _notify(self, error: ArenaTopoError | None) -> None:
        notes = list(self._overview.notes) if self._overview else []
        if error:
            since = f" Shown is what was seen at {self._seen_at:%H:%M:%S}." if self._seen_at else ""
            notes = [f"{error.message}.{since}", *notes]
        notice = self.query_one("#notice", Static)
        notice.display = bool(notes)
        notice.update(Text(printable("; ".join(notes))))

    def _show(self) -> None:
        if self._overview is None:
            return
        overview = narrowed(self._overview, self._namespace)
        head = _line(summary(overview))
        words = [
            self._cluster,
            self._namespace and f"namespace {self._namespace}",
            self._filter and f"/{self._filter}",
        ]
        head.append("".join(f"  {printable(each)}" for each in words if each), style="dim")
        head.no_wrap, head.overflow = True, "ellipsis"
        self.query_one("#summary", Static).update(head)
        for pane in self.query(Pane):
            if pane.display:
                pane.show(TABLES[str(pane.id)](overview, self._zoom), self._filter)

    def on_resize(self, event: Resize) -> None:
        """Fit the tables into the terminal."""
        self.set_class(event.size.width < WIDE, "narrow")
        self.call_after_refresh(self._show)

    @property
    def _pane(self) -> Pane:
        return self.query_one(f"#{self._current}", Pane)

    def action_go(self, name: str) -> None:
        """Go to the table *name*."""
        self._current = name
        for pane in self.query(Pane):
            pane.set_class(pane.id == name, "current")
        self.set_focus(self._pane.query_one(Rows))
        self.call_after_refresh(self._show)

    def action_next(self, step: int) -> None:
        """Go to the table *step* places further."""
        names = list(TABLES)
        self.action_go(names[(names.index(self._current) + step) % len(names)])

    def on_descendant_focus(self) -> None:
        """Note which table has the keys now, as the mouse may have chosen it."""
        found = next((pane for pane in self.query(Pane) if pane.has_focus_within), None)
        if found is not None:
            self._current = str(found.id)

    def action_back(self) -> None:
        """Go one step back: out of the prompt, the filter, the domain."""
        prompt = self.query_one("#prompt", Input)
        if prompt.has_class("asked"):
            self._answered(prompt)
            self._filter = ""
        elif self._filter:
            self._filter = ""
        elif self._current == "cluster":
            self._zoom = self._zoom[:-1]
        self._show()

    def action_sort(self) -> None:
        """Sort the table at hand by its next order."""
        if self._overview:
            orders = TABLES[self._current](self._overview, self._zoom).orders
            self._pane.order = (self._pane.order + 1) % len(orders)
            self._show()

    def action_all_namespaces(self) -> None:
        """Show the jobs of all namespaces again."""
        self._namespace = ""
        self._show()

    def action_ask(self, kind: str) -> None:
        """Ask for a filter (``/``) or for where to go (``:``)."""
        prompt = self.query_one("#prompt", Input)
        prompt.add_class("asked")
        prompt.value = kind + (self._filter if kind == "/" else "")
        prompt.cursor_position = len(prompt.value)
        self.set_focus(prompt)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the text is typed."""
        if event.input.has_class("asked") and event.value.startswith("/"):
            self._filter = event.value[1:]
            self._show()
        elif event.input.has_class("asked") and not event.value:
            # The mark was taken back.
            self._answered(event.input)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was asked."""
        self._answered(event.input)
        if event.value.startswith(":"):
            self._obey(event.value[1:].split())
        self._show()

    def _obey(self, words: Sequence[str]) -> None:
        match words:
            case [("q" | "quit" | "q!")]:
                self.app.exit()
            case [("ns" | "namespace"), *name] if len(name) <= 1:
                self._namespace = "".join(name)
            case [word] if found := next((name for name in TABLES if name.startswith(word)), None):
                self.action_go(found)
            case _:
                self.app.bell()

    def _answered(self, prompt: Input) -> None:
        prompt.remove_class("asked")
        prompt.value = ""
        self.set_focus(self._pane.query_one(Rows))

    def on_data_table_row_selected(self) -> None:
        """Show what the row is about."""
        row = self._pane.row
        match row.about if row else ():
            case ("job", namespace, name):
                self._read_page(f"job {namespace}/{name}", lambda: self._source.describe((namespace, name)))
            case ("domain", *path):
                self._zoom = tuple(path)
                self._show()
            case ("node", name):
                self._read_page(f"node {name}", lambda: self._source.node(name))
            case ("link", *_) if row:
                self._filter = row.cells[1][0].text.partition(",")[0]
                self.action_go("jobs")

    def _read_page(self, title: str, read: Callable[[], str]) -> None:
        self.app.push_screen(TextPage(title, lambda: Text.from_ansi(read())))

    def action_log(self) -> None:
        """Follow the log of the job under the cursor."""
        row = self._pane.row
        if row and row.about[0] == "job":
            job = (row.about[1], row.about[2])
            self.app.push_screen(LogPage(f"log of {job[0]}/{job[1]}", lambda say: self._source.log(job, say)))
        else:
            self.app.bell()

    def action_help(self) -> None:
        """Show the keys."""
        self.app.push_screen(TextPage("keys", lambda: Text(_HELP)))


class LiveView(App[None]):
    """The view; ``failure`` is the fault that ended it, if one did."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    .line { height: 1; width: 100%; }
    .keys { color: $text-muted; }
    #notice { color: $text-error; display: none; height: auto; max-height: 3; }
    .rest { color: $text-muted; height: auto; max-height: 4; padding: 0 1; display: none; }
    #panes { layout: grid; grid-size: 2 2; grid-gutter: 0 1; }
    .narrow #panes { grid-size: 1 1; }
    .narrow Pane { display: none; }
    .narrow Pane.current { display: block; }
    Pane:focus-within .title { text-style: bold reverse; }
    Rows { height: 1fr; scrollbar-size: 1 1; }
    Words { padding: 0 1; scrollbar-size: 1 1; }
    LogLines { scrollbar-size: 1 1; }
    #prompt { display: none; height: 1; border: none; padding: 0; }
    #prompt.asked { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "interrupt", priority=True)]

    def __init__(self, source: Source, *, first: str = "cluster", cluster: str = "") -> None:
        super().__init__()
        self._tables = Tables(source, self.fail, first=first, cluster=cluster)
        self.failure: Exception | None = None

    def get_default_screen(self) -> Screen[None]:
        """Return the tables."""
        return self._tables

    def on_mount(self) -> None:
        """Have signals end the view: without that the terminal would be left as the view has set it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.action_interrupt)

    def action_interrupt(self) -> None:
        """End as Ctrl-C ends programs."""
        self.exit(return_code=ExitCode.INTERRUPTED)

    def fail(self, error: Exception) -> None:
        """End with a fault, which anyone who runs the view reports in the words of this program."""
        self.failure = error
        self.exit(return_code=ExitCode.ERROR)

    def _handle_exception(self, error: Exception) -> None:
        # textual's own prints a traceback.
        self.fail(error)


def run_view(source: Source, *, first: str, cluster: str) -> int:
    """Show the view until its user leaves it; return the exit code, or raise the fault that ended it."""
    view = LiveView(source, first=first, cluster=cluster)
    view.run()
    if view.failure is not None:
        raise view.failure
    return view.return_code or 0
