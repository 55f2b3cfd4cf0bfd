"""What a rank does instead of the next step of its loop.

``FAULT``: ``none``, ``sleep``, ``stop`` (a signal), ``lock`` (it waits for itself), ``left`` (it left the
loop), ``barrier`` (it waits in another collective), ``busy`` (it computes forever), ``disk`` (it tries
forever to write onto a full disk), ``compute`` (all of them compute in each step, long, and continue),
``work`` (all of them compute a little in each step), ``large`` (they send much), ``late`` (it computes ten
times as long as the others in each step).
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

_WARM = 5
"""Steps after which all connections between the ranks are made."""
_DISK = Path("/mnt/checkpoint")


def compute(seconds: float) -> None:
    """Use the processor for so long."""
    ends = time.process_time() + seconds
    while time.process_time() < ends:
        pass


def load() -> None:
    """Wait for data that never come."""
    time.sleep(3600)


def take_lock() -> None:
    """Wait for a lock that this very thread holds."""
    lock = threading.Lock()
    with lock, lock:
        pass


def save() -> None:
    """Write a checkpoint again and again, onto a disk on which it has no room."""
    while True:
        try:
            _DISK.write_bytes(bytes(1 << 20))
        except OSError:
            time.sleep(1)


def stop() -> None:
    """Be stopped by a signal."""
    os.kill(os.getpid(), signal.SIGSTOP)


def run(
    fault: str, *, culprit: int, rank: int, step: Callable[[], object], other: Callable[[], object]
) -> None:
    """Take one *step* after another; the *culprit* has its *fault*, such as an *other* collective."""
    faults: dict[str, Callable[[], object]] = {
        "sleep": load,
        "stop": stop,
        "lock": take_lock,
        "barrier": other,
        "busy": lambda: compute(3600),
        "disk": save,
        "late": lambda: compute(0.2),
    }
    for number in count(1):
        if number == _WARM and rank == 0:
            sys.stdout.write("running\n")
            sys.stdout.flush()
        if number > _WARM and rank == culprit:
            if fault == "left":
                return
            faults.get(fault, int)()
        if fault == "compute":
            compute(0.3)
        elif fault == "work":
            compute(0.01)
        elif fault in ("none", "late", "large"):
            time.sleep(0.02)
        step()
        if rank == 0 and (steps := os.environ.get("STEPS")):
            Path(steps).write_text(str(number), "utf-8")
