"""Requests and responses over the standard library's client: TCP or TLS, directly or through a proxy.

Credentials are sent as they stand in a kubeconfig: a client certificate, a token, a token file, a password.
Those of other users are asked for before the first request (``credentials.resolved``), and again after a 401.

Connections are kept open, and one rule holds when the server closes them, as servers do with idle
connections:

- A kept connection that is already closed is replaced before anything is sent; no request notices.
- One that closes while a request is under way has lost the answer, and whether the server acted is unknown.
  ``GET``, ``PATCH`` and ``DELETE`` are sent once more over a new connection: done twice they leave what they
  leave done once, as this program's patches set values or test what they change, and its deletions name a
  UID. ``POST`` is not repeated, since it might create a second object or fail on the first one: the user
  learns that the answer is lost.
- A request that times out, or that fails on a new connection, is not repeated, and neither is anything once
  the headers of an answer have come: a stream that breaks off is resumed by its reader, who knows what came
  already.

A server may be slow or broken, so that each answer is bounded, below ``http.client``: a total time for all of
it, however it is spread over status lines, headers and chunks; a size of its head, with all ``100 Continue``
before it; and a size of its body. A body may come compressed where the request asks for that, and its size is
that of what it unpacks to.

A transport may be used by several threads at once: each has a connection of its own.
"""

import os
import re
import select
import socket
import ssl
import time
from _thread import LockType, allocate_lock, get_ident, start_new_thread
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from importlib import import_module
from io import BufferedReader, RawIOBase
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from arena_topo.errors import ArenaTopoError, ConnectionFailed, DocumentError, WrongServer
from arena_topo.kube.credentials import resolved
from arena_topo.kube.kubeconfig import (
    Target,
    check_files,
    is_static,
    token_of,
    unusable_certificates,
)

LARGEST_BODY = 64 * 2**20
"""Bytes of an answer's body, or of one line of a stream: a page of 1,000 pods has five to twenty million."""

LARGEST_HEAD = 2**20
"""Bytes before an answer's body: a status line and headers."""

GZIP = ("Accept-Encoding", "gzip")
"""The header of a request whose answer may come compressed: a list of jobs or pods then has a twentieth of
the bytes."""

_PIECE = 2**20
"""Bytes that are read at once, so that a declared size reserves no memory for what never comes."""

_GZIP_WINDOW = 31
"""What ``zlib`` takes as a window for data with the header of gzip, whose window may have any size."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it leaves: ``path`` with its query, and limits in seconds, None for no limit.

    ``timeout`` is for the whole answer, of a stream for its headers; ``silence`` is the longest pause of a
    stream.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None
    silence: float | None = None


class Response(Protocol):
    """An answer whose body is read once, whole or line by line.

    Reading raises ``ConnectionFailed`` when the answer breaks off or takes too long, and ``AnswerTooLarge``;
    ``readline`` raises ``TimeoutError`` when a stream stays silent for longer than the request allows.
    """

    status: int

    def header(self, name: str) -> str:
        """Return a header's value, empty if there is none."""

    def read(self) -> bytes:
        """Return the whole body."""

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line with its line end, the last one perhaps without.

        Empty at the end of the stream.
        Of a line that is longer than *limit* bytes, as many come at a time.
        """

    def close(self) -> None:
        """Drop the rest."""


class HttpTransport(Protocol):
    """Sends requests with the user's credentials."""

    def send(self, request: Request) -> Response:
        """Return the answer to *request*. Raises ``ConnectionFailed``."""

    def stream(self, request: Request) -> Response:
        """Like ``send``, over a connection of its own, for bodies that are read for long."""

    def renew(self) -> bool:
        """Fetch credentials again after a 401; False where there are none to fetch."""

    def close(self) -> None:
        """Close the connections."""


class AnswerTooLarge(ArenaTopoError):
    """A server sent more than anybody has to read; a list may be asked for in smaller pages."""


class AnswerClock:
    """When the answer to one request must have come; the time counts from the construction of the clock."""

    def __init__(self, request: Request, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ends = None if request.timeout is None else now() + request.timeout
        self._silence = request.silence

    def left(self) -> float | None:
        """Return the seconds for which a reader may wait for more, None for no limit.

        Raises ``TimeoutError``.
        """
        if self._ends is None:
            return self._silence
        left = self._ends - self._now()
        if left <= 0:
            raise TimeoutError("the time for the whole answer is over")
        return left

    def start_stream(self) -> None:
        """Lift the total time of a stream, whose headers have come.

        From now on only its pauses are limited.
        """
        if self._silence is not None:
            self._ends = None


class ClockedResponse(HTTPResponse):
    """An answer of ``http.client`` that is read by *clock*, headers included."""

    def __init__(self, sock: socket.socket, *args: Any, clock: AnswerClock, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._clock = clock
        self._socket = _ClockedSocket(sock, self.fp.detach(), clock)
        self.fp = BufferedReader(self._socket)

    def begin(self) -> None:
        """Read the status line and the headers."""
        super().begin()
        self._socket.is_in_head = False
        # A refusal is read to its end, and is no stream.
        if self.status < 300:
            self._clock.start_stream()


class _ClockedSocket(RawIOBase):
    """The bytes of a socket, each wait for which has the time that the clock leaves.

    A socket's own timeout begins again with every byte: a server that sends one byte a second would never
    exceed it.
    """

    def __init__(self, sock: socket.socket, raw: Any, clock: AnswerClock) -> None:
        self._socket, self._raw, self._clock = sock, raw, clock
        self._size = 0
        self.is_in_head = True

    def readable(self) -> bool:
        """Return True, as ``BufferedReader`` asks."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has come into *buffer*, and return its size."""
        self._socket.settimeout(self._clock.left())
        size: int | None = self._raw.readinto(buffer)
        self._size += size or 0
        # http.client limits the headers of one answer, and skips any number of 100 Continue before it.
        if self.is_in_head and self._size > LARGEST_HEAD:
            raise ConnectionAbortedError(f"more than {LARGEST_HEAD} bytes came before the answer's body")
        return size

    def close(self) -> None:
        """Let go of the socket."""
        self._raw.close()
        super().close()


def read_body(read: Callable[[int], bytes], size: int | None = None) -> bytes:
    """Return the whole body, of which *read* returns the next piece; *size* is what the server declares.

    Raises ``AnswerTooLarge``, and ``IncompleteRead`` where less comes than was declared.
    """
    if (size or 0) > LARGEST_BODY:
        raise too_large()
    pieces, total = [], 0
    while piece := read(_PIECE):
        total += len(piece)
        if total > LARGEST_BODY:
            raise too_large()
        pieces.append(piece)
    if size is not None and total < size:
        raise IncompleteRead(b"", size - total)
    return b"".join(pieces)


def unpacked(answer: Response) -> bytes:
    """Return the whole body of *answer*, decompressed where it came compressed by gzip.

    Raises ``AnswerTooLarge``, and ``DocumentError`` for what cannot be unpacked.
    """
    body = answer.read()
    if answer.header("Content-Encoding").lower() != "gzip":
        return body
    import zlib

    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        # A thousand bytes may hold a million: no more is unpacked than is read of any other answer.
        text = unpacker.decompress(body, LARGEST_BODY + 1)
    except zlib.error as error:
        raise DocumentError(f"the server's answer cannot be unpacked: {error}") from error
    if len(text) > LARGEST_BODY:
        raise too_large()
    if not unpacker.eof:
        raise DocumentError("the server's answer cannot be unpacked: it ends too early")
    return text


def too_large() -> AnswerTooLarge:
    """Return the error for an answer, or a line of a stream, that is larger than any that is read."""
    return AnswerTooLarge(
        f"the server's answer has more than {LARGEST_BODY // 2**20} MiB",
        hint="is it an API server, or something before one? kubectl cluster-info shows its address",
    )


def failure(server: str, error: Exception) -> ConnectionFailed:
    """Return the error that users see when *server* did not answer because of *error*."""
    host = urlsplit(server).netloc or server
    if isinstance(error, ConnectionRefusedError):
        return ConnectionFailed(
            f"the connection to the server {host} was refused",
            hint="did you specify the right host or port? check the cluster's entry in your kubeconfig",
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return WrongServer(
            f"the certificate of the server {host} is not trusted: {error.verify_message}",
            hint="check certificate-authority in the cluster's entry of your kubeconfig",
        )
    if isinstance(error, socket.gaierror):
        # Without a network the resolver says EAI_AGAIN; any other answer is about the name.
        kind = ConnectionFailed if error.errno == socket.EAI_AGAIN else WrongServer
        return kind(
            f"the name of the server {host} cannot be resolved", hint="is the network, or the VPN, up?"
        )
    if isinstance(error, TimeoutError):
        return ConnectionFailed(
            f"the server {host} did not answer in time",
            hint="is the network, or the VPN, up? --request-timeout allows more",
        )
    # Some exceptions have no text of their own.
    return ConnectionFailed(
        f"the connection to the server {host} failed: {str(error) or type(error).__name__}"
    )


# The client: its connections, one for each thread.

_STREAM_PIECE = 2**16
"""Bytes that are read at once of a stream, or as many as have come."""

_LONGEST_LABEL = 63
"""Characters of one part of a name in DNS."""

_SOCKS = {"socks4": "SOCKS4", "socks4a": "SOCKS4", "socks5": "SOCKS5", "socks5h": "SOCKS5"}
"""PySocks' names of the protocols that it speaks, by the scheme of a proxy's URL."""

_PROXY_PORTS = {"http": 80, "https": 443}
_SOCKS_PORT = 1080

_REPEATABLE = frozenset({"GET", "PATCH", "DELETE"})

_Result = TypeVar("_Result")


class _AnswerLost(Exception):
    """A kept connection closed while a request was under way, before the headers of its answer came."""


class Transport:
    """Sends requests to the API server of *target* as its user; *env* may name a proxy.

    *tls_socket* is what the connections of ``open`` are over TLS. Raises ``DocumentError`` for certificates
    or a proxy that cannot be used, and what ``resolved`` raises.
    """

    def __init__(
        self,
        target: Target,
        env: Mapping[str, str] = os.environ,
        tls_socket: type[ssl.SSLSocket] = ssl.SSLSocket,
    ) -> None:
        url = urlsplit(target.server)
        self._target, self._tls_socket, self._is_secure = target, tls_socket, url.scheme == "https"
        self._proxy = _usable_proxy(target, env)
        self._for_proxy = _proxy_credentials(self._proxy) if self._proxy else {}
        self._has_http_proxy = self._proxy is not None and self._proxy.scheme in _PROXY_PORTS
        # Without TLS an HTTP proxy reads each request, and learns from its target which server it is for.
        self._is_forwarded = self._has_http_proxy and not self._is_secure
        # Management platforms serve a cluster below a path of their own: https://host/k8s/clusters/c-1.
        self._prefix = target.server if self._is_forwarded else url.path
        self._authenticate()

    def send(self, request: Request) -> Response:
        """Send over the connection of this thread, or over a new one that is kept from then on."""
        try:
            return self._send(request)
        except _AnswerLost as lost:
            if request.method not in _REPEATABLE:
                raise ConnectionFailed(
                    "the connection broke off while an object was being created",
                    hint="look whether it exists before you try again",
                ) from lost.__cause__
        return self._send(request)

    def stream(self, request: Request) -> Response:
        """Send over a connection of its own."""
        return self._guarded(self._connection(), request)

    def renew(self) -> bool:
        """Ask again for credentials that are not static, such as a plugin's; return whether there are such.

        A token file needs none of that: it is read for every request.
        """
        if is_static(self._target.user):
            return False
        if kept := self._kept.get(get_ident()):
            kept.close()
        self._authenticate()
        return True

    def close(self) -> None:
        """Close the kept connections."""
        while self._kept:
            self._kept.popitem()[1].close()

    def headers(self) -> dict[str, str]:
        """Return the headers of the user's credentials.

        Raises ``DocumentError`` for a token that cannot be used.
        """
        user = self._user
        if token := token_of(user):
            return {"Authorization": f"Bearer {token}"}
        if user.get("username"):
            return {"Authorization": _basic(str(user["username"]), str(user.get("password", "")))}
        return {}

    def open(self, clock: AnswerClock) -> socket.socket:
        """Return a new connection to the server, made before *clock* ends.

        Raises ``OSError``, and ``ValueError`` for a host's name that cannot be.
        """
        host, port = self._target.address
        name = _encoded(str(self._target.cluster.get("tls-server-name") or host))
        place = f"[{host}]:{port}" if ":" in host else f"{_encoded(host).decode()}:{port}"
        sock = self._dialled(clock)
        try:
            if self._has_http_proxy:
                sock = _tunnel(sock, place, self._for_proxy, clock)
            sock.settimeout(clock.left())
            return self._context.wrap_socket(sock, server_hostname=name) if self._context else sock
        except (OSError, ValueError, HTTPException):
            sock.close()
            raise

    def _authenticate(self) -> None:
        """Use the user's credentials from now on, and ask for them where they are not static."""
        target = self._target
        user, context = target.user, None
        if not is_static(user):
            user = resolved(target)
        if self._is_secure:
            context = _tls_context(replace(target, user=user))
            context.sslsocket_class = self._tls_socket
        self._user, self._context = user, context
        # By thread. Earlier ones, with another certificate, end with what other threads read of them.
        self._kept: dict[int, HTTPConnection] = {}

    def _dialled(self, clock: AnswerClock) -> socket.socket:
        """Return a TCP connection to the server, or one to its proxy. Raises ``OSError``."""
        proxy, (host, port) = self._proxy, self._target.address
        if proxy and proxy.scheme in _SOCKS:
            return _through_socks(proxy, (host, port), clock)
        if proxy:
            host, port = proxy.hostname or "", proxy.port or _PROXY_PORTS[proxy.scheme]
        # The type says that a host is a text; bytes serve as well.
        address: Any = (_encoded(host), port)
        sock = socket.create_connection(address, clock.left())
        # As http.client does: a request is sent as a whole, and nothing is gained by waiting for more.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proxy is None or proxy.scheme == "http":
            return sock
        # As for kubectl, the cluster's authority vouches for its proxy too, which need not see the user's
        # certificate.
        context = _tls_context(replace(self._target, user={}))
        context.sslsocket_class = SharedTlsSocket
        try:
            return context.wrap_socket(sock, server_hostname=_encoded(host))
        except (OSError, ValueError):
            sock.close()
            raise

    def _connection(self) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(*self._target.address)
        return HTTPSConnection(*self._target.address, context=self._context)

    def _send(self, request: Request) -> Response:
        kept = self._kept.get(get_ident())
        if kept is None:
            kept = self._kept[get_ident()] = self._connection()
        if not _is_open(kept):
            return self._guarded(kept, request)
        try:
            return self._exchange(kept, request)
        except (HTTPException, OSError) as error:
            kept.close()
            # An end without an answer is an OSError, also as http.client's RemoteDisconnected; other
            # HTTPExceptions are malformed answers.
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise _AnswerLost from error
            raise failure(self._target.server, error) from error

    def _guarded(self, connection: HTTPConnection, request: Request) -> Response:
        try:
            return self._exchange(connection, request)
        except (HTTPException, OSError, UnicodeError) as error:
            # A host name that IDNA cannot encode is a UnicodeError.
            connection.close()
            raise failure(self._target.server, error) from error

    def _exchange(self, connection: HTTPConnection, request: Request) -> Response:
        headers = (*(self._for_proxy if self._is_forwarded else {}).items(), *self.headers().items())
        connection.response_class = partial(ClockedResponse, clock=AnswerClock(request))  # type: ignore[assignment]  # it is called
        if connection.sock is None:
            # A stream's pauses count once it has begun.
            clock = AnswerClock(replace(request, silence=None))
            connection.sock = self._dialled(clock) if self._is_forwarded else self.open(clock)
        # A kept connection still has the timeout of the request before.
        connection.sock.settimeout(request.timeout)
        # By itself http.client refuses every compression.
        packed = GZIP in request.headers
        connection.putrequest(request.method, self._prefix + request.path, skip_accept_encoding=packed)
        for name, value in (*headers, *request.headers):
            connection.putheader(name, value)
        if request.body is not None:
            connection.putheader("Content-Length", str(len(request.body)))
        try:
            connection.endheaders(request.body)
            return _Answer(connection.getresponse(), connection, self._target.server)
        except BaseException:
            # After Ctrl-C too: http.client sends nothing more over a connection that owes an answer.
            connection.close()
            raise


class _Answer:
    """An answer of ``http.client``, with the errors of this project."""

    def __init__(self, raw: HTTPResponse, connection: HTTPConnection, server: str) -> None:
        self._raw, self._connection, self._server = raw, connection, server
        self.status = raw.status
        self._ahead = bytearray()

    def header(self, name: str) -> str:
        """Return a header's value, empty if there is none."""
        return self._raw.getheader(name) or ""

    def read(self) -> bytes:
        """Return the whole body."""
        try:
            with self._broken_stream():
                return read_body(self._raw.read, self._raw.length)
        except TimeoutError as error:
            raise failure(self._server, error) from error

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line, or as many bytes of it as *limit*, and the rest with the next calls."""
        # Not by http.client's own readline: of a chunked body it may return up to twice as much as it was
        # asked for.
        longest, ahead, searched = LARGEST_BODY if limit < 0 else limit, self._ahead, 0
        with self._broken_stream():
            while (found := ahead.find(b"\n", searched, longest)) < 0 and len(ahead) < longest:
                searched = len(ahead)
                if not (piece := self._raw.read1(_STREAM_PIECE)):
                    break
                ahead += piece
            end = found + 1 or min(len(ahead), longest)
            if end == LARGEST_BODY:
                raise too_large()
        line = bytes(ahead[:end])
        del ahead[:end]
        return line

    def close(self) -> None:
        """Drop the rest and the connection with it."""
        self._connection.close()

    @contextmanager
    def _broken_stream(self) -> Iterator[None]:
        try:
            yield
        except (HTTPException, OSError, ValueError) as error:
            # What is left of this answer must not be read as the beginning of the next one.
            self.close()
            # Whether silence is an error is up to the reader: a quiet log is resumed.
            if isinstance(error, TimeoutError):
                raise
            told = (
                ConnectionResetError("the stream broke off") if isinstance(error, IncompleteRead) else error
            )
            raise failure(self._server, told) from error
        except BaseException:
            # Ctrl-C is one as well, after which a submit undoes what it has begun.
            self.close()
            raise


class SharedTlsSocket(ssl.SSLSocket):
    """For ``SSLContext.sslsocket_class``: one thread may read of it while another one writes.

    OpenSSL's connections are not made for that: both directions share the state by which an operation says
    that it must be tried again, so that a write that ends in the middle of an interrupted read makes an error
    of it ("Invalid error code"). Here each operation is tried in turn, without waiting in it; the waiting for
    the network is done outside of turns. Not blocking after its connection is made, it waits by itself.
    Source: https://docs.openssl.org/3.0/man7/openssl-threads/
    """

    _turn: LockType

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Create the socket with its lock, since the constructor is the base class's own."""
        created = super().__new__(cls, *args, **options)
        created._turn = allocate_lock()
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


def _is_open(connection: HTTPConnection) -> bool:
    """Whether *connection* can be used for another request: neither end has closed it."""
    # http.client drops the socket after an answer with Connection: close.
    if connection.sock is None:
        return False
    with DefaultSelector() as selector:
        selector.register(connection.sock, EVENT_READ)
        # No answer is due between two requests: whatever can be read means that the server has closed the
        # connection.
        if selector.select(0):
            connection.close()
    return connection.sock is not None


def _tunnel(sock: socket.socket, place: str, headers: Mapping[str, str], clock: AnswerClock) -> socket.socket:
    """Return *sock*, a connection to an HTTP proxy, as one to *place*, a host and a port.

    Raises ``OSError``.
    """
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", *(f"{key}: {headers[key]}" for key in headers)]
    sock.settimeout(clock.left())
    sock.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
    with closing(ClockedResponse(sock, method="CONNECT", clock=clock)) as answer:
        answer.begin()
        if answer.status >= 300:
            raise OSError(f"Tunnel connection failed: {answer.status} {answer.reason}")
    return _without_tls(sock) if isinstance(sock, SharedTlsSocket) else sock


def _without_tls(sock: SharedTlsSocket) -> socket.socket:
    """Return a socket whose bytes travel over *sock*: ``ssl`` makes no TLS connection within another one."""
    near, far = socket.socketpair()
    sock.setblocking(False)
    for source, sink in ((sock, far), (far, sock)):
        start_new_thread(_pump, (source, sink))
    return near


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass on the bytes of *source* until either side ends, and end the other one with it."""
    # A TLS socket that has been closed meanwhile cannot be waited for, which is a ValueError.
    with source, suppress(OSError, ValueError):
        try:
            while data := source.recv(_STREAM_PIECE):
                sink.sendall(data)
        finally:
            for ended in (sink, source):
                # Not by the TLS socket's own, which would let the other thread continue without TLS.
                socket.socket.shutdown(ended, socket.SHUT_RDWR)


def _through_socks(proxy: SplitResult, address: tuple[str, int], clock: AnswerClock) -> socket.socket:
    """Return a TCP connection to *address* through a SOCKS *proxy*. Raises ``OSError``."""
    socks: Any = import_module("socks")
    sock: socket.socket = socks.create_connection(
        address,
        timeout=clock.left(),
        proxy_type=getattr(socks, _SOCKS[proxy.scheme]),
        proxy_addr=proxy.hostname,
        proxy_port=proxy.port or _SOCKS_PORT,
        # Those with a letter at the end look up the host's name themselves.
        proxy_rdns=not proxy.scheme[-1].isdigit(),
        proxy_username=unquote(proxy.username) if proxy.username else None,
        proxy_password=unquote(proxy.password) if proxy.password else None,
    )
    return sock


def _encoded(host: str) -> bytes:
    """Return *host* as DNS knows it, without Python's tables of international names if possible.

    They also refuse a name that cannot be, before it is looked up. Raises ``UnicodeError``.
    """
    is_plain = host.isascii() and all(0 < len(label) <= _LONGEST_LABEL for label in host.split("."))
    return host.encode() if is_plain else host.encode("idna")


def _basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def _tls_context(target: Target) -> ssl.SSLContext:
    cluster, user = target.cluster, target.user
    check_files(target)
    try:
        # As in kubectl, embedded data comes before a file, and without either the system's authorities count.
        if data := cluster.get("certificate-authority-data"):
            context = ssl.create_default_context(cadata=_pem(data))
        else:
            context = ssl.create_default_context(cafile=cluster.get("certificate-authority") or None)
        # Python 3.13 switches OpenSSL's strict checks on, which refuse authorities without a key identifier;
        # Go has no such checks, and clusters have such authorities.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with _as_file(user, "client-certificate") as shown, _as_file(user, "client-key") as key:
            if shown:
                context.load_cert_chain(shown, key or None, password=_no_password)
    except (OSError, ValueError) as error:
        raise unusable_certificates(target, error) from error
    return context


def _no_password() -> str:
    """Refuse an encrypted key, as kubectl does, instead of asking on the terminal."""
    raise ValueError("the client key is encrypted")


def _pem(data: object) -> str:
    return b64decode(str(data), validate=False).decode()


@contextmanager
def _as_file(user: Mapping[str, object], key: str) -> Iterator[str]:
    """Yield the path of a certificate or key.

    Embedded data is in a private file until the end of the context.
    """
    # ssl loads a client's certificate and key from files only.
    if not (data := user.get(f"{key}-data")):
        yield str(user.get(key) or "")
        return
    # Linux has files that are only in memory: no disk ever has the key, and tempfile need not be imported.
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("arena-topo"), "w") as file:
            file.write(_pem(data))
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    import tempfile

    handle, path = tempfile.mkstemp(prefix="arena-topo-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_pem(data))
        yield path
    finally:
        Path(path).unlink()


# Which proxy stands before an API server: the kubeconfig's, or the environment's by Go's rules.
#
# ``proxy-url`` of the kubeconfig always applies. ``HTTPS_PROXY`` and ``HTTP_PROXY`` never apply to this
# machine, nor to what ``NO_PROXY`` names. Source: ``golang.org/x/net/http/httpproxy``, which kubectl uses.


def proxy_of(target: Target, env: Mapping[str, str]) -> str:
    """Return the URL of the proxy between us and the server of *target*, empty if there is none."""
    if proxy := target.cluster.get("proxy-url"):
        return str(proxy)
    proxy = _env_value(env, f"{urlsplit(target.server).scheme}_proxy")
    if not proxy or not _is_proxied(target, _env_value(env, "no_proxy")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _usable_proxy(target: Target, env: Mapping[str, str]) -> SplitResult | None:
    """Return the proxy before the server of *target*, None if there is none. Raises ``DocumentError``."""
    if not (address := proxy_of(target, env)):
        return None
    try:
        proxy, fault = urlsplit(address), ""
        if "://" not in address:
            fault = "Proxy URL had no scheme, should start with http:// or https://"
        elif proxy.scheme in _SOCKS:
            import_module("socks")
        elif proxy.scheme not in _PROXY_PORTS:
            fault = f"Proxy URL had unsupported scheme {proxy.scheme}, should use http:// or https://"
        # Asking for an invalid port raises ValueError.
        if not fault and (proxy.port == 0 or not proxy.hostname):
            fault = "it names no host"
        if not fault:
            return proxy
    except (ImportError, ValueError) as error:
        fault = str(error)
    raise DocumentError(
        f"the proxy {re.sub('//.*@', '//', address)} cannot be used: {fault}",
        hint="http:// and https:// proxies are spoken; socks5:// ones with pip install PySocks",
    )


def _proxy_credentials(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    return {"Proxy-Authorization": _basic(unquote(proxy.username), unquote(proxy.password or ""))}


def _env_value(env: Mapping[str, str], name: str) -> str:
    # Go reads the upper-case name first, and takes an empty value for one that is not set.
    return env.get(name.upper()) or env.get(name) or ""


def _is_proxied(target: Target, exceptions: str) -> bool:
    host, port = target.address
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return False
    rules = (rule.strip().lower() for rule in exceptions.split(","))
    return not any(_matches(rule, host, address, port) for rule in rules if rule)


def _matches(rule: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    """Whether a rule of ``NO_PROXY`` (``*``, network, address or domain, perhaps a port) covers a server."""
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and _in_network(address, rule)
    name, rule_port = _name_and_port(rule)
    if rule_port not in ("", str(port)):
        return False
    if rule_address := _address(name):
        return address == rule_address
    # "example.com" covers the domain and all below it, ".example.com" and "*.example.com" only what is below.
    if name.startswith(("*.", ".")):
        return host.endswith(name.removeprefix("*"))
    return host == name or host.endswith(f".{name}")


def _name_and_port(rule: str) -> tuple[str, str]:
    """Return the name and the port of a rule, which is a lone IPv6 address where it has several colons."""
    if rule.startswith("["):
        name, _, port = rule[1:].partition("]")
        return name, port.removeprefix(":")
    if rule.count(":") > 1:
        return rule, ""
    name, _, port = rule.partition(":")
    return name, port


def _in_network(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
