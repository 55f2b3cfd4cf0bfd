"""A notation is read once, and an error in it names the flag."""

import click
import pytest

from arena_topo.cli.options.common import JOB_NAME, Notation, duration
from arena_topo.errors import UsageError
from tests.cli.conftest import Invoke, Serve
from tests.cli.pages import pages
from tests.fakes import Answer, Call, missing
from tests.objects import mpijob


def read_duration(notation: Notation[float], text: str, default: float | None = None) -> float | None:
    """Return what a flag ``--time`` of this type makes of *text*."""
    flag = click.Option(["-t", "--time"], type=notation, default=default)
    return notation.convert(text, flag, None)


@pytest.mark.parametrize(
    ("notation", "text", "expected"),
    [
        (duration(), "1h30m", 5400.0),
        (duration(), "0", 0.0),
        (duration(), "500ms", 0.5),
        (duration(), "90", 90.0),
        (duration(least=1), "1s", 1.0),
    ],
)
def test_a_duration_is_seconds(notation: Notation[float], text: str, expected: float) -> None:
    """In Go's notation, or a number of seconds."""
    assert expected == read_duration(notation, text)


@pytest.mark.parametrize(
    ("notation", "text", "message"),
    [
        (duration(bare_seconds=False), "90", "--time: '90' is not a duration"),
        (duration(), "soon", "--time: 'soon' is not a duration"),
        (duration(), "-1s", "--time: '-1s' is not a duration"),
        (duration(least=1), "0s", "--time: 0s is less than 1 s"),
        (duration(), "\udcff", "--time has bytes that are not UTF-8 text"),
    ],
)
def test_what_is_no_duration_names_its_flag(notation: Notation[float], text: str, message: str) -> None:
    """In its long form."""
    with pytest.raises(UsageError, match="^" + message):
        read_duration(notation, text)


@pytest.mark.parametrize("default", [None, 30.0])
def test_an_empty_duration_is_the_flags_default(default: float | None) -> None:
    """A script may pass a variable that is not set."""
    assert default == read_duration(duration(), "", default)


def test_every_command_that_takes_a_job_checks_its_name() -> None:
    """Before it meets a path."""
    arguments = {
        command.name: parameter.type
        for _, command in pages()
        for parameter in command.params
        if isinstance(parameter, click.Argument) and "JOB" in (parameter.metavar or "")
    }
    assert {"get", "logs", "delete", "resume"} <= arguments.keys()
    assert {} == {name: kind for name, kind in arguments.items() if kind is not JOB_NAME}


@pytest.mark.parametrize(
    "args",
    [
        ("get", ""),
        ("get", "a/../b"),
        ("logs", "deploy/x"),
        ("delete", "k1", ""),
        ("delete", "k2/status"),
        ("resume", "."),
    ],
    ids=" ".join,
)
def test_a_bad_name_is_one_error_and_touches_nothing(
    invoke: Invoke, serve: Serve, args: tuple[str, ...]
) -> None:
    """Nothing is sent, even for a good name next to it."""
    transport = serve(lambda _: Answer(body={}))
    outcome = invoke(*args)

    assert (2, "", []) == (outcome.code, outcome.out, transport.calls)
    assert f"error: {args[-1]!r} does not name a training job\n" in outcome.err


def test_a_name_may_have_its_kind_before_it(invoke: Invoke, serve: Serve) -> None:
    """And twice the same job is one job."""
    gone: list[str] = []

    def cluster(call: Call) -> Answer:
        if call.method == "DELETE":
            gone.append(call.path)
        return missing("a") if gone and call.method == "GET" else Answer(body=mpijob("a"))

    serve(cluster)
    assert 0 == invoke("delete", "mpijob/a", "a").code
    assert ["/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs/a"] == gone
