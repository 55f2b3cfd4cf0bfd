"""What the tests of the transports ask, and whom."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from arena_topo.kube.kubeconfig import Target
from arena_topo.kube.session import Session
from arena_topo.kube.transport import HttpTransport, Request
from tests.kube.server import Server

Make = Callable[[Target], HttpTransport]


def target(server: Server, user: Mapping[str, Any] | None = None, /, **cluster: Any) -> Target:
    """Return the entry of a kubeconfig for *server*;
    underscores in the names of *cluster* stand for dashes.
    """
    given = {key.replace("_", "-"): value for key, value in cluster.items()}
    entry = {"server": server.url, "certificate-authority": str(server.authority.certificate), **given}
    return Target("c", "default", entry, user or {})


def get(transport: HttpTransport, path: str = "/x", **options: Any) -> Any:
    """Return the object at *path*."""
    return json.loads(transport.send(Request("GET", path, **options)).read())


def session(transport: HttpTransport, user: Mapping[str, Any] | None = None) -> Session:
    """Return a session over *transport*."""
    return Session(transport, namespace="default", user=user)
