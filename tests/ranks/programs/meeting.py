"""A rank of a plain TCP program: all ranks meet at rank 0, learn of each other, and each says whom it met.

What it reads is what torchrun, or the training operator, sets: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``,
``MASTER_PORT``, at which torch's own store may listen: ranks meet at the next port. With ``--stay`` it
continues until it is ended, or until another rank ends, as training does.
"""

import os
import select
import socket
import sys
import time
from pathlib import Path

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1
sockets: list[socket.socket] = []
"""Of rank 0 those to all others, of these that to rank 0."""


def receive() -> tuple[str, str]:
    """Return the ranks that met, as rank 0 learns them, and a number that grows with each round; tell all."""
    with socket.create_server(("", port)) as server:
        while len(sockets) < size - 1:
            sockets.append(server.accept()[0])
        links = [each.makefile("rw") for each in sockets]
        met = ",".join(map(str, sorted([rank, *(int(link.readline()) for link in links)])))
        told = met, str(time.time_ns())
        for link in links:
            link.write(" ".join(told) + "\n")
            link.flush()
    return told


def report() -> tuple[str, str]:
    """Tell rank 0 of this one, and return what it tells all."""
    while True:
        try:
            connection = socket.create_connection((host, port))
            link = connection.makefile("rw")
            link.write(f"{rank}\n")
            link.flush()
            met, number = link.readline().split()
        except (OSError, ValueError):
            # Its name does not resolve yet, or it does not listen yet.
            time.sleep(0.1)
        else:
            sockets.append(connection)
            return met, number


met, number = report() if rank else receive()
words = {
    "rank": rank,
    "size": size,
    "host": socket.gethostname(),
    "node": Path("/run/machine").read_text("utf-8").strip(),
    "local": os.environ.get("LOCAL_RANK", "0"),
    "gpus": ",".join(sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))),
    "met": met,
    "round": number,
}
sys.stdout.write(" ".join(f"{name}={value}" for name, value in words.items()) + "\n")
sys.stdout.flush()
if "--stay" in sys.argv:
    select.select(sockets, (), ())
    # The end of one rank is the end of all, as a collective that fails is.
    sys.exit(1)
