"""A small process that owns the components and ends them when anyone who started it is gone.

Run as a script with a pipe for stdin. Each line is a request in JSON, answered by a line on stdout:
``{"start": [argv], "log": path}`` -> ``{"pid": n}`` and ``{"stop": pid}`` -> ``{"code": n}``, ``{"poll":
pid}`` -> ``{"code": n | null}``, ``{"keep": true}`` -> ``{}``. The end of stdin, which the kernel makes also
when the owner is killed with SIGKILL, ends everything and removes the folder named by the first argument,
unless it is to be kept.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Children:
    """The processes started, each the leader of a group of its own."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, argv: list[str], log: str) -> int:
        """Start ``argv`` with its output appended to ``log`` and return its pid."""
        with open(log, "ab") as output:  # noqa: PTH123  # importing pathlib would delay every start
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  # this process has no threads
            )
        self._running[child.pid] = child
        return child.pid

    def stop(self, pid: int) -> int:
        """Kill the group of ``pid`` and return its exit code once it is gone and its ports are free."""
        child = self._running.pop(pid)
        _kill_group(pid)
        return child.wait()

    def poll(self, pid: int) -> int | None:
        """Return the exit code of ``pid``, None while it runs."""
        return self._running[pid].poll()

    def stop_all(self) -> None:
        """Kill every group first, then wait for all: what they hold is thrown away anyway."""
        for pid in self._running:
            _kill_group(pid)
        for child in self._running.values():
            child.wait()


def _die_with_parent() -> None:
    """Ask Linux for SIGKILL when the supervisor dies: the second guard, for when it is itself killed."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _answer(children: Children, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "start" in request:
            return {"pid": children.start(request["start"], request["log"])}
        if "stop" in request:
            return {"code": children.stop(request["stop"])}
    except OSError as error:
        return {"error": str(error)}
    return {"code": children.poll(request["poll"])} if "poll" in request else {}


def main() -> None:
    """Serve requests until stdin ends, then end all children."""
    for interrupt in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            interrupt, signal.SIG_IGN
        )  # the pipe alone decides, so that no signal can orphan a child
    children = Children()
    scratch = sys.argv[1]
    try:
        while line := sys.stdin.readline():
            request = json.loads(line)
            scratch = "" if "keep" in request else scratch
            sys.stdout.write(json.dumps(_answer(children, request)) + "\n")
            sys.stdout.flush()
    finally:
        children.stop_all()
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
