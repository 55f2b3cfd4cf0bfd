"""The transport for credentials that are not static: exec plugins, auth providers, in-cluster, proxies.

The ``kubernetes`` package resolves these credentials and does TLS and proxies; requests stay raw, and its typed models
are not used. Importing it takes about 0.2 s, so it is imported where it is needed.
"""

import logging
import os
import ssl
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

from arena_topo.errors import DocumentError, Unauthorized
from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.static_client import checked_files, proxy_of, token_of, without_strict_checks
from arena_topo.kube.transport import (
    LARGEST_BODY,
    AnswerClock,
    AnswerLost,
    ClockedResponse,
    Request,
    Response,
    failure,
    read_body,
    send_by_rule,
    too_large,
)


class OfficialTransport:
    """Sends requests through the pool of a ``kubernetes`` ``ApiClient``; ``load`` makes one."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._client = load()
        self._server = str(self._client.configuration.host)
        # Streams are opened by threads of their own.
        self._clocks = threading.local()

    def send(self, request: Request) -> Response:
        """Send through the pool, which keeps the connections of answers that have been read."""
        return send_by_rule(self._send, request)

    def stream(self, request: Request) -> Response:
        """Send; the pool gives every open answer a connection of its own."""
        return self.send(request)

    def renew(self) -> bool:
        """Resolve the credentials again: an exec plugin runs again."""
        self._client.close()
        self._client = self._load()
        return True

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, request: Request) -> Response:
        import urllib3

        # The package has a User-Agent of its own, and servers may refuse a request that has two. Impersonated groups
        # repeat their header, which a dictionary would merge.
        given = {name.lower() for name, _ in request.headers}
        defaults = {name: value for name, value in self.credentials().items() if name.lower() not in given}
        headers = urllib3.HTTPHeaderDict(defaults)
        for name, value in request.headers:
            headers.add(name, value)
        pools = self._client.rest_client.pool_manager
        pool = pools.connection_from_url(self._server)
        self._clocks.current = AnswerClock(request)
        self._read_by_clock(pool)
        connections = pool.num_connections
        try:
            raw = pools.request(
                request.method,
                self._server + request.path,
                body=request.body,
                headers=headers,
                # The clock limits the whole answer; this is for the connection, and for the time to send.
                timeout=urllib3.Timeout(total=None, connect=request.timeout, read=request.timeout),
                preload_content=False,
                # The rule of transport.py holds instead of urllib3's, and credentials follow no redirect.
                retries=False,
                redirect=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            cause = _cause(error)
            # The pool closes the connection at an error. One that it found closed and opened again counts as kept
            # here too: one more attempt, and no harm.
            was_kept = pool.num_connections == connections
            ended = isinstance(error, (urllib3.exceptions.ProtocolError, urllib3.exceptions.SSLError))
            if was_kept and ended and isinstance(cause, OSError):
                raise AnswerLost from error
            raise failure(self._server, cause) from error
        return OfficialResponse(raw, self._server)

    def _read_by_clock(self, pool: Any) -> None:
        """Have the connections that *pool* opens read each answer by the clock of its request."""

        def response(*args: Any, **kwargs: Any) -> ClockedResponse:
            return ClockedResponse(*args, clock=self._clocks.current, **kwargs)

        if not isinstance(vars(pool.ConnectionCls).get("response_class"), staticmethod):
            own = {"response_class": staticmethod(response)}
            pool.ConnectionCls = type("ClockedConnection", (pool.ConnectionCls,), own)

    @property
    def configuration(self) -> Any:
        """The package's own configuration: the server, its certificates, the proxy."""
        return self._client.configuration

    def credentials(self) -> dict[str, str]:
        """Return the headers of the user's credentials."""
        headers = {
            str(setting["key"]): str(setting["value"])
            for setting in self._client.configuration.auth_settings().values()
            if setting and setting.get("in") == "header" and setting.get("value")
        }
        return {**dict(self._client.default_headers), **headers}


class OfficialResponse:
    """An answer of ``urllib3``, with the errors of this project."""

    def __init__(self, raw: Any, server: str) -> None:
        self._raw, self._server = raw, server
        self._unread = b""
        self.status = int(raw.status)

    def header(self, name: str) -> str:
        """Return a header's value, empty if there is none."""
        return str(self._raw.headers.get(name) or "")

    def read(self) -> bytes:
        """Return the whole body."""
        try:
            return self._guard(
                lambda: read_body(lambda size: bytes(self._raw.read(size, decode_content=False)))
            )
        except TimeoutError as error:
            raise failure(self._server, error) from error

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line."""
        longest = LARGEST_BODY if limit < 0 else limit
        pieces, size = [self._unread], len(self._unread)
        while b"\n" not in pieces[-1] and size < longest:
            # read1 returns what has arrived; read would keep a followed log back until all bytes are there.
            chunk = self._guard(lambda: bytes(self._raw.read1(65536, decode_content=False)))
            if not chunk:
                break
            pieces.append(chunk)
            size += len(chunk)
        text = b"".join(pieces)
        end = min(text.find(b"\n") + 1 or len(text), longest)
        if end == LARGEST_BODY:
            raise too_large()
        self._unread = text[end:]
        return text[:end]

    def close(self) -> None:
        """Drop the rest and the connection with it."""
        self._raw.close()

    def _guard(self, read: Callable[[], bytes]) -> bytes:
        import urllib3

        try:
            return read()
        except urllib3.exceptions.ReadTimeoutError as error:
            raise TimeoutError(str(error)) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise failure(self._server, _cause(error)) from error


def from_target(target: Target) -> OfficialTransport:
    """Return a transport for one entry of the kubeconfig, whatever its credentials are.

    Raises ``DocumentError`` for entries the package cannot use, ``Unauthorized`` when a plugin gives nothing.
    """
    document: dict[str, Any] = {
        "current-context": "chosen",
        "contexts": [{"name": "chosen", "context": {"cluster": "chosen", "user": "chosen"}}],
        "clusters": [{"name": "chosen", "cluster": dict(target.cluster)}],
        "users": [{"name": "chosen", "user": dict(target.user)}],
    }

    checked_files(target)

    def load() -> Any:
        from kubernetes import client, config

        # The package reads a token file once and keeps the token; load() runs again after a 401.
        if target.user.get("tokenFile"):
            others = {key: value for key, value in target.user.items() if key not in ("token", "tokenFile")}
            document["users"][0]["user"] = {**others, "token": token_of(target.user)}
        configuration = client.Configuration()
        with _CapturedLog() as log:
            try:
                # Persisting would write a refreshed token into the user's kubeconfig.
                config.load_kube_config_from_dict(
                    document, persist_config=False, client_configuration=configuration
                )
            except config.ConfigException as error:
                raise DocumentError(
                    f"context {target.context!r} of the kubeconfig cannot be used: {error}",
                    hint="kubectl config view --minify shows the entry",
                ) from error
        _check_plugin(target.user, configuration, log.messages)
        # By itself the package would use the environment's proxy for servers on this machine too; kubectl does not.
        configuration.proxy, configuration.no_proxy = proxy_of(target, os.environ) or None, None
        # The user asked for it, and a warning at every request would bury the output.
        if target.cluster.get("insecure-skip-tls-verify"):
            import urllib3

            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return _client(configuration)

    return OfficialTransport(load)


def _client(configuration: Any) -> Any:
    """Return a client, whose pool knows the proxy. Raises ``DocumentError`` for a proxy that cannot be used."""
    import urllib3
    from kubernetes import client

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", urllib3.exceptions.DependencyWarning)
            api = client.ApiClient(configuration)
    except (urllib3.exceptions.URLSchemeUnknown, ImportError) as error:
        raise DocumentError(
            f"the proxy {configuration.proxy} cannot be used: {error}",
            hint="http:// and https:// proxies are spoken; socks5:// ones with pip install PySocks",
        ) from error
    api.rest_client.pool_manager.connection_pool_kw["ssl_context"] = _tls_context(configuration)
    return api


def _tls_context(configuration: Any) -> ssl.SSLContext:
    """Return the context in place of urllib3's own, which has the strict checks of Python 3.13."""
    from urllib3.util import create_urllib3_context

    context = create_urllib3_context(
        cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE
    )
    without_strict_checks(context)
    if not configuration.ssl_ca_cert:
        context.load_default_certs()  # urllib3 does so for its own contexts only
    return context


def in_cluster() -> OfficialTransport:
    """Return a transport with the pod's own service account. Raises ``DocumentError``."""

    def load() -> Any:
        from kubernetes import client, config

        configuration = client.Configuration()
        try:
            config.load_incluster_config(configuration)
        except config.ConfigException as error:
            raise DocumentError(f"the pod's service account cannot be used: {error}") from error
        return _client(configuration)

    return OfficialTransport(load)


def _check_plugin(user: Mapping[str, Any], configuration: Any, messages: list[str]) -> None:
    """Raise ``Unauthorized`` where a credential plugin gave nothing: the package continues without credentials."""
    # A plugin may give a token, or a client certificate.
    if "exec" not in user or configuration.api_key or configuration.cert_file:
        return
    command = user["exec"].get("command", "") if isinstance(user["exec"], dict) else ""
    raise Unauthorized(
        f"the credential plugin {command!r} gave no credentials: {'; '.join(messages) or 'it said nothing'}",
        hint="run kubectl get pods: it uses the same plugin and shows what it prints",
        status=401,
    )


class _CapturedLog(logging.Handler):
    """The errors that the package logs while it resolves credentials: it reports a plugin's failure nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message."""
        self.messages.append(record.getMessage())

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)


def _cause(error: Exception) -> Exception:
    """Return the operating system's error below urllib3's layers, as far as there is one."""
    layers = (getattr(error, "reason", None), *error.args, error.__cause__, error.__context__)
    return next((layer for layer in layers if isinstance(layer, OSError)), error)
