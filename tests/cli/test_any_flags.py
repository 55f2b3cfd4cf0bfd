"""Whatever is typed ends in an exit code and words, never in a traceback, a hang or a half-done job."""

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.cli.errors import run
from arena_topo.cli.options.common import connection_options
from arena_topo.errors import ArenaTopoError
from tests.cli.conftest import Invoke
from tests.cli.pages import pages
from tests.examples import examples

LINES = 40
"""Command lines of one example: 500 examples are 20,000 lines."""

SPECIAL = (
    "",
    " ",
    "0",
    "-1",
    "1",
    "2",
    "007",
    "1_000",
    "nan",
    "inf",
    "-inf",
    "1e3",
    "1e999",
    "9" * 30,
    "9" * 5000,
    "0x10",
    "٣",
    "true",
    "false",
    "yes",
    "a",
    "a=b",
    "=",
    "a/b",
    "../..",
    "/dev/null",
    "/nope",
    "-",
    "--",
    "--name",
    "x" * 300,
    "x y",
    "ä",
    "\udcff",
    "\x1b[31m",
    "line\nbreak",
    "1h",
    "1h30m",
    "9999999999h",
    "1ns",
    "2026-11-21T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "https://a b",
    "https://[::1",
    "://",
    "{}",
    "json",
    "mpijob/x",
    "0-3,7",
    "3-0",
    "(a+)+$",
    "(",
)

UNTRIED = {
    "agent run": "reads this machine until it is stopped",
    "sandbox": "starts and stops processes; its flags have tests of their own",
}


COMMANDS = [
    (words, command)
    for words, command in pages()
    if not isinstance(command, click.Group)
    and not any(" ".join(words).startswith(untried) for untried in UNTRIED)
]
SHARED = [name for option in connection_options() for name in option.opts]
TEXTS = st.one_of(
    st.sampled_from(SPECIAL), st.text(max_size=12), st.integers().map(str), st.floats().map(str)
)


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Return one command line: a command, flags of it or of others, and whatever for values and arguments."""
    words, command = draw(st.sampled_from(COMMANDS))
    names = [name for param in command.params if isinstance(param, click.Option) for name in param.opts]
    flags = st.one_of(st.sampled_from(names or ["--help"]), st.sampled_from(SHARED), TEXTS)
    line = list(words)
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.integers(0, 3))
        value = draw(TEXTS)
        if kind == 0:
            line.append(value)
        elif kind == 1:
            line.append(f"{draw(flags)}={value}")
        else:
            line += [draw(flags), value]
    # A NUL cannot be in an argument of a process.
    return [word.replace("\0", "") for word in line]


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Stand in an empty folder, without a cluster: anyone
    who gets as far as connecting has been understood.
    """

    def connect(*_: object) -> None:
        raise ArenaTopoError("connected")

    for name, value in {
        "HOME": tmp_path,
        "KUBECONFIG": tmp_path / "none",
        "XDG_CONFIG_HOME": tmp_path / "c",
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("arena_topo.kube.session.connect", connect)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["arena-topo"])


def outcome(line: Sequence[str]) -> tuple[int, str]:
    """Return the exit code of a line, and what it says on stderr."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = run(line)
    finally:
        sys.stdin = before
    return int(code), err.buffer.getvalue().decode()


# Twenty thousand lines of the full profile take minutes, and on a loaded machine many.
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("nowhere")
@settings(max_examples=examples(500), deadline=None)
@given(typed=st.lists(lines(), min_size=LINES, max_size=LINES))
def test_no_line_ends_in_a_traceback(typed: list[list[str]]) -> None:
    """Each has an exit code that is documented, and says something where it is not 0."""
    for line in typed:
        code, said = outcome(line)

        assert code in range(6), line
        assert "internal error" not in said, (line, said)
        assert "Traceback" not in said, (line, said)
        if code:
            assert "error: " in said or "Usage: " in said, (line, said)


@pytest.mark.parametrize("number", ["nan", "inf", "1_000", "٣", "0x10", "1e999", "9" * 400, "", " 1"])
@pytest.mark.parametrize(
    "line",
    [
        ["submit", "mpi", "--name=a", "--image=i", "--workers={}", "c"],
        ["submit", "mpi", "--name=a", "--image=i", "--gpus={}", "c"],
        ["predict", "--ranks=2", "--busbw={}"],
        ["predict", "--ranks={}"],
        ["predict", "--ranks=2", "--batch={}"],
        ["logs", "a", "--tail={}"],
        ["logs", "a", "--since={}s"],
        ["get", "a", "--request-timeout={}s"],
        ["sandbox", "start", "--speed={}"],
        ["sandbox", "start", "--port={}"],
    ],
    ids=lambda line: line[0] + line[-1] if isinstance(line, list) else "",
)
def test_what_only_python_calls_a_number_is_none(invoke: Invoke, line: list[str], number: str) -> None:
    """One error with the flag's name, exit code 2, and nothing started."""
    done = invoke(*(word.format(number) for word in line))

    assert (2, "") == (done.code, done.out), done.err
    flag = next(word for word in line if "{}" in word).partition("=")[0]
    assert flag in done.err


@pytest.mark.parametrize("duration", ["9999999999h", "1e9h", f"{'9' * 400}s"])
def test_a_duration_beyond_reason_is_an_error(invoke: Invoke, duration: str) -> None:
    """Go's end after 292 years, and the server would refuse longer ones in words of its own."""
    assert 2 == invoke("logs", "a", f"--since={duration}").code


@pytest.mark.parametrize(
    "address", ["https://a b", "https://[::1", "://", "https://a\tb", "ftp://a", "https://ä b"]
)
def test_an_address_that_is_none_is_told(invoke: Invoke, address: str) -> None:
    """Before anything is sent."""
    done = invoke("get", "a", f"--server={address}")

    assert done.code in (1, 2)
    assert done.err.startswith("error: ")
    assert "internal error" not in done.err


def test_bytes_that_are_no_text_are_told(invoke: Invoke) -> None:
    """Wherever they stand."""
    for line in (
        ["get", "\udcff"],
        ["get", "a", "--context=\udcff"],
        ["\udcff"],
        ["logs", "a", "--include=\udcff"],
    ):
        done = invoke(*line)
        assert done.code in (1, 2), line
        assert "internal error" not in done.err, (line, done.err)
