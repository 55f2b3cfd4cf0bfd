"""Colour helps on a terminal, and is in the way elsewhere; what others wrote does nothing on either."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from contextlib import suppress

import pytest

from arena_topo.cli.errors import report
from arena_topo.cli.terminal import Elapsed, broken_between_words, columns, print_page, say, warn
from arena_topo.errors import ArenaTopoError
from tests.cli.conftest import Invoke


def test_colour_is_for_terminals(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """None in a pipe, some when forced, none when refused."""
    assert "\x1b" not in invoke("get", "a").err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m\x1b[1merror:\x1b[0m no cluster" in invoke("get", "a").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in invoke("get", "a").err


def test_messages_of_others_do_nothing_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escape sequences, directions and zero widths are seen; a
    warning is one line, and an error may have several.
    """
    say("a\x1b[2J\u202eb\n\tc")
    warn("a\nerror: forged\x9b")
    report(ArenaTopoError("a\nb\x07", hint="\u200b"))
    assert (
        "a\\x1b[2J\\u202eb\n\tc\nwarning: a\\nerror: forged\\x9b\nerror: a\nb\\x07\nhint: \\u200b\n"
        == capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("  - the links lie idle", "  - the links lie\n    idle"),
        ("  why it waits: no room for it", "  why it waits: no\n  room for it"),
        ("NAME  a column  and another one", "NAME  a column  and another one"),
        ("averyveryverylongwordindeed it", "averyveryverylongwordindeed\nit"),
        ("\x1b[2m   dim words are wide", "\x1b[2m   dim words are\n   wide"),
        ("\x1b[2mshort and dim here\x1b[0m", "\x1b[2mshort and dim here\x1b[0m"),
        ("short\n\nlines stay\n", "short\n\nlines stay\n"),
        ("see `arena-topo get a` for it", "see\n`arena-topo get a`\nfor it"),
        ("a lone ` quotes no word", "a lone ` quotes no\nword"),
    ],
)
def test_sentences_break_between_words_and_rows_of_tables_stay(line: str, broken: str) -> None:
    """At 20 columns, in which codes of colours take none."""
    assert broken == broken_between_words(line, 20)


def test_a_sentence_goes_on_below_its_first_word() -> None:
    """Where its name leaves it room; a third column makes it a row of a table."""
    line = "  follows:  workers can be held at gates until their gang fits"

    assert (
        "  follows:  workers can be held at gates\n            until their gang fits"
        == broken_between_words(line, 40)
    )
    assert "  follows:  workers can be held at" == broken_between_words(line, 34).split("\n")[0]
    assert f"{line}  (now)" == broken_between_words(f"{line}  (now)", 40)


def test_only_a_terminal_has_a_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets whole lines, whatever the width of the terminal next to it."""
    monkeypatch.setenv("COLUMNS", "10")
    print_page("a sentence of several words\n")

    assert "a sentence of several words\n" == capsys.readouterr().out


def on_terminal(width: int, program: str, **environment: str) -> str:
    """Return what a *program* prints on a terminal of *width* columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    imports = "from arena_topo.cli.terminal import columns, print_table\nfrom arena_topo.output.text import fitted\n"
    with subprocess.Popen(
        [sys.executable, "-c", imports + program],
        env={"TERM": "xterm", "PATH": "", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        printed = b""
        with suppress(OSError):
            while part := os.read(ours, 65536):
                printed += part
    os.close(ours)
    assert 0 == process.returncode, printed
    return printed.decode().replace("\r\n", "\n")


def test_messages_fit_a_terminal() -> None:
    """On stderr, too, with their colours."""
    program = "from arena_topo.cli.terminal import say; say('hint: see what there is', style='hint')"

    assert "\x1b[36mhint:\x1b[0m see what\nthere is\n" == on_terminal(16, program)


TABLE = (
    "rows = [('NAME', 'STATUS', 'NODE'), ('vgg16', 'RUNNING', 'gpu-1'), ('a', 'NotReady', 'b')]\n"
    "print_table(fitted(rows, columns(), spare=('NODE',)))"
)


def test_a_table_on_a_terminal_fits_it() -> None:
    """Its states have their colours, and what is hidden is said."""
    assert (
        "NAME   STATUS\nvgg16  \x1b[32mRUNNING\x1b[0m\na      \x1b[31mNotReady\x1b[0m\n"
        "hidden: NODE; -o\nwide shows them\n"
    ) == on_terminal(16, TABLE)
    assert "NODE" in on_terminal(60, TABLE).splitlines()[0]


@pytest.mark.parametrize("environment", [{"NO_COLOR": "0"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
def test_a_terminal_may_refuse_colours(environment: dict[str, str]) -> None:
    """The table fits anyway."""
    assert "NAME   STATUS\nvgg16  RUNNING\na      NotReady\n" in on_terminal(16, TABLE, **environment)


def test_the_variable_goes_before_the_terminal() -> None:
    """As in other programs."""
    assert "44\n" == on_terminal(60, "print(columns())", COLUMNS="44")
    assert "80\n" == on_terminal(0, "print(columns())", COLUMNS="wide")


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the variable says."""
    monkeypatch.setenv("COLUMNS", "44")
    assert None is columns()


class Clock:
    """A time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let it pass."""
        self.now += seconds


def slept(*pauses: float, limit: float = 0.0) -> None:
    """Sleep as a command does that waits at most *limit* seconds."""
    clock = Clock()
    elapsed = Elapsed(limit, clock=clock, sleep=clock.sleep)
    for pause in pauses:
        elapsed.sleep(pause)
    assert sum(pauses) == clock.now


@pytest.mark.parametrize(
    ("pauses", "limit", "shown"),
    [
        ((1, 1), 0, ""),
        ((2, 1), 0, "\r... 2s\x1b[K\r\x1b[K"),
        ((3, 1), 120, "\r... 2s of 2m\x1b[K\r\x1b[K\r... 3s of 2m\x1b[K\r\x1b[K"),
        ((11,), 0, "".join(f"\r... {left}s left\x1b[K" for left in range(11, 0, -1)) + "\r\x1b[K"),
    ],
    ids=["a moment", "what has passed", "of a limit", "a long pause"],
)
def test_a_terminal_shows_how_long_a_command_waits(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pauses: tuple[float, ...],
    limit: float,
    shown: str,
) -> None:
    """On one line, which is gone before anything else is printed."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    slept(*pauses, limit=limit)

    assert shown == capsys.readouterr().err


def test_where_nobody_looks_nothing_is_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a pipe, and on a terminal that cannot erase."""
    slept(20)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    slept(20)

    assert "" == capsys.readouterr().err


def test_only_the_main_thread_draws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each log of many has a thread, and a terminal has one line for all of them."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    thread = threading.Thread(target=slept, args=(20,))
    thread.start()
    thread.join()

    assert "" == capsys.readouterr().err


def test_a_message_takes_the_place_of_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that it begins at the beginning of a line."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Elapsed().show(5)
    say("it runs")
    say("and ends")

    assert "\r... 5s left\x1b[K\r\x1b[Kit runs\nand ends\n" == capsys.readouterr().err
