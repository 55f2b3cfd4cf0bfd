"""Say where each rank is and the options that it was given, as ranks.c does, by mpi4py."""

import os
import socket
import sys
from pathlib import Path

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
if total != world.size * (world.size - 1) // 2:
    sys.exit(3)
gpus = ",".join(sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*")))
words = {
    "rank": world.rank,
    "size": world.size,
    "host": socket.gethostname(),
    "node": Path("/run/machine").read_text("utf-8").strip(),
    "local": os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "?"),
    "gpus": gpus,
    **dict(word.split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word),
}
sys.stdout.write(" ".join(f"{name}={value}" for name, value in words.items()) + "\n")
sys.stdout.flush()
