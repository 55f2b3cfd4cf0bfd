"""Ranks that reduce in a loop, and one that does not come any more: ``faulty.py FAULT RANK``.

``FAULT``: ``none``, ``sleep``, ``stop`` (a signal), ``lock`` (it waits for itself), ``left`` (it left the
loop), ``barrier`` (it waits in another collective), ``busy`` (it computes forever), ``compute`` (all of them
compute in each step, long, and continue), ``late`` (it computes ten times as long as the others in each
step).
"""

import os
import signal
import sys
import threading
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
fault, culprit = sys.argv[1], int(sys.argv[2])


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


def step() -> None:
    """Reduce something over all ranks."""
    world.allreduce(1)


_WARM = 5
"""Steps after which all connections between the ranks are made."""
number = 0
while True:
    number += 1
    if number == _WARM and world.rank == 0:
        sys.stdout.write("running\n")
        sys.stdout.flush()
    if number > _WARM and world.rank == culprit:
        match fault:
            case "sleep":
                load()
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "lock":
                take_lock()
            case "left":
                break
            case "barrier":
                world.Barrier()
            case "busy":
                compute(3600)
            case "late":
                compute(0.2)
            case _:
                pass
    if fault == "compute":
        compute(0.3)
    elif fault in ("none", "late"):
        time.sleep(0.02)
    step()
