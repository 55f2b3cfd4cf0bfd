"""What torchrun does for a job's nodes, and no more: it starts the ranks of its node, again whenever nodes
come or go.

It reads what the training operator writes, as torchrun does: ``PET_NNODES``, ``PET_NPROC_PER_NODE``, and
either ``MASTER_ADDR``, ``MASTER_PORT`` and ``PET_NODE_RANK``, or ``PET_RDZV_ENDPOINT`` for an elastic job.
That is a name of one of the nodes, which keeps the list of all: with ``2:4`` nodes the first round has the
first two, and each node that comes or goes begins another round.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

Ranks = list["subprocess.Popen[bytes]"]


def start(command: Sequence[str], node: int, nodes: int, master: str, port: int) -> Ranks:
    """Start the ranks of the node with number *node* of *nodes*."""
    processes = processes_of_node(os.environ.get("PET_NPROC_PER_NODE", "1"))
    return [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                "RANK": str(node * processes + local),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(nodes * processes),
                "MASTER_ADDR": master,
                "MASTER_PORT": str(port),
            },
        )
        for local in range(processes)
    ]


def processes_of_node(text: str) -> int:
    """Return how many ranks a node has: ``auto``, the operator's default, means one for each of its GPUs."""
    return int(text) if text != "auto" else len(list(Path("/dev").glob("nvidia[0-9]*")))


def stop(ranks: Ranks) -> None:
    """End *ranks*, which may have ended."""
    for rank in ranks:
        rank.kill()
        rank.wait()


class Register:
    """The list of the nodes of an elastic job, of which
    there are from *least* to *most*; it is on one of them.
    """

    def __init__(self, port: int, least: int, most: int) -> None:
        self._least, self._most, self._round = least, most, 0
        self._nodes: dict[str, socket.socket] = {}
        self._lock = threading.Lock()
        self._server = socket.create_server(("", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            threading.Thread(target=self._serve, args=self._server.accept()[:1], daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, link.makefile() as lines:
            name = lines.readline().strip()
            self._change(name, link)
            # A node says nothing more, and is there for as long as its connection is.
            with suppress(OSError):
                lines.read()
            self._change(name, None)

    def _change(self, name: str, link: socket.socket | None) -> None:
        with self._lock:
            if link:
                self._nodes[name] = link
            else:
                self._nodes.pop(name, None)
            if not self._least <= len(self._nodes) <= self._most:
                return
            self._round += 1
            # As torch does, by the text of their names: worker-10 comes before worker-2.
            for number, each in enumerate(sorted(self._nodes)):
                try:
                    self._nodes[each].sendall(f"{self._round} {number} {len(self._nodes)}\n".encode())
                except OSError:
                    # Anyone who has gone is taken from the list by its own thread.
                    continue


def rounds(host: str, port: int) -> Iterator[tuple[int, int, int]]:
    """Yield the rounds of an elastic job in which this node
    takes part: the round, the number of this node, the nodes.
    """
    while True:
        try:
            link = socket.create_connection((host, port))
        except OSError:
            # The name does not resolve yet, or nobody listens there yet.
            time.sleep(0.1)
            continue
        with link, link.makefile("rw") as lines:
            lines.write(f"{socket.gethostname()}\n")
            lines.flush()
            for line in lines:
                turn, node, nodes = map(int, line.split())
                yield turn, node, nodes
        return


def main(command: Sequence[str]) -> int:
    """Run *command* as the ranks of this node."""
    # The first process of a container hears only of the signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    endpoint = os.environ.get("PET_RDZV_ENDPOINT")
    if not endpoint:
        environment = os.environ
        node, nodes = int(environment["PET_NODE_RANK"]), int(environment["PET_NNODES"])
        started = start(command, node, nodes, environment["MASTER_ADDR"], int(environment["MASTER_PORT"]))
        return max(rank.wait() for rank in started)
    host, _, text = endpoint.rpartition(":")
    port = int(text)
    least, _, most = os.environ["PET_NNODES"].partition(":")
    if socket.gethostname() == host:
        Register(port, int(least), int(most or least))
    ranks: Ranks = []
    for turn, node, nodes in rounds(host, port):
        stop(ranks)
        # Ranks of a round that has just ended must not meet those of this one.
        ranks = start(command, node, nodes, host, port + turn)
    stop(ranks)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
