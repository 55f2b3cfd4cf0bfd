"""What is not supported says so by its name, and what to use instead."""

import re

import click
import pytest

from arena_topo.cli.app import COMMANDS as TABLE
from arena_topo.cli.app import cli
from arena_topo.cli.refused import REFUSED
from tests.cli.conftest import Invoke

COMMAND_NAMES = set(TABLE)
COMMANDS = [word for word in REFUSED if not word.startswith("-")]
FLAGS = [word for word in REFUSED if word.startswith("-") and "=" not in word]
LINES = {
    "--output=jsonpath": ("list", "-o", "jsonpath={.items[0].name}"),
    "--objective=balanced": ("plan", "mpi", "--workers=1", "--gpus=1", "--objective", "balanced"),
}
"""What is typed, by the value that is refused."""


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_of_arena_is_refused_by_name(invoke: Invoke, words: str) -> None:
    """In one sentence, and a hint; its flags are not looked at."""
    outcome = invoke(*words.split(), "--name=x", "-z", "list", "--", "--help")

    assert (2, "") == (outcome.code, outcome.out)
    assert f"error: {words!r} is not supported: {REFUSED[words].reason}\nhint: " in outcome.err


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("end", ["", "=1", "=false"])
def test_a_flag_is_refused_by_name(invoke: Invoke, flag: str, end: str) -> None:
    """Whatever its value is."""
    outcome = invoke("submit", "tf", "--name=x", f"{flag}{end}", "train")

    assert (2, "") == (outcome.code, outcome.out)
    assert f"error: {flag!r} is not supported: {REFUSED[flag].reason}\nhint: " in outcome.err


@pytest.mark.parametrize("value", [word for word in REFUSED if "=" in word])
def test_a_value_of_a_flag_is_refused_by_name(invoke: Invoke, value: str) -> None:
    """Before anything is asked of a cluster."""
    outcome = invoke(*LINES[value])

    assert (2, "") == (outcome.code, outcome.out)
    assert f"error: {value!r} is not supported: {REFUSED[value].reason}\nhint: " in outcome.err


def flags_of(command: click.Command, context: click.Context) -> set[str]:
    """Return the flags of a command and of all below it."""
    flags = {name for param in command.params for name in param.opts}
    inner = command.list_commands(context) if isinstance(command, click.Group) else []
    for name in inner:
        below = command.get_command(context, name)  # type: ignore[attr-defined]  # it is a group
        assert below is not None
        flags |= flags_of(below, click.Context(below, parent=context, info_name=name))
    return flags


def test_what_to_use_instead_exists() -> None:
    """Each command and each flag that a hint names is one of today."""
    known = flags_of(cli, click.Context(cli))
    hints = [entry.instead for entry in REFUSED.values()]

    assert (
        {"logs", "scale", "agent"}
        <= {name for hint in hints for name in re.findall(r"(?<!next to )arena-topo ([a-z]+)", hint)}
        <= COMMAND_NAMES
    )
    assert {flag for hint in hints for flag in re.findall(r"--[a-z][\w-]*", hint)} <= known


def test_what_nobody_has_is_no_command(invoke: Invoke) -> None:
    """Below a group as well."""
    assert "is not supported" not in invoke("submit", "summit").err
    assert 2 == invoke("submit", "summit").code


def test_help_takes_a_command(invoke: Invoke) -> None:
    """As Arena's does."""
    assert invoke("submit", "mpi", "--help").out == invoke("help", "submit", "mpi").out
    assert invoke("--help").out == invoke("help").out
