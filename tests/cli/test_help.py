"""Help is there, true, and the same everywhere."""

import click
import pytest

from arena_topo.cli.app import cli
from tests.cli.conftest import Invoke
from tests.cli.options.test_notations import commands


def test_the_table_says_what_the_commands_say() -> None:
    """Help lists commands without importing them, so their first lines are written twice and compared here."""
    for name, entry in cli.entries.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert entry.help == command.get_short_help_str(limit=200)


def test_no_two_flags_of_a_command_share_a_value() -> None:
    """Values come by their fields' names: --timeout of a wait must not be --request-timeout as well."""
    for command in commands(cli):
        names = [parameter.name for parameter in command.params]
        assert len(names) == len(set(names)), command.name


@pytest.mark.parametrize(
    "args", [["--help"], ["-h"], ["get", "-h"], ["submit", "mpi", "--help"], ["log", "--help"]]
)
def test_help_is_printed(invoke: Invoke, args: list[str]) -> None:
    """By both spellings, for commands and aliases."""
    outcome = invoke(*args)

    assert 0 == outcome.code
    assert outcome.out.startswith("Usage: arena-topo ")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "Usage: arena-topo"),
        (["submit"], "Usage: arena-topo submit"),
        (["get"], "error: Missing argument 'JOB'"),
        (["delete"], "error: Missing argument 'JOB...'"),
        (["frobnicate"], "error: No such command 'frobnicate'"),
        (["get", "a", "-o", "xml"], "error: --output: unknown output format 'xml'"),
        (["get", "a", "--type=rayjob"], "error: unsupported job type 'rayjob'"),
        (["logs", "a", "--since=5"], "error: --since: '5' is not a duration"),
        (["logs", "a", "--since=5m", "--since-time=2026-11-21T00:00:00Z"], "error: at most one of --since"),
        (["logs", "a", "--since-time=noon"], "error: --since-time: 'noon' is not an RFC 3339 time"),
        (["logs", "a", "-f", "-p"], "error: --follow and --previous exclude each other"),
        (["delete", "a", "--timeout=soon"], "error: --timeout: 'soon' is not a duration"),
        (["completion", "tcsh"], "error: Invalid value for"),
    ],
)
def test_wrong_usage_has_its_own_exit_code(invoke: Invoke, args: list[str], words: str) -> None:
    """2, and the words on stderr."""
    outcome = invoke(*args)

    assert (2, "") == (outcome.code, outcome.out)
    assert words in outcome.err


@pytest.mark.parametrize(
    "args", [["get", "a"], ["logs", "a"], ["delete", "a"], ["submit", "mpi", "--name=a", "--image=i", "c"]]
)
def test_without_a_kubeconfig_the_user_learns_how_to_name_one(invoke: Invoke, args: list[str]) -> None:
    """Exit code 1, what, and what next."""
    outcome = invoke(*args)

    assert (1, "") == (outcome.code, outcome.out)
    assert "error: no cluster is configured" in outcome.err
    assert "hint: pass --kubeconfig FILE, or set KUBECONFIG" in outcome.err


def test_a_refused_connection_is_reported(invoke: Invoke) -> None:
    """With the host and port that were tried."""
    outcome = invoke("get", "a", "--server=https://127.0.0.1:1")

    assert 1 == outcome.code
    assert "error: the connection to the server 127.0.0.1:1 was refused" in outcome.err
    assert "hint: did you specify the right host or port?" in outcome.err
