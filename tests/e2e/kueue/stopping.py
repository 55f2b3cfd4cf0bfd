"""A replica that stops itself, as if its machine stood
still, at one moment of the answer that it gives a job.
"""

import json
import os
import signal
import sys
import threading
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from arena_topo.__main__ import main
from arena_topo.kube.transport import Request, Response, Transport
from tests.e2e.arena import Arena, Running
from tests.paths import ROOT

MOVED = "moved"
"""In place of the state of an answer: the job's lost workers are pinned to other nodes."""


class Moment(Enum):
    """When in the course of a request."""

    DECIDED = "decided"
    """The Lease was looked at, and nothing is sent yet."""

    SENT = "sent"
    """The server has done it, and nobody knows yet."""


@dataclass(frozen=True, slots=True)
class Stop:
    """At the *moment* of the first answer to the job of this name that says *state*."""

    moment: Moment
    state: str
    job: str


def stopping(arena: Arena, stop: Stop, folder: Path) -> Arena:
    """Return the tool that stops itself at *stop*, as a program in *folder*."""
    program = folder / "arena-topo"
    imports = f"sys.path.insert(0, {str(ROOT)!r})\nfrom tests.e2e.kueue import stopping"
    call = f"stopping.run({stop.moment.value!r}, {stop.state!r}, {stop.job!r})"
    program.write_text(f"#!{sys.executable}\nimport sys\n{imports}\n{call}\n", "utf-8")
    program.chmod(0o755)
    return replace(arena, program=program)


def has_stopped(running: Running) -> bool:
    """Whether the program stands still."""
    return os.waitid(os.P_PID, running.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def run(moment: str, state: str, job: str) -> None:
    """Run the command line, and stop at that moment."""
    stop, send, left = Stop(Moment(moment), state, job), Transport.send, [True]

    def sent(self: Transport, request: Request) -> Response:
        if not (_is_answer(request, stop) and left):
            return send(self, request)
        left.clear()
        if stop.moment is Moment.DECIDED:
            _stop()
        response = send(self, request)
        if stop.moment is Moment.SENT:
            _stop()
        return response

    Transport.send = sent  # type: ignore[method-assign]  # the program itself knows nothing of it
    main()


def _stop() -> None:
    # Sent to the process it would stop whichever thread takes it first, and this one would continue for a
    # moment.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _is_answer(request: Request, stop: Stop) -> bool:
    if stop.state == MOVED:
        is_of_job = request.path.partition("?")[0].endswith(f"/mpijobs/{stop.job}")
        return is_of_job and request.method == "PATCH" and b"pin-nodes" in (request.body or b"")
    if request.method != "PATCH" or f"/workloads/mpijob-{stop.job}-" not in request.path:
        return False
    return any(
        (each["op"], each["path"].rpartition("/")[2], each["value"]) == ("add", "state", stop.state)
        for each in json.loads(request.body or b"[]")
    )
