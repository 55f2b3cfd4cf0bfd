"""What a request asks for: the object or list that its URL names, the verb, its options, and who asks.

Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.status_errors import (
    bad_request,
    forbidden,
    no_such_resource,
)

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True, slots=True)
class User:
    """A user of the sandbox."""

    name: str
    groups: tuple[str, ...]
    may_write: bool = True

    def may(self, verb: str, group: str, plural: str) -> bool:
        """Whether this user may do *verb* to a resource; a reader sees all but secrets, as the role ``view``."""
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
class Target:
    """The object or list that a URL names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(registry: Registry, parts: list[str]) -> Target:
    """Return what the parts of a path name; raises StatusError where nothing is served.

    ``/apis/kubeflow.org/v2beta1/namespaces/ml/mpijobs/vgg/status`` is the status of MPIJob ``vgg`` in ``ml``, and
    ``/api/v1/namespaces/ml`` the Namespace ``ml``: only a path that goes on below a namespace is inside of it.
    """
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    # "/api/v1/namespaces/ml/status" is the status of a Namespace, not a resource of that name in it.
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced):
        raise no_such_resource()
    target = Target(kind, namespace, *rest[1:3])
    if target.subresource and target.subresource not in kind.subresources:
        raise no_such_resource()
    return target


def verb_of(method: str, target: Target, query: Mapping[str, str]) -> str:
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
    target: Target
    verb: str
    query: Mapping[str, str]
    body: Any
    media: str
    accept: str
    agent: str

    @property
    def wants_table(self) -> bool:
        """Whether the client wants a Table, as ``kubectl get`` does."""
        # kubectl's header lists several forms, such as "application/json;as=Table;v=v1;g=meta.k8s.io,application/json".
        return "as=Table" in self.accept

    def check_access(self) -> None:
        """Raise StatusError where the user may not do this."""
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
    """Return a number of a query, None where it is not given; raises StatusError where it is none, as Go does."""
    if name not in query:
        return None
    text = query[name]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # Numbers are 64 bits wide, and at most 20 characters long.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)
