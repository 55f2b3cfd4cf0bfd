"""Arena's commands for other things are refused by their names, whatever follows, with what to use instead."""

import pytest

from arena_topo.cli.groups import REFUSED
from tests.cli.conftest import Invoke


@pytest.mark.parametrize("words", REFUSED)
def test_a_command_of_arena_is_refused_by_name(invoke: Invoke, words: str) -> None:
    """In one sentence, and a hint; its flags are not looked at."""
    outcome = invoke(*words.split(), "--name=x", "-z", "list", "--", "--help")

    assert (2, "") == (outcome.code, outcome.out)
    assert f"error: {words!r} is not supported: " in outcome.err
    assert "\nhint: " in outcome.err


def test_what_nobody_has_is_no_command(invoke: Invoke) -> None:
    """Below a group as well."""
    assert "is not supported" not in invoke("submit", "summit").err
    assert 2 == invoke("submit", "summit").code


def test_help_takes_a_command(invoke: Invoke) -> None:
    """As Arena's does."""
    assert invoke("submit", "mpi", "--help").out == invoke("help", "submit", "mpi").out
    assert invoke("--help").out == invoke("help").out
