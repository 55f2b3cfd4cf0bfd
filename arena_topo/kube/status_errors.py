"""The errors that users see for the refusals of the API server, from its Status objects."""

import json
from typing import Any

from arena_topo.errors import (
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)

_CLASSES: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}
_HINTS = {
    401: "your credentials have expired or are wrong: log in again, or check the user of your context "
    "with kubectl config view --minify",
    403: "ask the cluster's admin for this permission; kubectl auth can-i --list shows what you may do",
    429: "the server asks to slow down: try again in a moment",
}
_LONGEST_MESSAGE = 2000
"""Characters that are shown of what the server says, which may be a proxy's page in HTML."""


def api_error(status: int, body: bytes) -> ApiError:
    """Return the error for an answer with the HTTP code *status* and *body*, a Status object or any text.

    A proxy or a login page before the API server answers with HTML, of which the user sees the beginning.
    """
    document = _status(body)
    message = str(document.get("message") or "") or body.decode(errors="replace").strip()
    message = message[:_LONGEST_MESSAGE]
    details = document.get("details")
    # The server's own message is the one word Unauthorized, which does not say that the credentials are the reason.
    if status == 401:
        message = f"the server does not accept your credentials ({message or 'Unauthorized'})"
    kind = _CLASSES.get(status, ApiError)
    return kind(
        message or f"the server answered with HTTP status {status}",
        hint=_HINTS.get(status, ""),
        status=status,
        reason=str(document.get("reason") or "")[:_LONGEST_MESSAGE],
        details=details if isinstance(details, dict) else {},
    )


def is_unserved(error: NotFound) -> bool:
    """Whether a 404 means that the resource type is not served, rather than that one object is missing."""
    # Only a server that knows the type can name the object that is missing.
    return not error.details.get("name")


def _status(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) and document.get("kind") == "Status" else {}
