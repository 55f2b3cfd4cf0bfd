"""One request, one response: the boundary between what a session sends and how the bytes travel.

Two transports keep the same contract. ``static_client`` speaks through the standard library and serves users with
static credentials: it starts in a third of the time of the official ``kubernetes`` package, through which
``official_client`` serves all others.

Both keep connections open and follow one rule when the server closes them, as servers do with idle connections:

- A kept connection that is already closed is replaced before anything is sent; no request notices.
- One that closes while a request is under way has lost the answer, and whether the server acted is unknown.
  ``GET``, ``PATCH`` and ``DELETE`` are sent once more over a new connection: done twice they leave what they leave
  done once, as this program's patches set values or test what they change, and its deletions name a UID. ``POST`` is
  not repeated, since it might create a second object or fail on the first one: the user learns that the answer is
  lost.
- A request that times out, or that fails on a new connection, is not repeated, and neither is anything once the headers
  of an answer have come: a stream that breaks off is resumed by its reader, who knows what came already.
"""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from arena_topo.errors import ConnectionFailed

_REPEATABLE = frozenset({"GET", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it leaves: ``path`` with its query, ``timeout`` in seconds or None for no limit."""

    method: str
    path: str
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float | None = None


class Response(Protocol):
    """An answer whose body is read once, whole or line by line.

    Reading raises ``ConnectionFailed`` when the stream breaks off, ``TimeoutError`` when it stays silent for
    longer than the request's timeout.
    """

    status: int

    def header(self, name: str) -> str:
        """Return a header's value, empty if there is none."""

    def read(self) -> bytes:
        """Return the whole body."""

    def readline(self) -> bytes:
        """Return the next line with its line end, the last one perhaps without; empty at the end of the stream."""

    def close(self) -> None:
        """Drop the rest."""


class HttpTransport(Protocol):
    """Sends requests with the user's credentials."""

    def send(self, request: Request) -> Response:
        """Return the answer to *request*. Raises ``ConnectionFailed``."""

    def stream(self, request: Request) -> Response:
        """Like ``send``, over a connection of its own, for bodies that are read for long."""

    def renew(self) -> bool:
        """Fetch credentials anew after a 401; False where there are none to fetch."""

    def close(self) -> None:
        """Close the connections."""


def failure(server: str, error: Exception) -> ConnectionFailed:
    """Return the error that users see when *server* did not answer because of *error*."""
    host = urlsplit(server).netloc or server
    # urllib3 and urllib wrap the operating system's error.
    inner = getattr(error, "reason", None)
    reason = inner if isinstance(inner, Exception) else error
    if isinstance(reason, ConnectionRefusedError):
        return ConnectionFailed(
            f"the connection to the server {host} was refused",
            hint="did you specify the right host or port? check the cluster's entry in your kubeconfig",
        )
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ConnectionFailed(
            f"the certificate of the server {host} is not trusted: {reason.verify_message}",
            hint="check certificate-authority in the cluster's entry of your kubeconfig",
        )
    if isinstance(reason, socket.gaierror):
        return ConnectionFailed(
            f"the name of the server {host} cannot be resolved", hint="is the network, or the VPN, up?"
        )
    if isinstance(reason, TimeoutError):
        return ConnectionFailed(
            f"the server {host} did not answer in time",
            hint="is the network, or the VPN, up? --request-timeout allows more",
        )
    # Some exceptions have no text of their own.
    return ConnectionFailed(
        f"the connection to the server {host} failed: {str(reason) or type(reason).__name__}"
    )


class AnswerLost(Exception):
    """A kept connection closed while a request was under way, before the headers of its answer came."""


def send_by_rule(send: Callable[[Request], Response], request: Request) -> Response:
    """Return the answer to *request*; *send* raises ``AnswerLost`` and takes a new connection after that.

    Raises ``ConnectionFailed`` where a request whose answer is lost might have created an object.
    """
    try:
        return send(request)
    except AnswerLost as lost:
        if request.method not in _REPEATABLE:
            raise ConnectionFailed(
                "the connection broke off while an object was being created",
                hint="look whether it exists before you try again",
            ) from lost.__cause__
    return send(request)
