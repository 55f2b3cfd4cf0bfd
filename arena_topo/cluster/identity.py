"""Who the user is, for the API server and for Arena.

Arena reads the name from a token review, and calls everybody with a certificate ``kubecfg:certauth:admin``; the API
server itself knows the name of any user. Source: kubeflow/arena 0.15.5, pkg/apis/config/{user,arenaconfig}.go.
"""

from dataclasses import dataclass
from hashlib import md5

from arena_topo.errors import Forbidden, NotFound
from arena_topo.kube.resources import CONFIG_MAPS, SELF_SUBJECT_REVIEWS
from arena_topo.kube.session import Session


@dataclass(frozen=True, slots=True)
class Identity:
    """A user's name; the hash of it that Arena puts on jobs; and whether Arena's configuration names him an admin."""

    name: str
    id: str
    is_admin: bool


def whoami(session: Session, *, arena_namespace: str) -> Identity:
    """Return the user of *session*. Raises what the server says; an older one than 1.28 has no answer."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = session.create(SELF_SUBJECT_REVIEWS.path(), review)
    name = str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
    return Identity(name, _id_of(name), name in _admins(session, arena_namespace))


def _id_of(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()


def _admins(session: Session, namespace: str) -> set[str]:
    try:
        config = session.get(CONFIG_MAPS.path(namespace, "arena-config"))
    # Without Arena there is no such object, and its readers have no need of a right to it.
    except (NotFound, Forbidden):
        return set()
    listed = str((config.get("data") or {}).get("adminUsers") or "")
    return {name.strip() for name in listed.split(",") if name.strip()}
