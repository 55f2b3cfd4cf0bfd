"""Help is there, true, and the same everywhere."""

import click
import pytest

from arena_topo.cli.app import cli
from arena_topo.cli.options.common import connection_options
from tests.cli.conftest import Invoke
from tests.cli.pages import pages
from tests.paths import ROOT


def test_the_table_says_what_the_commands_say() -> None:
    """Help lists commands without importing them, so their
    first lines are written twice and compared here.
    """
    for name, entry in cli.entries.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert entry.help == command.get_short_help_str(limit=200)


def test_no_two_flags_of_a_command_share_a_value() -> None:
    """Values come by their fields' names: --timeout of a wait must not be --request-timeout as well."""
    for _, command in pages():
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
        (["get"], "error: JOB is missing"),
        (["wait"], "error: JOB is missing"),
        (["delete"], "error: delete takes the names of jobs, -l LABELS, or --all"),
        (["frobnicate"], "error: there is no command frobnicate"),
        (["get", "a", "-o", "xml"], "error: --output: unknown output format 'xml'"),
        (["get", "a", "--type=rayjob"], "error: unsupported job type 'rayjob'"),
        (["logs", "a", "--since=5x"], "error: --since: '5x' is not a duration"),
        (["logs", "a", "--since=5m", "--since-time=2026-11-21T00:00:00Z"], "error: at most one of --since"),
        (["logs", "a", "--since-time=noon"], "error: --since-time: 'noon' is not an RFC 3339 time"),
        (["logs", "a", "-f", "-p"], "error: --follow and --previous exclude each other"),
        (["delete", "a", "--timeout=soon"], "error: --timeout: 'soon' is not a duration"),
        (["completion", "tcsh"], "error: SHELL: 'tcsh' is not one of"),
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


# Help is read at 60 columns and at 120: under headings, and without a word that is broken.

GOLDEN = ROOT / "tests/data/golden/help"


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
        text = invoke(*path, "--help-all").out
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
    first = invoke("--help-all").out
    for option in connection_options():
        if not option.hidden:
            assert option.opts[0] in first
    page = invoke("submit", "mpi", "--help").out
    assert "--insecure-skip-tls-verify" not in page
    assert "-n NAMESPACE, --context NAME and others: arena-topo --help-all lists them." in page


def test_many_flags_stand_under_headings(invoke: Invoke) -> None:
    """In the order in which a job is thought of; few stand together."""
    lines = invoke("submit", "mpi", "--help-all").out.splitlines()
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
        _, _, rest = invoke(command, "mpi", "--help-all").out.partition("\nOptions:\n")
        flags = [line.strip() for line in rest.partition("\n\n")[0].splitlines() if line.startswith("  -")]

        assert ["-h, --help"] == flags


# The first page fits one screen, and a page with many flags shows those that most users need.


def test_the_first_page_fits_one_screen(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 lines of 80 columns: what is done daily comes first, and what is not described is at least named."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = invoke("--help").out.splitlines()

    assert len(lines) <= 40
    first = lines.index("Commands:") + 1
    daily = [line.split()[0].rstrip(",") for line in lines[first : first + 10]]
    expected = ["submit", "plan", "list", "get", "describe", "logs", "wait", "delete", "top", "topology"]
    assert expected == daily
    assert set(cli.entries) <= set(" ".join(lines).replace(",", " ").replace(".", " ").split())


@pytest.mark.parametrize(
    "command", [(verb, kind) for verb in ("submit", "plan") for kind in ("mpi", "pytorch", "tf", "train")]
)
def test_a_page_with_many_flags_shows_about_twenty(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: tuple[str, str]
) -> None:
    """With examples, and with the number of the others, which --help-all shows under headings."""
    monkeypatch.setenv("COLUMNS", "80")
    words = " ".join(command)
    page, whole = invoke(*command, "--help").out, invoke(*command, "--help-all").out
    shown, all_of_them = (
        {line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")}
        for text in (page, whole)
    )

    assert 15 <= len(shown) <= 28
    assert len(page.splitlines()) <= 65
    assert shown <= all_of_them
    # The connection's line begins with a flag as well.
    assert f"\n{len(all_of_them) - len(shown)} more: arena-topo {words} --help-all\n" in page
    assert f"  arena-topo {words} --" in page


def test_flags_and_their_texts_stand_side_by_side_at_80_columns(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual width of a terminal."""
    monkeypatch.setenv("COLUMNS", "80")

    assert (
        "\n  --image TEXT                Image of the job's pods (required).\n"
        in invoke("submit", "mpi", "--help").out
    )
