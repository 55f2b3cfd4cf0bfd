"""Switching the vendor's topology scheduling of nodes on and off: one label, ``topology`` or ``default``.

On the vendor's clusters a node with the label ``topology`` offers ``aliyun.com/gpu`` and no longer ``nvidia.com/gpu``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arena_topo.errors import NotFound
from arena_topo.kube.resources import NODES
from arena_topo.kube.session import Session
from arena_topo.model.keys import ACK_SCHEDULE, GPU_RESOURCES
from arena_topo.model.objects import Object


@dataclass(frozen=True, slots=True)
class LabelChange:
    """The label of one node before and after; ``old`` is empty where the node has no such label."""

    node: str
    old: str
    new: str

    @property
    def is_needed(self) -> bool:
        """Whether anything changes."""
        return self.old != self.new


def changes_by_name(
    session: Session, names: Iterable[str], value: str
) -> tuple[list[LabelChange], list[NotFound]]:
    """Return the changes that set the label of the nodes *names* to *value*, and an error for each missing node."""
    changes, missing = [], []
    # A missing node must not stop the others, and a name that is given twice is changed once.
    for name in dict.fromkeys(names):
        try:
            changes.append(_change(session.get(NODES.path(name=name)), value))
        except NotFound:
            missing.append(
                NotFound(f"node {name} does not exist", hint="arena-topo top node lists them", status=404)
            )
    return changes, missing


def changes_by_selector(session: Session, selector: str, value: str) -> list[LabelChange]:
    """Return the changes that set the label of the nodes of *selector* to *value*; empty selects all with GPUs."""
    nodes = session.list(NODES.path(), labelSelector=selector or None)
    return [_change(node, value) for node in nodes if selector or _has_gpus(node)]


def apply(session: Session, changes: Sequence[LabelChange], *, dry_run: bool = False) -> Iterable[str]:
    """Apply *changes* one by one, and yield the name of each node once it is changed."""
    for change in changes:
        body = {"metadata": {"labels": {ACK_SCHEDULE: change.new}}}
        session.patch(NODES.path(name=change.node), body, "merge", **({"dryRun": "All"} if dry_run else {}))
        yield change.node


def _change(node: Object, value: str) -> LabelChange:
    labels = node["metadata"].get("labels") or {}
    return LabelChange(node["metadata"]["name"], labels.get(ACK_SCHEDULE, ""), value)


def _has_gpus(node: Object) -> bool:
    # Capacity, not what is allocatable: unhealthy GPUs are GPUs of the node too.
    capacity = (node.get("status") or {}).get("capacity") or {}
    return any(str(capacity.get(resource, "0")) != "0" for resource in GPU_RESOURCES)
