"""A TLS socket that one thread reads while another one writes.

OpenSSL's connections are not made for that: both directions share the state by which an operation says that it must be
tried again, so that a write that ends in the middle of an interrupted read makes an error of it ("Invalid error code").
Here each operation is tried in turn, without waiting in it; the waiting for the network is done outside of turns.
Source: https://docs.openssl.org/3.0/man7/openssl-threads/
"""

import select
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar

_Result = TypeVar("_Result")


class SharedTlsSocket(ssl.SSLSocket):
    """For ``SSLContext.sslsocket_class``; not blocking after its connection is made, it waits by itself."""

    _turn: threading.Lock

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Create the socket with its lock, since the constructor is the base class's own."""
        created = super().__new__(cls, *args, **options)
        created._turn = threading.Lock()
        return created

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return what comes next, as soon as something does."""
        return self._in_turn(lambda: ssl.SSLSocket.recv(self, buflen, flags))

    def send(self, data: Any, flags: int = 0) -> int:
        """Send *data*, as soon as there is room."""
        return self._in_turn(lambda: ssl.SSLSocket.send(self, data, flags))

    def _in_turn(self, attempt: Callable[[], _Result]) -> _Result:
        while True:
            try:
                with self._turn:
                    return attempt()
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            waiting = select.poll()
            waiting.register(self, event)
            waiting.poll()
