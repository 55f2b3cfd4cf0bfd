"""One request, one response: the boundary between what a session sends and how the bytes travel.

``client`` keeps connections open and follows one rule when the server closes them, as servers do with idle
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

import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse, IncompleteRead
from io import BufferedReader, RawIOBase
from typing import Any, Protocol
from urllib.parse import urlsplit

from arena_topo.errors import ArenaTopoError, ConnectionFailed, DocumentError

LARGEST_BODY = 64 * 2**20
"""Bytes of an answer's body, or of one line of a stream: a page of 1,000 pods has five to twenty million."""

LARGEST_HEAD = 2**20
"""Bytes before an answer's body: a status line and headers."""

GZIP = ("Accept-Encoding", "gzip")
"""The header of a request whose answer may come compressed: a list of jobs or pods then has a twentieth of the bytes."""

_PIECE = 2**20
"""Bytes that are read at once, so that a declared size makes nobody reserve memory for what never comes."""

_GZIP_WINDOW = 31
"""How ``zlib`` is told that data has the header of gzip, with a window of any size."""


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
        """Return the next line with its line end, the last one perhaps without; empty at the end of the stream.

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
        """Return the seconds for which a reader may wait for more, None for no limit. Raises ``TimeoutError``."""
        if self._ends is None:
            return self._silence
        left = self._ends - self._now()
        if left <= 0:
            raise TimeoutError("the time for the whole answer is over")
        return left

    def start_stream(self) -> None:
        """Lift the total time of a stream, whose headers have come: from now on only its pauses are limited."""
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
        return ConnectionFailed(
            f"the certificate of the server {host} is not trusted: {error.verify_message}",
            hint="check certificate-authority in the cluster's entry of your kubeconfig",
        )
    if isinstance(error, socket.gaierror):
        return ConnectionFailed(
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
