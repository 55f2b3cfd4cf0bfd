"""The live view does what its keys say, at every width, whatever happens to the API server."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import Static

from arena_topo.errors import ConnectionFailed, NotFound
from arena_topo.live.app import LiveView, LogLines, Pane, Rows
from arena_topo.model.reports import JobKey, Overview
from tests.live.overviews import OVERVIEW, large

WIDE, NARROW = (140, 40), (60, 30)


class Scripted:
    """A cluster that a test changes: what a look finds, and whether there is a look to come."""

    def __init__(self, overview: Overview = OVERVIEW) -> None:
        self.found: Overview | Exception = overview
        self.is_due = threading.Event()
        self.looks = 0
        self.log_ends = threading.Event()

    def look(self) -> Overview:
        """Return or raise what the test says."""
        self.looks += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def wait(self) -> None:
        """Wait until the test says that something changed."""
        self.is_due.wait()
        self.is_due.clear()

    def describe(self, job: JobKey) -> str:
        """Return a line about the job."""
        return f"all about \x1b[32m{job[1]}\x1b[0m"

    def node(self, name: str) -> str:
        """Have no node."""
        raise NotFound(f"node {name} is gone", status=404)

    def log(self, job: JobKey, notify: Callable[[str], None]) -> Iterator[bytes]:
        """Yield two lines, and wait for the test's end."""
        notify("waiting for the launcher")
        yield f"step 1 of {job[1]}\n".encode()
        yield b"\x1b[2Jloss 0.5\n"
        self.log_ends.wait()


Act = Callable[[LiveView, "Pilot[None]", Scripted], Coroutine[Any, Any, None]]
Scene = Callable[[LiveView, "Pilot[None]"], Coroutine[Any, Any, None]]


def played(
    act: Act, *, size: tuple[int, int] = WIDE, source: Scripted | None = None, first: str = "cluster"
) -> LiveView:
    """Run the view, do *act* with it, and return it when it has ended."""
    script = source or Scripted()
    view = LiveView(script, first=first, cluster="prod")

    async def play() -> None:
        async with view.run_test(size=size) as pilot:
            await until(lambda: "reading" not in line(view, "summary") or view.failure is not None)
            await pilot.pause()
            await act(view, pilot, script)

    try:
        asyncio.run(play())
    finally:
        # Its thread ends with the test.
        script.is_due.set()
        script.log_ends.set()
    return view


def scene(
    *,
    size: tuple[int, int] = WIDE,
    first: str = "cluster",
    overview: Callable[[], Overview] = lambda: OVERVIEW,
) -> Callable[[Scene], Callable[[], None]]:
    """Make a test of what somebody does with the view, which does not fail by it."""

    def made(act: Scene) -> Callable[[], None]:
        def test() -> None:
            view = played(
                lambda view, pilot, _: act(view, pilot), size=size, source=Scripted(overview()), first=first
            )
            assert None is view.failure

        test.__doc__ = act.__doc__
        return test

    return made


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a fact that another thread brings about."""
    while not holds():  # noqa: ASYNC110  # another thread's fact sets no event of this loop
        await asyncio.sleep(0.01)


def words(widget: Static) -> str:
    """Return what a line says."""
    return str(widget.content)


def line(view: LiveView, name: str) -> str:
    """Return what the line *name* says."""
    return words(view.screen_stack[0].query_one(f"#{name}", Static))


def rows(view: LiveView, name: str) -> list[str]:
    """Return the rows of the table *name*."""
    table = view.screen_stack[0].query_one(f"#{name}", Pane).query_one(Rows)
    return [" ".join(str(cell) for cell in table.get_row_at(row)) for row in range(table.row_count)]


def title(view: LiveView, name: str) -> str:
    """Return the title of the table *name*."""
    return words(view.screen_stack[0].query_one(f"#{name} .title", Static))


def page(view: LiveView) -> str:
    """Return what stands on the page above the tables."""
    return "\n".join(words(widget) for widget in view.screen.query(Static))


@scene()
async def test_a_wide_terminal_has_all_four_tables(view: LiveView, pilot: "Pilot[None]") -> None:
    """Below a line that sums up the cluster."""
    del pilot
    assert "4 nodes, 14 of 28 GPUs free" in line(view, "summary")
    assert [True] * 4 == [pane.display for pane in view.screen.query(Pane)]
    assert "vgg16" in rows(view, "jobs")[0]
    assert "no 16 nodes have 8 free GPUs" in rows(view, "queue")[0]
    assert "NVLink v100-0" in rows(view, "links")[0]


@scene(size=NARROW)
async def test_a_narrow_terminal_has_one_at_a_time(view: LiveView, pilot: "Pilot[None]") -> None:
    """The number of a table goes to it, and so does tab."""

    def shown() -> list[str | None]:
        return [pane.id for pane in view.screen.query(Pane) if pane.display]

    assert ["cluster"] == shown()
    await pilot.press("3")
    assert ["queue"] == shown()
    await pilot.press("tab")
    assert ["links"] == shown()
    assert rows(view, "links")


@scene(first="jobs")
async def test_it_follows_the_size_of_the_terminal(view: LiveView, pilot: "Pilot[None]") -> None:
    """Columns come and go with the room."""
    table = view.screen.query_one("#jobs", Pane).query_one(Rows)
    before = len(table.columns)
    await pilot.resize_terminal(220, 40)
    await pilot.pause()
    assert before < len(table.columns)
    await pilot.resize_terminal(*NARROW)
    await pilot.pause()
    assert 1 == sum(pane.display for pane in view.screen.query(Pane))


@scene(first="jobs")
async def test_enter_describes_a_job_and_esc_goes_back(view: LiveView, pilot: "Pilot[None]") -> None:
    """The key j goes down to it."""
    await pilot.press("j", "enter")
    await until(lambda: "all about gpt" in page(view))
    await pilot.press("escape")
    assert 1 == len(view.screen_stack)


@scene(overview=lambda: large(1000))
async def test_enter_looks_into_a_domain_and_esc_out_of_it(view: LiveView, pilot: "Pilot[None]") -> None:
    """A rack of a large cluster shows its nodes."""
    await pilot.press("j", "j", "enter")
    await pilot.pause()
    assert "cluster / a / r1" in title(view, "cluster")
    assert "node-16" in rows(view, "cluster")[0]
    await pilot.press("escape", "escape")
    assert "1 cluster  64" == title(view, "cluster")


@scene()
async def test_a_page_that_cannot_be_read_says_why(view: LiveView, pilot: "Pilot[None]") -> None:
    """And the view continues."""
    await pilot.press("j", "j", "enter")
    await until(lambda: "error: node v100-0 is gone" in page(view))


@scene(first="jobs")
async def test_l_follows_the_log(view: LiveView, pilot: "Pilot[None]") -> None:
    """What others printed does nothing to the terminal."""
    await pilot.press("l")
    log = view.screen.query_one(LogLines)
    await until(lambda: len(log.lines) >= 3)
    assert ["waiting for the launcher", "step 1 of vgg16", r"\x1b[2Jloss 0.5"] == [
        strip.text.rstrip() for strip in log.lines
    ]
    await pilot.press("q")
    assert 1 == len(view.screen_stack)


@scene(first="jobs")
async def test_a_filter_is_for_all_tables(view: LiveView, pilot: "Pilot[None]") -> None:
    """It acts while it is typed, and esc takes it away."""
    await pilot.press("slash", "b", "e", "r", "t", "enter")
    assert ["bert"] == [name for name in ("vgg16", "bert") if any(name in row for row in rows(view, "jobs"))]
    assert "/bert" in line(view, "summary")
    await pilot.press("escape")
    assert 4 == len(rows(view, "jobs"))


@scene(first="jobs")
async def test_s_sorts_by_the_next_order(view: LiveView, pilot: "Pilot[None]") -> None:
    """Which the title names."""
    assert title(view, "jobs").endswith("by state")
    await pilot.press("s", "s")
    assert title(view, "jobs").endswith("by GPUs")
    assert "gpt" in rows(view, "jobs")[0]


def test_a_colon_goes_to_tables_and_namespaces() -> None:
    """0 goes back to all namespaces, and q ends it."""

    async def act(view: LiveView, pilot: "Pilot[None]", _: Scripted) -> None:
        await pilot.press("colon", *"jobs", "enter")
        await pilot.press("colon", *"ns", "space", *"nlp", "enter")
        assert (1, True) == (len(rows(view, "jobs")), "namespace nlp" in line(view, "summary"))
        await pilot.press("0")
        assert 4 == len(rows(view, "jobs"))
        await pilot.press("colon", "q", "enter")

    assert 0 == played(act, size=NARROW).return_code


def test_the_cursor_stays_on_its_row() -> None:
    """Though rows come above it."""

    async def act(view: LiveView, pilot: "Pilot[None]", script: Scripted) -> None:
        await pilot.press("j")
        assert isinstance(script.found, Overview)
        jobs = OVERVIEW.jobs
        script.found = Overview(OVERVIEW.snapshot, (jobs[3], jobs[0], jobs[1]), OVERVIEW.uses)
        script.is_due.set()
        await until(lambda: 3 == len(rows(view, "jobs")))
        row = view.screen.query_one("#jobs", Pane).row
        assert row is not None
        assert ("job", "ml", "gpt") == row.about

    assert None is played(act, first="jobs").failure


def test_a_server_that_goes_away_is_named_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen stays on the screen meanwhile."""
    monkeypatch.setattr("arena_topo.live.app._RETRY", 0.01)

    async def act(view: LiveView, pilot: "Pilot[None]", script: Scripted) -> None:
        script.found = ConnectionFailed("the connection to the server was refused")
        script.is_due.set()
        await until(lambda: "refused. Shown is what was seen at" in line(view, "notice"))
        assert 4 == len(rows(view, "jobs"))
        script.found = OVERVIEW
        await until(lambda: not view.screen.query_one("#notice", Static).display)
        await pilot.pause()

    assert None is played(act).failure


@scene(overview=lambda: Overview(jobs=OVERVIEW.jobs, notes=("you cannot list nodes",)))
async def test_what_may_not_be_read_is_said(view: LiveView, pilot: "Pilot[None]") -> None:
    """The rest is shown."""
    del pilot
    assert "you cannot list nodes" == line(view, "notice")


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", 130)])
def test_keys_end_it(key: str, code: int) -> None:
    """Ctrl-C as it ends programs."""

    async def act(_: LiveView, pilot: "Pilot[None]", __: Scripted) -> None:
        await pilot.press(key)

    assert code == played(act).return_code


def test_a_fault_ends_it_and_is_kept() -> None:
    """For anyone who reports it in the words of this program."""

    class Faulty(Scripted):
        def look(self) -> Overview:
            raise ZeroDivisionError

    async def act(view: LiveView, pilot: "Pilot[None]", _: Scripted) -> None:
        del pilot
        await until(lambda: view.failure is not None)

    assert isinstance(played(act, source=Faulty()).failure, ZeroDivisionError)


@scene()
async def test_the_keys_are_explained(view: LiveView, pilot: "Pilot[None]") -> None:
    """All of those that are bound."""
    await pilot.press("question_mark")
    await until(lambda: "follow the log of the job" in page(view))


@scene(size=NARROW, first="queue")
async def test_what_is_cut_is_shown_below(view: LiveView, pilot: "Pilot[None]") -> None:
    """The words of the row under the cursor, whole."""
    await pilot.pause()
    rest = view.screen.query_one("#queue .rest", Static)
    assert "retry with: arena-topo resume gpt" in words(rest)
    assert isinstance(rest.content, Text)
