"""The API server's errors, worded as k8s.io/apimachinery/pkg/api/errors words them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind

_STALE = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class Cause:
    """One invalid field: its path, the machine-readable reason and the text."""

    field: str
    reason: str
    message: str


def bad_value(path: str, value: Any, why: str) -> Cause:
    """Return the cause for a field whose value breaks a rule."""
    return Cause(path, "FieldValueInvalid", f"Invalid value: {json.dumps(value)}: {why}")


def missing_value(path: str, why: str = "") -> Cause:
    """Return the cause for a field that must be set."""
    return Cause(path, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


@dataclass(eq=False)
class StatusError(Exception):
    """A failure that the client receives as a Status object."""

    code: int
    reason: str
    message: str
    details: Object = field(default_factory=dict)

    def status(self) -> Object:
        """Return the Status object."""
        body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body |= {"message": self.message, "reason": self.reason}
        return body | ({"details": self.details} if self.details else {}) | {"code": self.code}


def details_of(kind: Kind, name: str) -> Object:
    """Return the details of an error about an object."""
    return {"name": name} | ({"group": kind.group} if kind.group else {}) | {"kind": kind.plural}


def not_found(kind: Kind, name: str) -> StatusError:
    """Return the error for a name that no object has."""
    text = f'{kind.resource} "{name}" not found'
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", text, details_of(kind, name))


def no_such_resource() -> StatusError:
    """Return the error for a path that names no served resource type."""
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")


def conflict(kind: Kind, name: str, why: str = _STALE) -> StatusError:
    """Return the error for a write to an object that is not as the writer assumes; by default, it is newer."""
    text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", text, details_of(kind, name))


def bad_request(message: str) -> StatusError:
    """Return the error for a request that cannot be understood."""
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def invalid(kind: Kind, name: str, causes: Iterable[Cause]) -> StatusError:
    """Return the error for an object that breaks rules; each cause names a field."""
    causes = list(causes)
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    # Go's aggregate of errors puts several in brackets and leaves one as it is.
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = details_of(kind, name) | {"kind": kind.kind}
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    message = f'{kind.group_kind} "{name}" is invalid: {text}'
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def forbidden(kind: Kind, name: str, why: str) -> StatusError:
    """Return the error for what the user or an admission rule does not allow."""
    subject = f'{kind.resource} "{name}"' if name else kind.resource
    text = f"{subject} is forbidden: {why}"
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", text, details_of(kind, name))


def unsupported_media(media: str, accepted: Iterable[str]) -> StatusError:
    """Return the error for a body of an unknown media type."""
    text = "the body of the request was in an unknown format - accepted media types include: "
    details = {"name": media} if media else {}
    code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return StatusError(code, "UnsupportedMediaType", text + ", ".join(accepted), details)
