"""Who asks, and what they may: an administrator and a reader, by token."""

from dataclasses import dataclass

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import refusals
from arena_topo.sandbox.api.kinds import Kind

READ = frozenset({"get", "list", "watch"})
_SECRET = frozenset({"secrets"})


@dataclass(frozen=True, slots=True)
class User:
    """A user of the sandbox."""

    name: str
    groups: tuple[str, ...]
    may_write: bool = True

    def may(self, verb: str, group: str, plural: str) -> bool:
        """Whether this user may do *verb* to a resource; a reader sees all but secrets, as role ``view``."""
        if self.may_write:
            return True
        reviews = group in {"authorization.k8s.io", "authentication.k8s.io"}
        return (verb in READ and plural not in _SECRET) or (reviews and verb == "create")


ADMIN = User("arena-topo-admin", ("system:masters", "system:authenticated"))
READER = User("arena-topo-reader", ("system:authenticated",), may_write=False)


def check(user: User, verb: str, kind: Kind, *, namespace: str, name: str, subresource: str) -> None:
    """Raise Refusal when *user* may not."""
    if user.may(verb, kind.group, kind.plural):
        return
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {verb} resource "{resource}" in API group "{kind.group}" {where}'
    raise refusals.forbidden(kind, name, why)


def review(user: User, kind: Kind, body: Object, users: dict[str, User]) -> Object:
    """Answer a SelfSubjectAccessReview, SelfSubjectReview or TokenReview."""
    info = {"username": user.name, "groups": list(user.groups)}
    if kind.kind == "SelfSubjectReview":
        return body | {"status": {"userInfo": info}}
    if kind.kind == "TokenReview":
        known = users.get(body.get("spec", {}).get("token", ""))
        if known is None:
            return body | {"status": {"user": {}, "error": "token not found"}}
        info = {"username": known.name, "groups": list(known.groups)}
        return body | {"status": {"authenticated": True, "user": info}}
    asked = body.get("spec", {}).get("resourceAttributes") or {}
    allowed = user.may(asked.get("verb", "*"), asked.get("group", ""), asked.get("resource", "*"))
    return body | {"status": {"allowed": allowed}}
