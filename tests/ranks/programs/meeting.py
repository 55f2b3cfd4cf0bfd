"""A rank of a plain TCP program: all ranks meet at rank 0, learn of each other, and each says whom it met.

What it reads is what torchrun, or the training operator, sets: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``,
``MASTER_PORT``. With ``--stay`` it continues until it is ended, as training does.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TextIO

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def receive() -> list[int]:
    """Return the ranks that met, as rank 0 learns them, and tell all others."""
    links: list[TextIO] = []
    with socket.create_server(("", port)) as server:
        while len(links) < size - 1:
            links.append(server.accept()[0].makefile("rw"))
        met = sorted([rank, *(int(link.readline()) for link in links)])
        for link in links:
            link.write(",".join(map(str, met)) + "\n")
            link.close()
    return met


def report() -> list[int]:
    """Tell rank 0 of this one, and return the ranks that met."""
    while True:
        try:
            with socket.create_connection((host, port)) as connection, connection.makefile("rw") as link:
                link.write(f"{rank}\n")
                link.flush()
                return [int(each) for each in link.readline().split(",")]
        except (OSError, ValueError):
            # Its name does not resolve yet, or it does not listen yet.
            time.sleep(0.1)


words = {
    "rank": rank,
    "size": size,
    "host": socket.gethostname(),
    "node": Path("/run/machine").read_text("utf-8").strip(),
    "local": os.environ.get("LOCAL_RANK", "0"),
    "gpus": ",".join(sorted(path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*"))),
    "met": ",".join(map(str, report() if rank else receive())),
    # Each round meets at a port of its own, the next one at the next.
    "port": port,
}
sys.stdout.write(" ".join(f"{name}={value}" for name, value in words.items()) + "\n")
sys.stdout.flush()
if "--stay" in sys.argv:
    signal.pause()
