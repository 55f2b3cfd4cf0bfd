"""Ranks of MPI that reduce in a loop, of which one has a fault: ``faulty.py FAULT RANK [NUMBERS]``.

``FAULT`` is one of ``faults.py``; so many numbers are reduced in each step.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from faults import run  # type: ignore[import-not-found]  # found next to this file when it runs
from mpi4py import MPI

world = MPI.COMM_WORLD
NUMBERS = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[3].isdecimal() else 1
sent, received = bytearray(8 * NUMBERS), bytearray(8 * NUMBERS)


def step() -> None:
    """Reduce something over all ranks."""
    if NUMBERS == 1:
        world.allreduce(1)
    else:
        world.Allreduce([sent, MPI.DOUBLE], [received, MPI.DOUBLE])


run(sys.argv[1], culprit=int(sys.argv[2]), rank=world.rank, step=step, other=world.Barrier)
