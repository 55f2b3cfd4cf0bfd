"""Help is read at 60 columns and at 120: under headings, and without a word that is broken."""

from collections.abc import Iterator

import click
import pytest

from arena_topo.cli.app import cli
from arena_topo.cli.options.common import connection_options
from tests.cli.conftest import Invoke
from tests.paths import ROOT

GOLDEN = ROOT / "tests/data/golden/help"


def pages(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words and the command of every page."""
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from pages(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("command", ["exec", "logs"])
def test_a_page_looks_as_it_should(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: str, width: int
) -> None:
    """Written again by COLUMNS=60 arena-topo COMMAND --help."""
    monkeypatch.setenv("COLUMNS", str(width))

    assert (GOLDEN / f"{command}-{width}.txt").read_text() == invoke(command, "--help").out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_page_breaks_a_word_or_a_terminals_line(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Every flag and every word of its text stands there whole, in lines that fit."""
    monkeypatch.setenv("COLUMNS", str(width))
    shared = {option.name for option in connection_options()}
    for path, command in pages():
        text = invoke(*path, "--help").out
        # A single word may be longer than any line.
        long = [line for line in text.splitlines() if len(line) > width and len(line.split()) > 1]
        assert [] == long, path
        words = set(text.replace(",", " ").split()) | set(text.split())
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden and param.name not in shared:
                assert set(param.opts) <= words, path
                assert set((param.help or "").split()) <= words, (path, param.name)


def test_the_flags_of_the_connection_stand_once(invoke: Invoke) -> None:
    """On the first page, to which the others point."""
    first = invoke("--help").out
    for option in connection_options():
        if not option.hidden:
            assert option.opts[0] in first
    page = invoke("submit", "mpi", "--help").out
    assert "--insecure-skip-tls-verify" not in page
    assert "-n NAMESPACE, --context NAME and others: arena-topo --help lists them." in page


def test_many_flags_stand_under_headings(invoke: Invoke) -> None:
    """In the order in which a job is thought of; few stand together."""
    lines = invoke("submit", "mpi", "--help").out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]

    assert [
        "Job:",
        "Resources:",
        "Placement:",
        "Data:",
        "Pod:",
        "Output:",
        "Options:",
        "Connection:",
    ] == headings
    assert "Job:" not in invoke("logs", "--help").out


def test_what_is_left_without_a_heading_is_help_alone(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new flag of a job belongs under one of the headings, in ``arena_topo/cli/declare.py``."""
    monkeypatch.setenv("COLUMNS", "60")
    for command in ("submit", "plan"):
        _, _, rest = invoke(command, "mpi", "--help").out.partition("\nOptions:\n")
        flags = [line.strip() for line in rest.partition("\n\n")[0].splitlines() if line.startswith("  -")]

        assert ["-h, --help"] == flags
