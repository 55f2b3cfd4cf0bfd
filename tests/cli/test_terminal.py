"""Colour helps on a terminal, and is in the way elsewhere."""

import pytest

from tests.cli.conftest import Invoke


def test_colour_is_for_terminals(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """None in a pipe, some when forced, none when refused."""
    assert "\x1b" not in invoke("get", "a").err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m\x1b[1merror:\x1b[0m no cluster" in invoke("get", "a").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in invoke("get", "a").err
