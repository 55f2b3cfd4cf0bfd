"""The server's process as a record on disk, and how it is recognised before it gets a signal.

A process number alone names nobody: the kernel gives it to another process once the server has ended. Example: the
record says process 4711, started at tick 903144, and meanwhile 4711 is an editor: its start and its command line
differ, so it gets no signal.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

from arena_topo.errors import ArenaTopoError
from arena_topo.sandbox.home import Home

_PIDS = range(2, 2**22 + 1)  # 1 is init, 0 and below are groups of processes to kill(), 2^22 is Linux's limit
_START = 19  # the 22nd field of /proc/PID/stat, counted after the command's name: proc_pid_stat(5)


def command_of(home: Home, python: str) -> list[str]:
    """Return the command line of the server of *home*."""
    return [python, "-m", "arena_topo.sandbox", str(home.folder)]


def record(home: Home, pid: int) -> None:
    """Write down which process serves *home*."""
    home.process.write_text(json.dumps({"pid": pid, "started": _started(pid)}), "utf-8")


def terminate(home: Home) -> int:
    """Send SIGTERM to the server of *home*, which does not answer, and return its number.

    Raises ``ArenaTopoError`` where the recorded process is not recognised as this server.
    """
    pid, started = _recorded(home)
    if pid not in _PIDS or not hasattr(os, "pidfd_open"):
        raise _unrecognised(home)
    try:
        # The descriptor stays with this very process: nothing that gets its number later is signalled.
        descriptor = os.pidfd_open(pid)
    except OSError:
        raise _unrecognised(home) from None
    try:
        if not started or _started(pid) != started or not _is_server(home, pid):
            raise _unrecognised(home)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    finally:
        os.close(descriptor)
    return pid


def _recorded(home: Home) -> tuple[int, int]:
    """Return the process and the start that are on record, zeros where nothing usable is."""
    try:
        document: Any = json.loads(home.process.read_text("utf-8"))
        return int(document["pid"]), int(document["started"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0, 0


def _started(pid: int) -> int:
    """Return when a process started, in clock ticks since the machine did; 0 where the system does not say."""
    try:
        # The command's name is in parentheses, and may itself contain spaces and parentheses.
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_START])
    except (OSError, ValueError, IndexError):
        return 0


def _is_server(home: Home, pid: int) -> bool:
    """Whether a process of this user has the command line of the server of *home*."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return False
    expected = [os.fsencode(word) for word in command_of(home, "")]
    return owner == os.getuid() and words[1:] == expected[1:]


def _unrecognised(home: Home) -> ArenaTopoError:
    hint = f"find it with: ps -ef | grep {home.folder} and end it with: kill PID"
    return ArenaTopoError("the sandbox does not answer, and its process is not recognised", hint=hint)
