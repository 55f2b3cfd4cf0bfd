"""Every command and flag of Arena is in the table of the guide, which says what the program does."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from arena_topo.cli.app import cli
from arena_topo.cli.refused import REFUSED
from tests.e2e.arena_help import recorded
from tests.paths import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "arena.md").read_text()
TESTS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "arena_tests.toml").read_text())
STATES = {"works", "better", "refused"}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the tables: a command, one spelling of a flag or nothing, and what happens to it."""

    command: str
    flag: str
    state: str
    why: str


def rows() -> list[Row]:
    """Return the lines of the guide's tables, one for each spelling."""
    found: list[Row] = []
    for section in GUIDE.partition("## Every command and flag")[2].split("\n### ")[1:]:
        title, _, body = section.partition("\n")
        for names, state, why in re.findall(r"^\| (.+?) \| (\w+) \| (.*?) ?\|$", body, re.MULTILINE):
            for name in names.split(", "):
                if title == "Everything else":
                    found.append(Row(name.strip("`"), "", state, why))
                    continue
                command = "" if title == "Every command" else title.strip("`")
                flag = "" if name == "the command" else name.strip("`")
                found.append(Row(command, flag, state, why))
    return found


ROWS = rows()


def command(words: str) -> click.Command:
    """Return a command of the program, by its words."""
    context, found = click.Context(cli, info_name="arena-topo", **cli.context_settings), cli
    for word in words.split():
        assert isinstance(found, click.Group)
        inner = found.get_command(context, word)
        assert inner is not None, words
        context, found = click.Context(inner, info_name=word, parent=context), inner  # type: ignore[assignment]
    return found


def flags_of(words: str) -> Mapping[str, click.Option]:
    """Return the flags of a command by their spellings;
    those of every command are looked at in one of them.
    """
    params = command(words or "version").params
    return {name: param for param in params if isinstance(param, click.Option) for name in param.opts}


def test_the_table_is_complete() -> None:
    """Each command and each flag of Arena stands there once, and nothing else does."""
    of_arena = {(name, flag) for name, flags in recorded().items() for flag in (*flags, "")} - {("", "")}
    in_table = [(row.command, row.flag) for row in ROWS]

    assert of_arena == set(in_table)
    assert len(in_table) == len(set(in_table))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.command} {row.flag}".strip())
def test_the_table_says_what_the_program_does(row: Row) -> None:
    """A flag that works is there, and one that is refused is in the table of those that are."""
    assert row.state in STATES
    refused = command(row.command).params[:1] and command(row.command).params[0].name == "rest"
    if row.flag == "" or refused:
        assert (row.state == "refused") is bool(refused)
    else:
        assert (row.state == "refused") is (row.flag in REFUSED)
        assert (row.state == "refused") is (row.flag not in flags_of(row.command))
    assert row.state == "works" or row.why or row.flag


def test_each_line_of_the_table_has_a_test() -> None:
    """By the list of them: a command or flag stands there once."""
    listed = [word for words in TESTS.values() for word in words]

    assert sorted(listed) == sorted(f"{row.command} {row.flag}".strip() for row in ROWS)


@pytest.mark.parametrize("test", sorted(TESTS))
def test_the_test_that_the_table_names_exists(test: str) -> None:
    """In the file that it names."""
    path, _, function = test.partition("::")

    assert f"\ndef {function}(" in (ROOT / "tests" / path).read_text()
