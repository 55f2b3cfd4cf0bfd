"""Every ending of a command line has its words on stderr and its exit code."""

import os
import sys
from pathlib import Path

import pytest

from arena_topo.cli.errors import program_name, run
from arena_topo.sandbox.lifecycle import Home
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Call


def broken(call: Call) -> None:
    """Fail in a way that nobody thought of."""
    raise LookupError(call.path)


def test_an_internal_error_is_one_line(invoke: Invoke, serve: Serve) -> None:
    """With the way to report it, and no traceback."""
    serve(broken)  # type: ignore[arg-type]
    outcome = invoke("version")

    assert 1 == outcome.code
    assert "error: internal error: LookupError: /version\nhint: please report it" in outcome.err
    assert "Traceback" not in outcome.err


def test_an_internal_error_shows_its_traceback_on_demand(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For anyone who looks into it."""
    serve(broken)  # type: ignore[arg-type]
    monkeypatch.setenv("ARENA_TOPO_DEBUG", "1")

    with pytest.raises(LookupError):
        invoke("version")


def test_an_interrupt_is_no_error(invoke: Invoke, serve: Serve) -> None:
    """The exit code of a process that SIGINT ended."""

    def interrupted(call: Call) -> None:
        raise KeyboardInterrupt(call.path)

    serve(interrupted)  # type: ignore[arg-type]
    outcome = invoke("version")

    assert 130 == outcome.code
    assert "error" not in outcome.err


def test_a_reader_who_went_away_ends_the_command_silently(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As it ends other programs in a pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        code = run(["version", "--client"])

    assert 141 == code
    assert "" == capfd.readouterr().err


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("arena-topo", "arena-topo"),
        ("kubectl-arena_topo", "kubectl arena-topo"),
        ("__main__.py", "arena-topo"),
    ],
)
def test_the_program_has_the_name_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, expected: str
) -> None:
    """Also as kubectl's plugin."""
    monkeypatch.setattr("sys.argv", [str(tmp_path / typed)])

    assert expected == program_name()


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["sumbit"], "hint: did you mean submit?\n"),
        (["lgos", "a"], "hint: did you mean logs?\n"),
        (["topolgy"], "hint: did you mean topology?\n"),
        (["frobnicate"], ""),
        (["x"], ""),
        (["submit", "mpi", "--wokers=2"], "hint: did you mean --workers?\n"),
        (["get", "a", "--namspace=b"], "hint: did you mean --namespace?\n"),
        (["get", "a", "--frob"], ""),
        (["get", "a", "-x"], ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_misspelt_word_is_recognised_and_an_unlike_one_is_not(
    invoke: Invoke, args: list[str], hint: str
) -> None:
    """A suggestion that misleads is worse than none."""
    outcome = invoke(*args)

    assert 2 == outcome.code
    assert "error: there is no " in outcome.err
    assert hint in outcome.err
    assert bool(hint) == ("did you mean" in outcome.err.lower())


def test_a_stopped_sandbox_is_said_to_be_stopped(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A refused connection to its address means that, and no wrong port."""
    home = Home(tmp_path / "sandbox")
    home.folder.mkdir()
    home.settings.write_text('{"layout": "racks", "speed": 1.0, "port": 1}')
    monkeypatch.setattr(Home, "of_user", lambda: home)
    of_it, of_another = (invoke("list", f"--server=https://127.0.0.1:{port}") for port in (1, 2))

    assert (1, "error: the sandbox is stopped\nhint: arena-topo sandbox start\n") == (of_it.code, of_it.err)
    assert "error: the connection to the server 127.0.0.1:2 was refused" in of_another.err


LONG = "x" * 100_000
WIDE = "a " * 50_000


@pytest.mark.parametrize(
    "words",
    [
        (LONG,),
        ("get", LONG),
        ("get", WIDE),
        ("get", "\x01" * 100_000),
        ("list", "-o", LONG),
        ("list", f"--sort-by={WIDE}("),
        ("list", f"--{LONG}"),
        ("list", f"--type={LONG}"),
        ("list", LONG),
        ("list", f"--kubeconfig=/{LONG}"),
        ("list", "-n", LONG),
        ("logs", "a", f"--include={LONG}["),
        ("submit", "mpi", f"--gpus={LONG}"),
        ("submit", "mpi", "--name=a", f"--env={LONG}", "--image=i", "c"),
        ("submit", "mpi", f"--name={LONG}", "--image=i", "c"),
        ("plan", "mpi", f"--from={LONG}"),
        ("plan", "mpi", "--workers=2", f"--require-topology={LONG}", "--from=/nowhere"),
        ("wait", "a", f"--for={LONG}"),
        ("wait", "a", f"--timeout={LONG}"),
        ("topology", f"--product={LONG}"),
    ],
    ids=lambda words: " ".join(word[:24] for word in words),
)
def test_an_error_quotes_a_long_argument_in_part(invoke: Invoke, words: tuple[str, ...]) -> None:
    """A variable that holds a whole file does not bury what is wrong with it."""
    outcome = invoke(*words)

    assert outcome.code in (1, 2)
    assert "error: " in outcome.err
    assert len(outcome.err) < 10_000


def test_the_words_of_an_error_stay_whole_as_far_as_they_can_be_read(invoke: Invoke) -> None:
    """A name may have 253 letters, and the longer one is known by its ends."""
    outcome = invoke("list", f"--{'a' * 250}")
    assert f"error: there is no flag --{'a' * 250}\n" in outcome.err
    outcome = invoke("list", f"--{'a' * 400}b")
    assert f"--{'a' * 126}…{'a' * 126}b\n" in outcome.err
