"""The only package that talks to Kubernetes."""

from dataclasses import dataclass, field

REQUEST_TIMEOUT = 120.0
"""Seconds for one request: twice what an API server gives itself for it."""

RECONNECT = 300.0
"""Seconds for which a command that waits outlasts a server that is away: an upgrade takes a minute or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFlags:
    """What the user chose with kubectl's flags; empty means: as the kubeconfig says.

    ``request_timeout`` is in seconds for one request, 0 for no limit. ``reconnect`` is in seconds for what
    waits, 0 for not at all.
    """

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""
    cluster: str = ""
    user: str = ""
    server: str = ""
    token: str = field(default="", repr=False)
    certificate_authority: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    impersonate: str = ""
    impersonate_groups: tuple[str, ...] = ()
    request_timeout: float = REQUEST_TIMEOUT
    reconnect: float = RECONNECT
