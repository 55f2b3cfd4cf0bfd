"""Ends what a test run leaves behind, however the run dies.

Every process of a run inherits the run's mark in its environment. A small process outside of the run waits on
a pipe that the kernel closes also when pytest is killed with SIGKILL, and then ends whatever still bears the
mark: pytest's workers, followed logs, sandboxes that outlive the command which started them. The components
of a control plane bear no mark: their own supervisor ends them when its owner is gone. Last goes the run's
folder, in which all of them keep their files.

Run as a script with the mark and the folder as its arguments. Linux only: elsewhere there is no ``/proc`` to
read.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

MARK = "ARENA_TOPO_TEST_RUN"
FOLDER = "ARENA_TOPO_TEST_FOLDER"
"""Variable that names the folder of the run: what lies there goes with the run, however it ends."""

_GRACE_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


def processes_of(run: str) -> dict[int, str]:
    """Return the processes that bear the mark *run*, pid -> command line, without this one."""
    wanted = f"{MARK}={run}".encode()
    return {pid: read_proc(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            for pid in pids() if wanted in read_proc(pid, "environ").split(b"\0")}  # fmt: skip


def pids() -> Iterator[int]:
    """Yield the processes of this machine but this one; none where there is no ``/proc``."""
    names = os.listdir("/proc") if sys.platform == "linux" else []  # noqa: PTH208  # importing pathlib would delay every start
    return (int(name) for name in names if name.isdigit() and int(name) != os.getpid())


def read_proc(pid: int, file: str) -> bytes:
    """Return what ``/proc`` says of a process in *file*, nothing where it has ended or is somebody else's."""
    try:
        with open(f"/proc/{pid}/{file}", "rb") as stream:  # noqa: PTH123  # see above
            return stream.read()
    except OSError:
        return b""


def end_processes_of(run: str) -> None:
    """Ask every marked process to end, and kill those that do not."""
    deadline = time.monotonic() + _GRACE_SECONDS
    asked: set[int] = set()
    while found := processes_of(run):
        for pid in found:
            if time.monotonic() > deadline:
                _send(pid, signal.SIGKILL)
            elif pid not in asked:
                _send(pid, signal.SIGTERM)
        asked |= found.keys()
        time.sleep(_PAUSE_SECONDS)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def remove(folder: str) -> None:
    """Remove *folder*, into which supervisors of control planes may still write for a moment."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while os.path.exists(folder) and time.monotonic() < deadline:  # noqa: PTH110  # see pids
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_PAUSE_SECONDS)


def watch(run: str, folder: str) -> "subprocess.Popen[bytes]":
    """Start the guardian of *run*, whose files are in *folder*; it acts when its stdin ends."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, run, folder],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # Ctrl-C in the terminal reaches the tests only
    )


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_processes_of(sys.argv[1])
    remove(sys.argv[2])
