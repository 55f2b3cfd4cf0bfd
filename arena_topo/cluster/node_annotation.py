"""The annotation by which a node tells its topology, written and read back."""

from collections.abc import Callable

from arena_topo.kube.resources import NODES
from arena_topo.kube.session import Session
from arena_topo.topology.sources.annotation import KEY


def publish(session: Session, node: str) -> Callable[[str], None]:
    """Return a function that writes the annotation of *node*."""

    def write(value: str) -> None:
        session.patch(NODES.path(name=node), {"metadata": {"annotations": {KEY: value}}})

    return write


def published(session: Session, node: str) -> str:
    """Return the annotation of *node* as it is, empty if there is none. Raises ``NotFound``."""
    found = session.get(NODES.path(name=node))
    return str((found["metadata"].get("annotations") or {}).get(KEY, ""))
