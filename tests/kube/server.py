"""A small HTTPS server whose answers a test writes, and a proxy that only connects."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from arena_topo.kube.transport import SharedTlsSocket
from tests.controlplane.components.pair import Pair
from tests.controlplane.components.pki import Authority

_FIN_WAIT_1 = 4
"""Linux's state of a connection whose end the other side
has not acknowledged (``include/net/tcp_states.h``).
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as the server saw it; ``turn`` counts the requests of its connection, from 1."""

    method: str
    path: str
    headers: dict[str, list[str]]
    body: bytes
    peer: str
    turn: int

    def header(self, name: str) -> str:
        """Return a header, empty if there was none."""
        return next(iter(self.headers.get(name.lower(), [])), "")


@dataclass(slots=True)
class Reply:
    """What to answer: a body, or chunks with pauses, and how the connection ends.

    ``ending`` is ``end`` to keep it open, ``drop`` to close it after the answer, ``no answer`` to close it
    instead of answering, ``silence`` to say nothing more. ``raw`` are bytes in place of all that, headers
    included, sent *pace* seconds apart for as long as the client reads them.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    ending: str = "end"
    raw: Iterable[bytes] = ()
    pace: float = 0.0


Rule = Callable[[Seen], Reply]


@dataclass(slots=True)
class Server:
    """A running server; ``seen`` grows, ``rule`` may be replaced.

    ``dropped`` is set once the client's kernel knows that a connection was dropped.
    """

    port: int
    authority: Authority
    rule: Rule
    secure: bool = True
    seen: list[Seen] = field(default_factory=list)
    silence: threading.Event = field(default_factory=threading.Event)
    dropped: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The server's address."""
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"


def status(code: int, reason: str, message: str = "", **details: str) -> Reply:
    """Return a refusal as a Status object."""
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "details": details}
    return Reply(code, json.dumps(body).encode())


@contextmanager
def serve(
    folder: Path,
    rule: Rule,
    *,
    hosts: tuple[str, ...] = ("localhost",),
    addresses: tuple[str, ...] = ("127.0.0.1",),
    secure: bool = True,
) -> Iterator[Server]:
    """Serve on loopback, if *secure* over TLS, asking for client certificates without insisting."""
    authority = Authority.create(folder)
    pair = authority.server("server", addresses, hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as http:
        http.daemon_threads = True
        if secure:
            http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
        server = Server(http.server_address[1], authority, rule, secure)
        http.scripted = server  # type: ignore[attr-defined]  # for the handler
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.silence.set()
            http.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 20
    turn = 0

    def handle(self) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Stay silent."""

    def _answer(self) -> None:
        server: Server = self.server.scripted  # type: ignore[attr-defined]  # set by serve
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.turn += 1
        seen = Seen(self.command, self.path, headers, body, self._peer(), self.turn)
        server.seen.append(seen)
        reply = server.rule(seen)
        if reply.ending != "no answer":
            self._reply(reply, server)
        if reply.ending != "end":
            self.close_connection = True
            self._drop(server)

    def _reply(self, reply: Reply, server: Server) -> None:
        if reply.raw:
            self.close_connection = True
            for piece in reply.raw:
                self.wfile.write(piece)
                if reply.pace and server.silence.wait(reply.pace):
                    return
            return
        if reply.ending == "silence" and not reply.chunks:
            server.silence.wait(20)
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.chunks:
            self._stream(reply, server)
        else:
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

    def _drop(self, server: Server) -> None:
        """Close our side, and wait until the other one has acknowledged that."""
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _FIN_WAIT_1:
            time.sleep(0.001)
        server.dropped.set()

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815  # the base class's names

    def _stream(self, reply: Reply, server: Server) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in reply.chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if reply.ending == "silence":
            server.silence.wait(20)
        elif reply.ending == "end":
            self.wfile.write(b"0\r\n\r\n")

    def _peer(self) -> str:
        if not isinstance(self.connection, ssl.SSLSocket):
            return ""
        certificate: Any = self.connection.getpeercert()
        subject = dict(pair[0] for pair in certificate["subject"]) if certificate else {}
        return str(subject.get("commonName", ""))


@contextmanager
def refusing_port() -> Iterator[int]:
    """Yield a port of this machine that refuses connections, and that nobody else can take meanwhile."""
    with socket.socket(socket.AF_INET) as bound:
        # Bound, and never listening: the kernel refuses anyone who connects.
        bound.bind(("", 0))
        yield bound.getsockname()[1]


@contextmanager
def slow_handshake() -> Iterator[str]:
    """Run a server that begins a TLS handshake and sends it byte
    by byte, for as long as the client waits; yield its URL.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept_slowly, args=(listener,))
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _accept_slowly(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                # A record of a handshake (type 22) with 16 KiB.
                client.sendall(b"\x16\x03\x03\x40\x00")
                while True:
                    client.sendall(b"\x00")
                    time.sleep(0.02)


@contextmanager
def proxy(pair: Pair | None = None) -> Iterator[tuple[str, list[str]]]:
    """Run a proxy that knows CONNECT alone, over TLS with a *pair*; yield its URL and what it was asked."""
    asked: list[str] = []
    context = None
    if pair:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, context, asked), daemon=True)
        thread.start()
        yield f"{'https' if pair else 'http'}://127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _accept(listener: socket.socket, context: ssl.SSLContext | None, asked: list[str]) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_connect, args=(client, context, asked), daemon=True).start()


def _connect(client: socket.socket, context: ssl.SSLContext | None, asked: list[str]) -> None:
    if context:
        # Its two directions are two threads' here too.
        context.sslsocket_class = SharedTlsSocket
        client = context.wrap_socket(client, server_side=True)
    with contextlib.suppress(OSError), client:
        asked.append(client.recv(65536).decode())
        host, _, port = asked[-1].split(" ")[1].rpartition(":")
        with socket.create_connection((host, int(port))) as upstream:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            if context:
                client.setblocking(False)
            back = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
            back.start()
            _pump(client, upstream)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        # A TLS socket's own would continue without TLS in the other direction.
        socket.socket.shutdown(sink, socket.SHUT_WR)


def write_kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    """Write the file ``config`` with one context, and return its path."""
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(document))
    return path
