"""What is served and asked for: resource types, what a request names and wants, and refusals.

Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

from arena_topo.model.objects import Object

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")

ResourceKey = tuple[str, str]
"""Group and plural: objects of all versions of a resource are stored together."""


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of a custom resource; ``path`` is its JSON path."""

    name: str
    type: str
    path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """One version of one resource type.

    ``schema`` is a structural schema (references by name into the server's components), ``custom`` says
    whether a CRD defines it, ``virtual`` that it is answered and never stored, as access reviews are.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    schema: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    columns: tuple[Column, ...] = ()
    custom: bool = False
    virtual: bool = False

    @property
    def key(self) -> ResourceKey:
        """The key under which its objects are stored."""
        return (self.group, self.plural)

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with its group, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """The kind with its group, as messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def has_status(self) -> bool:
        """Whether status is written apart from the rest."""
        return "status" in self.subresources

    @property
    def root(self) -> str:
        """The URL path of its group and version, without the slash before it."""
        return f"apis/{self.api_version}" if self.group else f"api/{self.version}"


class Registry:
    """All kinds that are served."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def add(self, kind: Kind) -> None:
        """Serve *kind*, replacing what was served in its place."""
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def remove(self, group: str, plural: str) -> None:
        """Stop serving all versions of this resource."""
        for key in [k for k in self._kinds if (k[0], k[2]) == (group, plural)]:
            del self._kinds[key]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind of a URL's group, version and plural."""
        return self._kinds.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind that an object's ``apiVersion`` and ``kind`` name."""
        served = self._kinds.values()
        return next((k for k in served if (k.kind, k.api_version) == (kind, api_version)), None)

    def stored(self, key: ResourceKey) -> Kind | None:
        """Return any version of the resource stored under *key*."""
        return next((kind for kind in self._kinds.values() if kind.key == key), None)

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of every group, in order of registration."""
        groups: dict[str, list[str]] = {}
        for kind in self._kinds.values():
            versions = groups.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return groups


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class User:
    """A user of the sandbox."""

    name: str
    groups: tuple[str, ...]
    may_write: bool = True

    def may(self, verb: str, group: str, plural: str) -> bool:
        """Whether this user may do *verb* to a resource; a reader sees all but secrets."""
        if self.may_write:
            return True
        # Everyone may ask what they are allowed to do; such a question is a POST.
        review = verb == "create" and group in {"authorization.k8s.io", "authentication.k8s.io"}
        return review or (verb in {"get", "list", "watch"} and plural != "secrets")


ADMIN = User("arena-topo-admin", ("system:masters", "system:authenticated"))
READER = User("arena-topo-reader", ("system:authenticated",), may_write=False)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write; ``warnings`` collects what the answer's Warning headers say."""

    manager: str = "arena-topo-sandbox"
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete: the grace period in seconds, what happens to dependents, and what must hold."""

    grace: int | None = None
    propagation: Literal["Background", "Foreground", "Orphan"] | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Target:
    """The object or list that a URL names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(registry: Registry, parts: list[str]) -> _Target:
    """Return what the parts of a path name; raises StatusError where nothing is served.

    ``/apis/kubeflow.org/v2beta1/namespaces/ml/mpijobs/vgg/status`` is the status of MPIJob ``vgg`` in ``ml``,
    and ``/api/v1/namespaces/ml`` the Namespace ``ml``: only a path that continues below a namespace is inside
    it.
    """
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    # "/api/v1/namespaces/ml/status" is the status of a Namespace, not a resource of that name in it.
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced):
        raise no_such_resource()
    target = _Target(kind, namespace, *rest[1:3])
    if target.subresource and target.subresource not in kind.subresources:
        raise no_such_resource()
    return target


def verb_of(method: str, target: _Target, query: Mapping[str, str]) -> str:
    """Return the API verb of an HTTP method."""
    if method in {"GET", "HEAD"}:
        if query.get("watch") in {"true", "1"}:
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    return _VERBS.get(method, method.lower())


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request whose path, verb and body are understood."""

    user: User
    target: _Target
    verb: str
    query: Mapping[str, str]
    body: Any
    media: str
    accept: str
    agent: str

    @property
    def wants_table(self) -> bool:
        """Whether the client wants a Table, as ``kubectl get`` does."""
        # kubectl's header lists several forms, such as
        # "application/json;as=Table;v=v1;g=meta.k8s.io,application/json".
        return "as=Table" in self.accept

    def check_access(self) -> None:
        """Raise StatusError unless the user is allowed to do this."""
        user, target, kind = self.user, self.target, self.target.kind
        if user.may(self.verb, kind.group, kind.plural):
            return
        resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
        where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
        verb = f'cannot {self.verb} resource "{resource}" in API group "{kind.group}"'
        raise forbidden(kind, target.name, f'User "{user.name}" {verb} {where}')

    def write_options(self) -> WriteOptions:
        """Return the options of a write; raises StatusError for values that do not exist."""
        query = self.query
        dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation") or "Warn"
        # A misspelt dry run must never write.
        if dry_run not in {"", "All"}:
            raise bad_request(f'invalid dryRun: Unsupported value: "{dry_run}": supported values: "All"')
        if validation not in {"Strict", "Warn", "Ignore"}:
            raise bad_request(f'fieldValidation: Unsupported value: "{validation}"')
        return WriteOptions(
            # Without a manager the API server takes the first word of the user agent.
            manager=query.get("fieldManager") or self.agent or "unknown",
            dry_run=bool(dry_run),
            validation=validation,
            force=query.get("force") == "true",
            subresource="status" if self.target.subresource == "status" else "",
        )


def number_of(query: Mapping[str, str], name: str) -> int | None:
    """Return a number of a query, None where it is not given; raises StatusError where it is none."""
    if name not in query:
        return None
    text = query[name]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # Numbers are 64 bits wide, and at most 20 characters long.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


# Refusals, worded as k8s.io/apimachinery/pkg/api/errors words them.

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
    """Return the error for a write to an object that is not as the writer assumes, such as newer."""
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
