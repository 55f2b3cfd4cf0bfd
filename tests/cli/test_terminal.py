"""Colour helps on a terminal, and is in the way elsewhere; what others wrote does nothing on either."""

import pytest

from arena_topo.cli.errors import report
from arena_topo.cli.terminal import broken_between_words, print_page, say, warn
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
    """Escape sequences, directions and zero widths are seen; a warning is one line, and an error may have several."""
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
    ],
)
def test_sentences_break_between_words_and_rows_of_tables_stay(line: str, broken: str) -> None:
    """At 20 columns, in which codes of colours take none."""
    assert broken == broken_between_words(line, 20)


def test_only_a_terminal_has_a_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets whole lines, whatever the width of the terminal beside it."""
    monkeypatch.setenv("COLUMNS", "10")
    print_page("a sentence of several words\n")

    assert "a sentence of several words\n" == capsys.readouterr().out
