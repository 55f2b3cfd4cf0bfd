"""Starting a process in a container.

The ``kubernetes`` package resolves every kind of credentials, and brings the websocket; its own client of it would leave
the identity to act as behind. Both are imported where a process is started.
"""

import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from arena_topo.errors import ApiError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.kube.kubeconfig import configured_target, with_user_flags
from arena_topo.kube.remote.process import PROTOCOLS, BoundedSocket, RemoteProcess
from arena_topo.kube.remote.shared_tls import SharedTlsSocket
from arena_topo.kube.session import impersonation
from arena_topo.kube.static_client import without_strict_checks
from arena_topo.kube.status_errors import api_error
from arena_topo.kube.transport import LARGEST_HEAD, AnswerClock, Request, failure

if TYPE_CHECKING:
    from arena_topo.kube.official_client import OfficialTransport


def start(
    connection: ConnectionFlags, path: str, command: Sequence[str], *, container: str, tty: bool, stdin: bool
) -> RemoteProcess:
    """Start *command* in *container* of the pod at *path*. Raises what a ``Session`` raises."""
    transport, user = _transport(connection)
    query = [("container", container), ("stdout", "true"), *(("command", word) for word in command)]
    # A terminal has one output, and the API server refuses stderr beside it.
    query.append(("tty", "true") if tty else ("stderr", "true"))
    if stdin:
        query.append(("stdin", "true"))
    url = f"{transport.configuration.host}{path}/exec?{urlencode(query, quote_via=quote)}"
    try:
        try:
            return _opened(transport, url, user, connection.request_timeout)
        except ApiError as error:
            # Tokens of exec plugins expire.
            if error.status != 401 or not transport.renew():
                raise
            return _opened(transport, url, user, connection.request_timeout)
    finally:
        transport.close()


def _transport(connection: ConnectionFlags) -> tuple["OfficialTransport", Mapping[str, Any]]:
    """Return the transport whose credentials and certificates count, and the user with the identity to act as."""
    from arena_topo.kube.official_client import from_target, in_cluster

    target = configured_target(connection)
    if target is not None:
        return from_target(target), target.user
    return in_cluster(), with_user_flags({}, connection)


def _opened(
    transport: "OfficialTransport", url: str, user: Mapping[str, Any], timeout: float
) -> RemoteProcess:
    from websocket import (
        WebSocket,
        WebSocketBadStatusException,
        WebSocketException,
        WebSocketTimeoutException,
    )

    clock = AnswerClock(Request("GET", url, timeout=timeout or None))

    class BoundedWebSocket(WebSocket):
        """A websocket whose handshake is bounded as other answers are: the library reads whatever comes."""

        def __setattr__(self, name: str, value: Any) -> None:
            bounded = name == "sock" and value is not None
            super().__setattr__(name, BoundedSocket(value, LARGEST_HEAD, clock) if bounded else value)

    configuration, parts = transport.configuration, urlsplit(url)
    headers = [*transport.credentials().items(), *impersonation(user)]
    secure = parts.scheme == "https"
    options: dict[str, Any] = {"context": _tls_context(configuration)} if secure else {}
    if configuration.tls_server_name:
        options["server_hostname"] = configuration.tls_server_name
    websocket: Any = BoundedWebSocket(sslopt=options, enable_multithread=True)
    proxy = urlsplit(configuration.proxy or "")
    proxies = {"http_proxy_host": proxy.hostname, "http_proxy_port": proxy.port, "proxy_type": "http"}
    try:
        websocket.connect(
            parts._replace(scheme="wss" if secure else "ws").geturl(),
            header=[f"{name}: {value}" for name, value in headers],
            subprotocols=list(PROTOCOLS),
            suppress_origin=True,
            # A server that redirects would get the credentials sent to wherever it likes.
            redirect_limit=0,
            timeout=timeout or None,
            # By itself it would use the environment's proxy, for servers on this machine too.
            **(proxies if proxy.hostname else {"http_no_proxy": ["*"]}),
        )
    except WebSocketBadStatusException as error:
        body = getattr(error, "resp_body", None) or b""
        raise api_error(error.status_code, body if isinstance(body, bytes) else str(body).encode()) from error
    except WebSocketTimeoutException as error:
        raise failure(url, TimeoutError()) from error
    except (WebSocketException, OSError, ValueError) as error:
        raise failure(url, error) from error
    return RemoteProcess(websocket, url)


def _tls_context(configuration: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    context.sslsocket_class = SharedTlsSocket
    without_strict_checks(context)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file or None)
    return context
