"""What a container's command line says about its own end."""

import pytest

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.objects import Api
from arena_topo.sandbox.api.resources import Registry
from arena_topo.sandbox.api.store import Store
from arena_topo.sandbox.layouts import RUNS
from arena_topo.sandbox.sim.programs import PodProgram, ending_of, program_of
from tests.contract.bodies import pod


@pytest.mark.parametrize(
    ("command", "code", "seconds"),
    [
        pytest.param("sleep 30", 0, 30.0, id="sleep"),
        pytest.param("sh -c sleep 2; sleep 1m; exit 3", 3, 62.0, id="a shell sleeps and exits"),
        pytest.param("bash -c 'exit 7'", 7, 0.0, id="quoted"),
        pytest.param("sh -c bash -c 'exit 7'", 7, 0.0, id="a shell in a shell"),
        pytest.param("exit 256", 0, 0.0, id="one byte"),
        pytest.param("exit 2\nsleep 9", 2, 0.0, id="nothing after exit"),
        pytest.param("mpirun python train.py && exit 3", 3, 0.0, id="after another program"),
        pytest.param("mpirun python train.py || exit 3", 0, 0.0, id="a program that succeeds"),
        pytest.param("if false; then exit 3; fi", 0, 0.0, id="a shell's word"),
        pytest.param("false", 0, 0.0, id="another program"),
        pytest.param("sleep infinity", None, 0.0, id="forever"),
        pytest.param("/usr/sbin/sshd -De", None, 0.0, id="a server"),
        pytest.param(
            'sh -c f=$(mktemp) || exit\n{ echo x; } > "$f"\nexec /usr/sbin/sshd "$@"',
            None,
            0.0,
            id="at its end",
        ),
        pytest.param("", 0, 0.0, id="the image"),
    ],
)
def test_endings(command: str, code: int | None, seconds: float) -> None:
    """The exit code and the time that a command line says itself."""
    ending = ending_of(command)

    assert (code, seconds) == (ending.code, ending.seconds)


@pytest.mark.parametrize(
    ("command", "known"),
    [
        pytest.param("sh -c exit 0", True, id="exit"),
        pytest.param("python train.py; sleep 1", True, id="sleep"),
        pytest.param("agent run", False, id="another program"),
        pytest.param("exit $code", False, id="a variable"),
    ],
)
def test_what_decides_an_ending_is_known(command: str, known: bool) -> None:  # a case's value
    """Whether the command line itself says how it ends."""
    assert known == ending_of(command).known


def _program(body: Object) -> PodProgram:
    body["metadata"] |= {"namespace": "default"}
    program = program_of(Api(Store(), Registry([])), body)
    assert program is not None
    return program


def test_an_annotation_says_what_a_pod_runs() -> None:
    """It stands for the pod's own command, which the sandbox cannot read."""
    body = pod("a", command="python -c 'raise SystemExit(3)'")
    own = _program(body)
    body["metadata"]["annotations"] = {RUNS: "sleep 5; exit 3"}
    annotated = _program(body)

    assert (0, 3, 5.0) == (own.code, annotated.code, annotated.linger)


def test_what_would_run_is_printed() -> None:
    """Nothing is executed, and the log says so."""
    program = _program(pod("a", command="python train.py"))

    assert ["[arena-topo sandbox] nothing is executed here; this would run: sh -c python train.py"] == [
        text for _, text in program.lines
    ]
