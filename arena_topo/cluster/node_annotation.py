"""The annotation in which an agent publishes a node's topology, written and read."""

from collections.abc import Callable

from arena_topo.kube.resources import NODES
from arena_topo.kube.session import Session
from arena_topo.model.keys import GPU_TOPOLOGY


def publisher(session: Session, node: str) -> Callable[[str], None]:
    """Return a function that writes a value into the annotation of *node*."""

    # A merge patch leaves the other annotations of the node alone.
    def write(value: str) -> None:
        session.patch(NODES.path(name=node), {"metadata": {"annotations": {GPU_TOPOLOGY: value}}})

    return write


def published(session: Session, node: str) -> str:
    """Return the value of the annotation of *node*, empty if there is none. Raises ``NotFound``."""
    metadata = session.get(NODES.path(name=node))["metadata"]
    return str((metadata.get("annotations") or {}).get(GPU_TOPOLOGY, ""))
