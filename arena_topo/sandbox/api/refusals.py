"""The API server's refusals, worded as k8s.io/apimachinery/pkg/api/errors words them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One invalid field: its path, the machine-readable reason and the text."""

    field: str
    reason: str
    message: str


@dataclass(eq=False)
class Refusal(Exception):
    """A Status of failure; ``headers`` go with the HTTP answer."""

    code: int
    reason: str
    message: str
    details: Object = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def status(self) -> Object:
        """Return the Status object."""
        body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body |= {"message": self.message, "reason": self.reason}
        if self.details:
            body["details"] = self.details
        return body | {"code": self.code}


def _about(kind: Kind, name: str) -> Object:
    return {"name": name} | ({"group": kind.group} if kind.group else {}) | {"kind": kind.plural}


def not_found(kind: Kind, name: str) -> Refusal:
    """Return the refusal of a name that no object has."""
    return Refusal(
        HTTPStatus.NOT_FOUND, "NotFound", f'{kind.resource} "{name}" not found', _about(kind, name)
    )


def no_such_resource() -> Refusal:
    """Return the refusal of a path that names no served resource type."""
    return Refusal(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str) -> Refusal:
    """Return the refusal of a name that is taken."""
    text = f'{kind.resource} "{name}" already exists'
    return Refusal(HTTPStatus.CONFLICT, "AlreadyExists", text, _about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Refusal:
    """Return the refusal of a write on an object that is not what it supposes."""
    text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return Refusal(HTTPStatus.CONFLICT, "Conflict", text, _about(kind, name))


def stale(kind: Kind, name: str) -> Refusal:
    """Return the refusal of a write on an old version."""
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def unmet(kind: Kind, name: str, what: str, wanted: str, found: str) -> Refusal:
    """Return the refusal of a deletion whose precondition does not hold."""
    happened = "deleted and then recreated" if what == "UID" else "modified"
    text = (
        f'Operation cannot be fulfilled on {kind.group_kind} "{name}": the {what} in the precondition ({wanted}) '
        f"does not match the {what} in record ({found}). The object might have been {happened}"
    )
    return Refusal(HTTPStatus.CONFLICT, "Conflict", text, _about(kind, name) | {"kind": kind.kind})


def bad_request(message: str) -> Refusal:
    """Return the refusal of a request that cannot be understood."""
    return Refusal(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def invalid(kind: Kind, name: str, causes: Iterable[Cause]) -> Refusal:
    """Return the refusal of an object that breaks rules; each cause names a field."""
    causes = list(causes)
    texts = [f"{each.field}: {each.message}" for each in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _about(kind, name) | {"kind": kind.kind}
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    message = f'{kind.group_kind} "{name}" is invalid: {text}'
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def forbidden(kind: Kind, name: str, why: str) -> Refusal:
    """Return the refusal of what the user or an admission rule does not allow."""
    subject = f'{kind.resource} "{name}"' if name else kind.resource
    return Refusal(HTTPStatus.FORBIDDEN, "Forbidden", f"{subject} is forbidden: {why}", _about(kind, name))


def unauthorized() -> Refusal:
    """Return the refusal of a request without valid credentials."""
    return Refusal(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def expired(message: str) -> Refusal:
    """Return the refusal of a version or continue token that is too old."""
    return Refusal(HTTPStatus.GONE, "Expired", message)


def too_many_requests(seconds: int) -> Refusal:
    """Return the request to slow down."""
    text = "Too many requests, please try again later."
    details = {"retryAfterSeconds": seconds}
    headers = {"Retry-After": str(seconds)}
    return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", text, details, headers)


def unsupported_media(content_type: str, accepted: Iterable[str]) -> Refusal:
    """Return the refusal of a body's media type."""
    text = "the body of the request was in an unknown format - accepted media types include: "
    return Refusal(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        text + ", ".join(accepted),
        {"name": content_type} if content_type else {},
    )


def method_not_allowed(action: str, kind: Kind) -> Refusal:
    """Return the refusal of a verb that the resource does not know."""
    text = f"{action} is not supported on resources of kind {kind.resource!r}"
    return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", text, _about(kind, ""))
