"""What the controller publishes of a cluster, for users who cannot list its nodes and pods.

It is a snapshot of what is free: hardware, links, fabric, and the amounts and GPUs that are taken, without
pods or environments. It stands as compressed JSON in ConfigMaps of the controller's namespace, which
everybody can read; a large one is split, as an object may have one MiB. For example, a snapshot of 1.5 MiB::

    arena-topo-snapshot-0    written 10:00:05, 3 parts    the first 700 KiB
    arena-topo-snapshot-1    written 10:00:05             the next 700 KiB
    arena-topo-snapshot-2    written 10:00:05             the rest

Readers take parts that were written together, and look again where the controller has just written some of
them.
"""

import json
import zlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import DocumentError, Forbidden, NotFound, UsageError
from arena_topo.kube.resources import CONFIG_MAPS, NODES
from arena_topo.kube.session import Session
from arena_topo.model.cluster import Holder, Snapshot
from arena_topo.model.keys import (
    ACK_SCHEDULE,
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    GPU_RESOURCES,
    GPU_TOPOLOGY,
    MANAGED_BY,
    OWN_NAME,
    SNAPSHOT_PARTS,
    SNAPSHOT_WRITTEN,
)
from arena_topo.model.objects import Object
from arena_topo.model.text.json import optional_number
from arena_topo.model.text.quantity import parse_instant
from arena_topo.model.text.words import written_duration
from arena_topo.topology.fabric import read_fabric
from arena_topo.topology.files import read_snapshot, snapshot_document

MOST_PARTS = 16
PART_NAMES = tuple(f"{OWN_NAME}-snapshot-{part}" for part in range(MOST_PARTS))

_PART = 700 * 1024
"""Bytes of a part: as base64 it takes a third more, and an object may have one MiB."""

_KEY = "snapshot.json.z"
_LARGEST = 256 * 2**20
"""Bytes of the JSON; 10,000 nodes have 20 MiB."""

_LOOKS = 3
_OLD = 60.0
"""Seconds after which its age is shown to a reader."""

_SOMEBODY = "somebody"


class Detail(Enum):
    """How much everybody may read of who uses the GPUs.

    Nothing at all, the amounts, or the jobs that hold them.
    """

    NONE = "none"
    USAGE = "usage"
    JOBS = "jobs"


def publishable(snapshot: Snapshot, detail: Detail) -> Snapshot:
    """Return *snapshot* without what only those may read who may list pods."""
    nodes = tuple(
        replace(node, holders=tuple(_anonymous(holder, detail) for holder in node.holders))
        for node in snapshot.nodes
    )
    # Warnings name objects of others.
    return replace(snapshot, nodes=nodes, warnings=())


def _anonymous(holder: Holder, detail: Detail) -> Holder:
    if detail is Detail.JOBS:
        return replace(holder, pod=holder.job or _SOMEBODY)
    return replace(holder, namespace="", job="", pod=_SOMEBODY)


def published_parts(snapshot: Snapshot) -> list[Object]:
    """Return the ConfigMaps that hold *snapshot*.

    Raises ``ValueError`` for one that is too large to publish.
    """
    text = json.dumps(snapshot_document(snapshot), separators=(",", ":"), sort_keys=True)
    packed = zlib.compress(text.encode())
    parts = [packed[at : at + _PART] for at in range(0, len(packed), _PART)]
    if len(parts) > MOST_PARTS:
        raise ValueError(
            f"the snapshot takes {len(parts)} objects of {_PART // 1024} KiB, and {MOST_PARTS} are published at most"
        )
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": PART_NAMES[number],
                "namespace": CONTROLLER_NAMESPACE,
                "labels": {"app.kubernetes.io/name": CONTROLLER, MANAGED_BY: OWN_NAME},
                "annotations": {SNAPSHOT_WRITTEN: snapshot.taken, SNAPSHOT_PARTS: str(len(parts))},
            },
            "binaryData": {_KEY: b64encode(part).decode()},
        }
        for number, part in enumerate(parts)
    ]


def visible_snapshot(session: Session, levels: Sequence[str] = ()) -> Snapshot:
    """Return the cluster as the user may see it: by its objects, or else as the controller has published it.

    Raises ``Forbidden`` for users who cannot list the nodes, where nothing is published.
    """
    try:
        return take_snapshot(session, levels=levels, needs_pods=True)
    except Forbidden:
        return read_published(session, levels) or take_snapshot(session, levels=levels)


def read_published(session: Session, levels: Sequence[str] = ()) -> Snapshot | None:
    """Return what the controller has published last, None without one, or where it cannot be read.

    *levels* are label keys, coarse to fine, in place of the tiers that the cluster shows. Raises
    ``DocumentError`` for parts that cannot be read.
    """
    try:
        parts = _read_parts(session)
    except (Forbidden, NotFound):
        # Without a controller there is nothing to read, and no right to look was given.
        return None
    snapshot = _unpacked(parts)
    warnings = list(snapshot.warnings)
    now = session.now()
    try:
        age = (now - parse_instant(snapshot.taken)).total_seconds()
    except ValueError as error:
        raise DocumentError(f"what the controller publishes cannot be read: {error}") from error
    if age > _OLD:
        warnings.append(
            f"you cannot list the nodes and pods: this is what the controller published {written_duration(age)} ago"
        )
    if levels:
        snapshot = replace(snapshot, fabric=read_fabric(snapshot.nodes, (), levels, warnings))
    return replace(snapshot, warnings=tuple(warnings))


def _read_parts(session: Session) -> list[Object]:
    """Return parts that belong together; those of two writings are read again a few times."""
    for _ in range(_LOOKS):
        first = _part(session, 0)
        written, count = _stamp(first)
        parts = [first, *(_part(session, number) for number in range(1, min(count, MOST_PARTS)))]
        if all(_stamp(part)[0] == written for part in parts):
            return parts
    raise DocumentError("what the controller publishes changes faster than it can be read")


def _part(session: Session, number: int) -> Object:
    return session.get(CONFIG_MAPS.path(CONTROLLER_NAMESPACE, PART_NAMES[number]))


def _stamp(part: Object) -> tuple[str, int]:
    annotations = part["metadata"].get("annotations") or {}
    return str(annotations.get(SNAPSHOT_WRITTEN, "")), optional_number(annotations.get(SNAPSHOT_PARTS)) or 1


def _unpacked(parts: Iterable[Object]) -> Snapshot:
    """Return the snapshot in *parts*. Raises ``DocumentError``."""
    source = "what the controller publishes"
    unpacker = zlib.decompressobj()
    try:
        packed = b"".join(b64decode((part.get("binaryData") or {}).get(_KEY, "")) for part in parts)
        # Anyone who may write ConfigMaps there could let a few KiB unpack to any size.
        text = unpacker.decompress(packed, _LARGEST)
        if not unpacker.eof:
            raise DocumentError(
                f"{source} cannot be read: it is cut off, or larger than {_LARGEST >> 20} MiB"
            )
        return read_snapshot(json.loads(text), source)
    except (zlib.error, NotBase64, TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{source} cannot be read: {error}") from error


# The annotation in which an agent publishes a node's topology, written and read.


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


# Switching the vendor's topology scheduling of nodes on and off: one label, ``topology`` or ``default``.
#
# On the vendor's clusters a node with the label ``topology`` offers ``aliyun.com/gpu`` and no longer
# ``nvidia.com/gpu``.


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
    """Return the changes that label the nodes *names* with *value*, and an error for each missing node.

    Raises ``UsageError`` for a name that is empty.
    """
    changes, missing = [], []
    names = tuple(names)
    if "" in names:
        raise UsageError("the name of a node is empty", hint="is a variable of your shell not set?")
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
    """Return the changes that set the label of the nodes of *selector* to *value*.

    Empty selects all with GPUs.
    """
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
