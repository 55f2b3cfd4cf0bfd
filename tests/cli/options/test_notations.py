"""A notation is read once, and what is wrong with it is said with the flag's name."""

from collections.abc import Iterator

import click
import pytest

from arena_topo.cli.app import cli
from arena_topo.cli.options.common import Duration, JobName
from arena_topo.errors import UsageError
from tests.cli.conftest import Invoke, Serve
from tests.fakes import Answer, Call, missing
from tests.objects import mpijob


def read(duration: Duration, text: str, default: float | None = None) -> float | None:
    """Return what a flag ``--time`` of this type makes of *text*."""
    flag = click.Option(["-t", "--time"], type=duration, default=default)
    return duration.convert(text, flag, None)


@pytest.mark.parametrize(
    ("duration", "text", "expected"),
    [
        (Duration(), "1h30m", 5400.0),
        (Duration(), "0", 0.0),
        (Duration(), "500ms", 0.5),
        (Duration(bare_seconds=True), "90", 90.0),
        (Duration(least=1), "1s", 1.0),
    ],
)
def test_a_duration_is_seconds(duration: Duration, text: str, expected: float) -> None:
    """In Go's notation, and bare where the flag says so."""
    assert expected == read(duration, text)


@pytest.mark.parametrize(
    ("duration", "text", "message"),
    [
        (Duration(), "90", "--time: '90' is not a duration"),
        (Duration(bare_seconds=True), "soon", "--time: 'soon' is not a duration"),
        (Duration(), "-1s", "--time: '-1s' is not a duration"),
        (Duration(least=1), "0s", "--time: 0s is less than 1 s"),
        (Duration(), "\udcff", "--time has bytes that are not UTF-8 text"),
    ],
)
def test_what_is_no_duration_names_its_flag(duration: Duration, text: str, message: str) -> None:
    """In its long form."""
    with pytest.raises(UsageError, match="^" + message):
        read(duration, text)


@pytest.mark.parametrize("default", [None, 30.0])
def test_an_empty_duration_is_the_flags_default(default: float | None) -> None:
    """A script may pass a variable that is not set."""
    assert default == read(Duration(), "", default)


def commands(group: click.Group) -> Iterator[click.Command]:
    """Yield every command below *group*."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command)
        else:
            yield command


def test_every_command_that_takes_a_job_checks_its_name() -> None:
    """Before it meets a path."""
    arguments = {
        command.name: parameter.type
        for command in commands(cli)
        for parameter in command.params
        if isinstance(parameter, click.Argument) and "JOB" in (parameter.metavar or "")
    }
    assert {"get", "logs", "delete", "resume"} <= arguments.keys()
    assert {} == {name: kind for name, kind in arguments.items() if not isinstance(kind, JobName)}


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
