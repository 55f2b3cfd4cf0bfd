"""Free TCP ports on loopback."""

import os
import random
import socket
from collections.abc import Iterator

_BELOW_EPHEMERAL = range(12000, 32000)  # no outgoing connection takes a port from here in the meantime


def free_ports() -> Iterator[int]:
    """Yield ports that nobody listens on, each once; workers
    of pytest-xdist take theirs from ranges of their own.
    """
    mine = ports_of(
        os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    )
    return (port for port in random.SystemRandom().sample(mine, len(mine)) if _is_free(port))


def ports_of(worker: str, workers: int) -> range:
    """Return the ports of *worker* (``gw0``): two that start a control plane at once never try the same."""
    return _BELOW_EPHEMERAL[int(worker.removeprefix("gw") or 0) % workers :: workers]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
