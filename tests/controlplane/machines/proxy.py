"""A wire to the API server that a test can cut."""

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

_CHUNK = 65536


class CuttableWire:
    """Forwards TCP connections on loopback to ``port`` until it is cut; TLS passes through untouched."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closing = False
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        """Address to put into a kubeconfig in place of the API server's."""
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        self.cut()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def cut(self) -> int:
        """Reset every open connection, as a failing load balancer does; return how many there were."""
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RD)
            return len(self._open) // 2

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            if self._closing:
                near.close()
                return
            far = socket.create_connection(self._target)
            with self._lock:
                self._open += [near, far]
            self._spawn(self._forward, near, far)

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        with selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
            ready.register(near, selectors.EVENT_READ, (near, far))
            ready.register(far, selectors.EVENT_READ, (far, near))
            while all(_move(*key.data) for key, _ in ready.select()):
                pass
        with self._lock:
            self._open = [end for end in self._open if end not in (near, far)]
            near.close()
            far.close()

    def _spawn(self, target: Callable[..., None], *ends: socket.socket) -> None:
        thread = threading.Thread(target=target, args=ends)
        self._threads.append(thread)
        thread.start()


def _move(source: socket.socket, sink: socket.socket) -> bool:
    """Forward what has come; False at the end of the stream."""
    data = source.recv(_CHUNK)
    sink.sendall(data)
    return bool(data)
