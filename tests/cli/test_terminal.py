"""Colour helps on a terminal, and is in the way elsewhere; what others wrote does nothing on either."""

import pytest

from arena_topo.cli.errors import report
from arena_topo.cli.terminal import say, warn
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
