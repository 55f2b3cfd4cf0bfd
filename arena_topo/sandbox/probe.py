"""One request to a running sandbox, with nothing but its own files."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from arena_topo.sandbox.home import Home

TIMEOUT_SECONDS = 5.0


def ask(home: Home, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the answer of the sandbox of a folder, or None when it does not answer."""
    try:
        config = json.loads(home.kubeconfig.read_text("utf-8"))
        context = ssl.create_default_context(cafile=str(home.certificate))
    except (OSError, ValueError):
        return None
    request = urllib.request.Request(  # noqa: S310  # the address of our own server
        config["clusters"][0]["cluster"]["server"] + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {config['users'][0]['user']['token']}",
            "Content-Type": "application/json",
        },
        method=method,
    )
    handlers = (urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({}))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_SECONDS) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except (urllib.error.URLError, OSError, ValueError):
        return None
