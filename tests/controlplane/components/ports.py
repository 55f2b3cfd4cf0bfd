"""Free TCP ports on loopback."""

import random
import socket
from collections.abc import Iterator

_BELOW_EPHEMERAL = range(12000, 32000)  # no outgoing connection takes a port from here in the meantime


def free_ports() -> Iterator[int]:
    """Yield ports that nobody listens on, each once."""
    chosen = random.SystemRandom()
    tried = chosen.sample(_BELOW_EPHEMERAL, len(_BELOW_EPHEMERAL))
    return (port for port in tried if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
