"""The transport for static credentials: a client certificate, a token, a token file or a password."""

import os
import socket
import ssl
from _thread import get_ident
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from urllib.parse import urlsplit

from arena_topo.errors import DocumentError
from arena_topo.files import LARGEST_SETTING, read_bytes
from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.transport import (
    GZIP,
    LARGEST_BODY,
    AnswerClock,
    AnswerLost,
    AnswerTooLarge,
    ClockedResponse,
    Request,
    Response,
    failure,
    read_body,
    send_by_rule,
    too_large,
)

_PIECE = 2**16
"""Bytes that are read at once of a stream, or as many as have come."""

_LONGEST_LABEL = 63
"""Characters of one part of a name in DNS."""


class StaticTransport:
    """The standard library's HTTP client, for a client certificate, a token, a token file or a password."""

    def __init__(self, target: Target) -> None:
        self._target = target
        url = urlsplit(target.server)
        self._host, self._port = target.address
        # Management platforms serve a cluster below a path of their own: https://host/k8s/clusters/c-1.
        self._prefix = url.path
        self._context = _tls_context(target) if url.scheme == "https" else None
        self._kept: dict[int, HTTPConnection] = {}

    def send(self, request: Request) -> Response:
        """Send over the connection that is kept for this thread, or over a new one that is kept from then on."""
        return send_by_rule(self._send, request)

    def stream(self, request: Request) -> Response:
        """Send over a connection of its own."""
        connection = self._connect(request.timeout)
        return self._guarded(connection, request)

    def renew(self) -> bool:
        """Return False: static credentials stay what they are, and a token file is read for every request."""
        return False

    def close(self) -> None:
        """Close the kept connections."""
        while self._kept:
            self._kept.popitem()[1].close()

    def _drop(self) -> None:
        """Close the connection that is kept for this thread."""
        if kept := self._kept.pop(get_ident(), None):
            kept.close()

    def _send(self, request: Request) -> Response:
        kept = self._kept_open()
        if kept is None:
            kept = self._kept[get_ident()] = self._connect(request.timeout)
            return self._guarded(kept, request)
        try:
            return self._exchange(kept, request)
        except (HTTPException, OSError) as error:
            self._drop()
            # An end without an answer is an OSError, also as http.client's RemoteDisconnected; other HTTPExceptions
            # are malformed answers.
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                raise AnswerLost from error
            raise failure(self._target.server, error) from error

    def _kept_open(self) -> HTTPConnection | None:
        """Return the connection that is kept for this thread, None where there is none or either end has closed it."""
        kept = self._kept.get(get_ident())
        # http.client drops the socket after an answer with Connection: close.
        if kept is None or kept.sock is None:
            return None
        with DefaultSelector() as selector:
            selector.register(kept.sock, EVENT_READ)
            # No answer is due between two requests: whatever can be read means that the server has closed the connection.
            if selector.select(0):
                self._drop()
                return None
        return kept

    def _connect(self, timeout: float | None) -> HTTPConnection:
        if self._context is None:
            return HTTPConnection(self._host, self._port, timeout=timeout)
        return _NamedHTTPSConnection(
            self._host,
            self._port,
            timeout=timeout,
            context=self._context,
            tls_name=str(self._target.cluster.get("tls-server-name") or ""),
        )

    def _guarded(self, connection: HTTPConnection, request: Request) -> Response:
        try:
            return self._exchange(connection, request)
        except (HTTPException, OSError, UnicodeError) as error:
            # A host name that IDNA cannot encode is a UnicodeError.
            connection.close()
            raise failure(self._target.server, error) from error

    def _exchange(self, connection: HTTPConnection, request: Request) -> Response:
        connection.response_class = partial(ClockedResponse, clock=AnswerClock(request))  # type: ignore[assignment]  # it is called
        # A kept connection still has the timeout of the request before.
        if connection.sock is not None:
            connection.sock.settimeout(request.timeout)
        # By itself http.client refuses every compression.
        packed = GZIP in request.headers
        connection.putrequest(request.method, self._prefix + request.path, skip_accept_encoding=packed)
        for name, value in (*credentials(self._target.user).items(), *request.headers):
            connection.putheader(name, value)
        if request.body is not None:
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        return StaticResponse(connection.getresponse(), connection, self._target.server)


class StaticResponse:
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
        """Return the next line, of one that is longer than *limit* as many bytes, and the rest with the next calls."""
        # Not by http.client's own readline: of a chunked body it may return up to twice as much as it was asked for.
        longest, ahead, searched = LARGEST_BODY if limit < 0 else limit, self._ahead, 0
        with self._broken_stream():
            while (found := ahead.find(b"\n", searched, longest)) < 0 and len(ahead) < longest:
                searched = len(ahead)
                if not (piece := self._raw.read1(_PIECE)):
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
        except (TimeoutError, AnswerTooLarge):
            # Whether silence is an error is up to the reader: a quiet log is resumed.
            self.close()
            raise
        except (HTTPException, OSError, ValueError) as error:
            # What is left of this answer must not be read as the beginning of the next one.
            self.close()
            told = (
                ConnectionResetError("the stream broke off") if isinstance(error, IncompleteRead) else error
            )
            raise failure(self._server, told) from error


class _NamedHTTPSConnection(HTTPSConnection):
    """HTTPS to one host, checked against the certificate's other name (``tls-server-name``)."""

    def __init__(
        self, host: str, port: int | None, *, tls_name: str, context: ssl.SSLContext, timeout: float | None
    ) -> None:
        super().__init__(host, port, context=context, timeout=timeout)
        self._tls = context
        self._tls_name = tls_name

    def connect(self) -> None:
        """Connect, and shake hands under the chosen name."""
        address = (_encoded(self.host), self.port)
        self.sock = socket.create_connection(address, self.timeout)  # type: ignore[arg-type]  # bytes serve as well
        # As http.client does: a request is sent as a whole, and nothing is gained by waiting for more.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=_encoded(self._tls_name or self.host))


def _encoded(host: str) -> str | bytes:
    """Return *host* so that Python imports its tables of international names only where they are needed.

    They also refuse a name that cannot be, before it is looked up.
    """
    is_plain = host.isascii() and all(0 < len(label) <= _LONGEST_LABEL for label in host.split("."))
    return host.encode() if is_plain else host


def credentials(user: Mapping[str, object]) -> dict[str, str]:
    """Return the headers of a user's static credentials. Raises ``DocumentError`` for a token that cannot be used."""
    token = token_of(user)
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return {"Authorization": f"Basic {b64encode(pair).decode()}"}
    return {}


def token_of(user: Mapping[str, object]) -> str:
    """Return the bearer token of *user*, empty for a user without one; a file is read each time, as it may rotate.

    As in kubectl, a token next to a file stands in for a file that cannot be read or is empty. Raises ``DocumentError``.
    """
    token, fault = str(user.get("token") or ""), ""
    if token_file := user.get("tokenFile"):
        try:
            text = read_bytes(str(token_file), LARGEST_SETTING).decode().strip()
            token, fault = text or token, "" if text else "is empty"
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            fault = "is not a text"
        if not token:
            raise DocumentError(
                f"the token file {token_file} {fault}", hint="kubectl config view --minify shows its entry"
            )
    # Such a token would end its header, or be refused by http.client with the secret in the error's text.
    if not (token.isascii() and token.isprintable()):
        raise DocumentError(
            "the token of the kubeconfig's user contains characters that are not allowed in a token (a line break?)"
        )
    return token


def checked_files(target: Target) -> None:
    """Raise ``DocumentError`` for a certificate or a key in a file that cannot be read, or has no end."""
    # OpenSSL would read a device until the memory is used up.
    for entry, key in (
        (target.cluster, "certificate-authority"),
        (target.user, "client-certificate"),
        (target.user, "client-key"),
    ):
        if (path := entry.get(key)) and not entry.get(f"{key}-data"):
            try:
                read_bytes(str(path), LARGEST_SETTING)
            except OSError as error:
                raise DocumentError(
                    f"the certificates of context {target.context!r} cannot be used: {path}: {error.strerror}",
                    hint="kubectl config view --minify shows the entry",
                ) from error


def _tls_context(target: Target) -> ssl.SSLContext:
    cluster, user = target.cluster, target.user
    checked_files(target)
    try:
        # As in kubectl, embedded data comes before a file, and without either the system's authorities count.
        if data := cluster.get("certificate-authority-data"):
            context = ssl.create_default_context(cadata=_pem(data))
        else:
            context = ssl.create_default_context(cafile=cluster.get("certificate-authority") or None)
        without_strict_checks(context)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with _as_file(user, "client-certificate") as certificate, _as_file(user, "client-key") as key:
            if certificate:
                context.load_cert_chain(certificate, key or None, password=_no_password)
    except (OSError, ValueError) as error:
        raise DocumentError(
            f"the certificates of context {target.context!r} cannot be used: {error}",
            hint="kubectl config view --minify shows the entry",
        ) from error
    return context


def without_strict_checks(context: ssl.SSLContext) -> None:
    """Verify certificates as kubectl does.

    Python 3.13 switches OpenSSL's strict checks on, which refuse authorities without a key identifier; Go has no such
    checks, and clusters have such authorities.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


def _no_password() -> str:
    """Refuse an encrypted key, as kubectl does, instead of asking on the terminal."""
    raise ValueError("the client key is encrypted")


def _pem(data: object) -> str:
    return b64decode(str(data), validate=False).decode()


@contextmanager
def _as_file(user: Mapping[str, object], key: str) -> Iterator[str]:
    """Yield the path of a certificate or key; embedded data is in a private file until the end of the context."""
    # ssl loads a client's certificate and key from files only.
    if not (data := user.get(f"{key}-data")):
        yield str(user.get(key) or "")
        return
    # Linux has files that are in memory alone: no disk ever has the key, and tempfile need not be imported.
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
# ``proxy-url`` of the kubeconfig always applies. ``HTTPS_PROXY`` and ``HTTP_PROXY`` never apply to this machine, nor
# to what ``NO_PROXY`` names. Source: ``golang.org/x/net/http/httpproxy``, which kubectl uses.


def proxy_of(target: Target, env: Mapping[str, str]) -> str:
    """Return the URL of the proxy between us and the server of *target*, empty if there is none."""
    if proxy := target.cluster.get("proxy-url"):
        return str(proxy)
    proxy = _env_value(env, f"{urlsplit(target.server).scheme}_proxy")
    if not proxy or not _is_proxied(target, _env_value(env, "no_proxy")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


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
    """Whether a rule of ``NO_PROXY`` (``*``, a network, an address or a domain, perhaps with a port) covers a server."""
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
