"""What a command line says about its own end, compared with what a shell makes of it."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.sandbox.sim.programs import ending_of

# Harmless programs of every machine, so that a real shell can be asked as well.
SCRIPTS = [
    "exit 3",
    "exit",
    "exit 256",
    "exit -1",
    "exit $?",
    "false; exit $?",
    "false",
    "true",
    "! true",
    "! false",
    "false; true",
    "true; false",
    "false || exit 4",
    "true && exit 5",
    "false && exit 5",
    "false || true && exit 6",
    "false | true",
    "true | false",
    "set -o pipefail; false | true",
    "set -e; false; exit 7",
    "set -e; false || true; exit 8",
    "set -e; ! true; exit 9",
    "set -euo pipefail\nfalse\nexit 10",
    "bash -c 'exit 11'",
    "bash -ec 'false; exit 12'",
    "sh -c \"sh -c 'exit 13'\"",
    "exec false",
    "env A=1 false",
    "A=1 false",
    "echo 'exit 14'",
    "echo exit 15",
    "true # exit 16",
    "# don't\nexit 17",
    "false 2>&1",
    "echo x > /dev/null; exit 18",
    "python3 -c 'raise SystemExit(19)'",
    "python3 -c 'import sys; sys.exit(20)'",
    "python3 -c 'import sys; sys.exit(\"no\")' 2>&1",
    "python3 -c 'raise ValueError' 2>&1",
    "python3 -c 'assert 0' 2>&1",
    "python3 -c 'def' 2>&1",
    "python3 -c 'raise SystemExit'",
    "timeout 5 false",
    "nohup false 2>&1",
    "kill -9 $$",
    "kill -TERM $$",
    "false & true",
    "false \\\n || exit 21",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_reader_agrees_with_bash(script: str) -> None:
    """Each script ends as bash ends it."""
    shell = shutil.which("bash")
    assert shell, "the test compares with bash"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=False, timeout=120)
    # Python reports a death by a signal as its negative number, a container as 128 and more.
    real = done.returncode if done.returncode >= 0 else 128 - done.returncode

    assert real == ending_of(["bash", "-c", script]).code


@pytest.mark.parametrize(
    ("words", "code", "seconds"),
    [
        pytest.param(["false"], 1, 0.0, id="a program by itself"),
        pytest.param(["python", "-c", "import time; time.sleep(3); exit(2)"], 2, 3.0, id="Python sleeps"),
        pytest.param(["sh", "-c", "sleep 2; sleep 1m; exit 3"], 3, 62.0, id="a shell sleeps"),
        pytest.param(
            ["bash", "-o", "pipefail", "-c", "false | true"], 1, 0.0, id="options before the script"
        ),
        pytest.param(["sh", "-c", "mpirun -np 4 -x A=b bash -c 'exit 7'"], 7, 0.0, id="behind mpirun"),
        pytest.param(["mpirun", "-np", "2", "python", "train.py"], 0, 0.0, id="an unknown program"),
        pytest.param(["sh", "-c", "mpirun python train.py && exit 3"], 3, 0.0, id="after an unknown program"),
        pytest.param(["sleep", "infinity"], None, 0.0, id="for ever"),
        pytest.param(["/usr/sbin/sshd", "-De"], None, 0.0, id="a server"),
        pytest.param(["sh", "-c", "sleep infinity & wait"], None, 0.0, id="waiting for ever"),
        pytest.param(["sh", "-c", "sleep infinity & exit 2"], 2, 0.0, id="not waiting"),
        pytest.param(["sh", "-c", "if false; then exit 3; fi"], 0, 0.0, id="what is not read"),
        pytest.param(
            ["/bin/sh", "-c", 'f=$(mktemp) || exit\n{ echo x; } > "$f"\nexec /usr/sbin/sshd "$@"'],
            None,
            0.0,
            id="a server in what is not read",
        ),
        pytest.param([], 0, 0.0, id="the image"),
    ],
)
def test_endings(words: list[str], code: int | None, seconds: float) -> None:
    """The exit code and the time that a command line says itself."""
    ending = ending_of(words)

    assert (code, seconds) == (ending.code, ending.seconds)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        pytest.param(["sh", "-c", "exit 0"], True, id="exit"),
        pytest.param(["sh", "-c", "python train.py; true"], True, id="a last command that is known"),
        pytest.param(["agent", "run"], False, id="an unknown program"),
        pytest.param(["sh", "-c", "exit $code"], False, id="a variable"),
        pytest.param(["sh", "-c", "for x in 1 2; do exit 1; done"], False, id="a loop"),
    ],
)
def test_what_decides_an_ending_is_known(words: list[str], known: bool) -> None:  # a case's value
    """Whether the command line itself says how it ends."""
    assert known == ending_of(words).known


_PIECES = st.sampled_from(
    [
        *(
            "sh",
            "-c",
            "bash",
            "exit",
            "3",
            "false",
            "&&",
            "||",
            "|",
            ";",
            "&",
            "!",
            "'",
            '"',
            "\\",
            "\n",
            "$$",
        ),
        *(
            "kill",
            "-9",
            "python",
            "raise SystemExit(2)",
            "set",
            "-e",
            "#",
            "(",
            ")",
            "sleep",
            "infinity",
            "wait",
        ),
        *("exec", "env", "$("),
    ]
)


@given(st.lists(_PIECES | st.text(max_size=8), max_size=12), st.booleans())
def test_no_command_line_is_too_odd(pieces: list[str], script: bool) -> None:  # drawn by hypothesis
    """Whatever users type, the reader gives an ending: an exit code of one byte, or none."""
    ending = ending_of(["sh", "-c", " ".join(pieces)] if script else pieces)

    assert ending.code is None or 0 <= ending.code < 256
    assert 0 <= ending.seconds < 1e12


def test_commands_in_commands_have_a_bound() -> None:
    """A line of ten thousand programs that start programs is no error."""
    assert 0 == ending_of(["env"] * 10_000).code
