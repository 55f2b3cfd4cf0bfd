"""A run leaves nothing behind and can be interrupted, however it was started and however it ends."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.polling import eventually
from tests.harness import guardian
from tests.harness.run import ONLY_NAMED_PLUGINS
from tests.paths import ROOT

_LEAVES_A_PROCESS = """
import subprocess, sys, time

def test_it(pytestconfig):
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, stdout=subprocess.DEVNULL
    )
    child.returncode = 0
    with open("pid", "w") as file:
        file.write(str(child.pid))
    {then}
"""
_IGNORED = """
import signal

def test_it():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Run pytest on a test that leaves a process behind and then waits."""
    with _pytest(tmp_path, _LEAVES_A_PROCESS.format(then="time.sleep(600)")) as run:
        yield run
        run.kill()


def _pytest(folder: Path, test: str, *wrapper: str) -> "subprocess.Popen[str]":
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = (
        "-p",
        "tests.harness.run",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
    )
    return subprocess.Popen(
        [*wrapper, sys.executable, "-m", "pytest", *options, str(folder)],
        cwd=folder,
        env={**ONLY_NAMED_PLUGINS, "PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def _left_behind(folder: Path) -> bool:
    """Tell whether the process still runs; one that has ended has no command line, reaped or not."""
    try:
        return (Path("/proc") / (folder / "pid").read_text() / "cmdline").read_bytes() != b""
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")
def test_nothing_is_left_of_a_run_that_is_killed(started: "subprocess.Popen[str]", tmp_path: Path) -> None:
    """With SIGKILL, which no run can answer."""
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the process to start")
    assert _left_behind(tmp_path)
    started.kill()
    eventually(lambda: not _left_behind(tmp_path), "the guardian to end it")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")
def test_a_run_that_leaves_a_process_fails(tmp_path: Path) -> None:
    """And names it; afterwards it is gone."""
    with _pytest(tmp_path, _LEAVES_A_PROCESS.format(then="")) as run:
        out = run.communicate()[0]

    assert (1, True) == (run.returncode, "processes left behind" in out), out
    assert f"{(tmp_path / 'pid').read_text()}: " in out
    assert not _left_behind(tmp_path)


def test_a_run_in_the_background_can_be_interrupted(tmp_path: Path) -> None:
    """There SIGINT is ignored, which its processes would inherit."""
    with _pytest(tmp_path, _IGNORED, "/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh") as run:
        out = run.communicate()[0]

    assert 0 == run.returncode, out


def test_processes_without_the_mark_are_not_found() -> None:
    """Other runs on the same machine are none of its business."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}) as other:
        found = guardian.processes_of("a run that is not there")
        other.send_signal(signal.SIGKILL)

    assert {} == found
