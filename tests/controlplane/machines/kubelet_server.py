"""The HTTPS server of a kubelet: logs, and processes in containers where somebody starts them."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qs, urlsplit

from arena_topo.kube.transport import SharedTlsSocket
from tests.controlplane.components.pair import Pair
from tests.controlplane.machines.container_log import ContainerLog, Request
from tests.controlplane.machines.remote_streams import RemoteStreams

_NANO = 10**9
_HANDSHAKE_SECONDS = 20

Execute: TypeAlias = Callable[[Sequence[str], Mapping[str, Sequence[str]], Callable[[], RemoteStreams]], bool]
"""((namespace, pod, container), the parameters of ``exec``, what opens its streams) -> whether there is such
a container.

It returns when the process has ended.
"""


class KubeletServer:
    """Serves ``/containerLogs/NAMESPACE/POD/CONTAINER`` on loopback from scripted logs.

    ``execute`` serves ``/exec/NAMESPACE/POD/CONTAINER``.
    """

    execute: Execute | None = None

    def __init__(self, certificate: Pair) -> None:
        self._logs: dict[tuple[str, str, str, bool], ContainerLog] = {}
        self._lock = threading.Lock()
        self._http = _Http(certificate, self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})
        self.port: int = self._http.server_address[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for log in self._logs.values():
                log.end()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def log(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> ContainerLog:
        """Return the log of a container, empty at first; ``previous`` is that of its instance before."""
        with self._lock:
            return self._logs.setdefault((namespace, pod, container, previous), ContainerLog())

    def begin(self, namespace: str, pod: str, container: str) -> ContainerLog:
        """Return a new log for a container; that of the instance before it is ``previous`` from then on."""
        with self._lock:
            current = (namespace, pod, container, False)
            if current in self._logs:
                self._logs[namespace, pod, container, True] = self._logs[current]
            self._logs[current] = ContainerLog()
            return self._logs[current]

    def forget(self, namespace: str, pod: str) -> None:
        """Remove the logs of a pod; open streams end."""
        with self._lock:
            for key in [key for key in self._logs if key[:2] == (namespace, pod)]:
                self._logs.pop(key).end()

    def find(self, namespace: str, pod: str, container: str, *, previous: bool) -> ContainerLog | None:
        """Return a log that the test has asked for before, else None."""
        with self._lock:
            return self._logs.get((namespace, pod, container, previous))


def parse_request(query: str, now: int) -> Request:
    """Read the parameters of ``containerLogs`` (PodLogOptions); ``now`` in ns since the epoch."""
    given = {key: values[-1] for key, values in parse_qs(query).items()}
    since = None
    if "sinceSeconds" in given:
        since = now - int(given["sinceSeconds"]) * _NANO
    if "sinceTime" in given:
        since = round(datetime.fromisoformat(given["sinceTime"]).timestamp() * 10**6) * 1000
    return Request(
        follow=given.get("follow") == "true",
        timestamps=given.get("timestamps") == "true",
        tail=int(given["tailLines"]) if "tailLines" in given else None,
        since=since,
    )


class _Http(ThreadingHTTPServer):
    """HTTPS with a thread a connection; all of them are joined when the server closes."""

    daemon_threads = False

    def __init__(self, certificate: Pair, logs: KubeletServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.logs = logs
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The streams of a process are read and written at the same time.
        self._tls.sslsocket_class = SharedTlsSocket
        self._tls.load_cert_chain(certificate.certificate, certificate.key)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands in the connection's own thread, so that a silent client holds up nobody."""
        request.settimeout(_HANDSHAKE_SECONDS)
        with contextlib.suppress(OSError), self._tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_GET(self) -> None:
        """Answer one request for a log or a process and close the connection."""
        self.close_connection = True
        url = urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        execute = self.server.logs.execute
        if len(parts) == 4 and parts[0] == "exec" and execute and RemoteStreams.are_asked_for(self):
            if not execute(parts[1:], parse_qs(url.query), lambda: RemoteStreams(self)):
                self._refuse(404, f'container not found ("{parts[3]}")')
            return
        if len(parts) != 4 or parts[0] != "containerLogs":
            self._refuse(404, "404 page not found")
            return
        previous = "previous=true" in url.query
        log = self.server.logs.find(*parts[1:4], previous=previous)
        if log is None:
            self._refuse(404, f'container "{parts[3]}" of pod "{parts[2]}" has no log')
        elif log.refusal:
            self._refuse(400, log.refusal)
        else:
            self._stream(log, parse_request(url.query, time.time_ns()))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that the base class gives it
        """Stay silent."""

    def _refuse(self, code: int, message: str) -> None:
        body = message.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, log: ContainerLog, request: Request) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for item in log.read(request):
            if isinstance(item, bytes):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(item), item))
            elif item == "drop":
                self._tear()
            else:
                self.wfile.write(b"0\r\n\r\n")

    def _tear(self) -> None:
        """Reset the connection: no end of the body, no farewell of TLS."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
