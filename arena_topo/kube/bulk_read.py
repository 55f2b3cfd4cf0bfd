"""Everything in a cluster that placement depends on, in few calls, with only the fields that are read.

Decoding pods into typed structs costs a tenth of what decoding them into dictionaries does (10,000 pods: 0.14
s against 1.5 s), and most fields of a pod are never read. Dictionaries with no more than the fields that a
shape names cost a sixth, and serve readers of whole objects as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, TypeVar

import msgspec

from arena_topo.errors import DocumentError, Forbidden, NotFound
from arena_topo.kube.resources import CONFIG_MAPS, NODES, PODS, Resource, answered_at
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Choice, Session, endless
from arena_topo.model.keys import ACK_SCHEDULE, ACK_SCHEDULE_TOPOLOGY
from arena_topo.model.objects import Object
from arena_topo.model.text.documents import Each, Named, Part, Shape, fitted, text
from arena_topo.model.text.json import cut, read_body, without_depths

Quantities = dict[str, str | int | float]

_PAGE = 1000
"""Items of a list for each call: a page of pods is some megabytes."""

MOST_KEPT = 50_000
"""Objects of one list, but pods: ten times the nodes that Kubernetes supports."""

LARGEST_KEPT = 96 * 2**20
"""Bytes that the fields of all nodes that are read may take as JSON."""

LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have ended hold no resources; on busy clusters they are most of the list."""


class ResourceRequirements(msgspec.Struct):
    """The resources that a container or a pod requests."""

    requests: Quantities | None = None


class Container(msgspec.Struct):
    """A container; an init container with the ``restart_policy`` ``Always`` keeps running."""

    resources: ResourceRequirements = msgspec.field(default_factory=ResourceRequirements)
    restart_policy: str | None = msgspec.field(name="restartPolicy", default=None)


class ObjectMeta(msgspec.Struct):
    """An object's metadata."""

    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class PodSpec(msgspec.Struct):
    """Where a pod runs, and what it requests there."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = msgspec.field(name="initContainers", default=None)
    node_name: str | None = msgspec.field(name="nodeName", default=None)
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodStatus(msgspec.Struct):
    """The phase of a pod's life."""

    phase: str = ""


class Pod(msgspec.Struct):
    """A pod, with only the fields that are read."""

    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class _ListMeta(msgspec.Struct):
    next_page: str = msgspec.field(name="continue", default="")


class _PodList(msgspec.Struct):
    items: list[Pod] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _ObjectList(msgspec.Struct):
    items: list[Object] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


_List = TypeVar("_List", _PodList, _ObjectList)

_LABELLED = Part({"metadata": Part({"labels": Named(text)})})

OPTIONAL = {
    "devices": ("scheduling.koordinator.sh", "devices", ("v1alpha1",)),
    "slices": ("resource.k8s.io", "resourceslices", ("v1", "v1beta2", "v1beta1")),
    "claims": ("resource.k8s.io", "resourceclaims", ("v1", "v1beta2", "v1beta1")),
    "zones": ("topology.node.k8s.io", "noderesourcetopologies", ("v1alpha2", "v1alpha1")),
    "kueue": ("kueue.x-k8s.io", "topologies", ("v1beta2", "v1beta1", "v1alpha1")),
    "kai": ("kai.scheduler", "topologies", ("v1alpha1",)),
    "koordinator": ("scheduling.koordinator.sh", "clusternetworktopologies", ("v1alpha1",)),
    "volcano": ("topology.volcano.sh", "hypernodes", ("v1alpha1",)),
}
"""What a cluster may serve besides its nodes and pods: group, resource, and the versions that are read, best
first."""


@dataclass(frozen=True, slots=True)
class RawCluster:
    """The objects of a cluster; ``optional`` has a list for each key of ``OPTIONAL`` that the cluster serves.

    ``pods`` are read while they are iterated, once. ``forbidden`` names the resources that the user cannot
    list; it is complete once the pods have been read.
    """

    nodes: list[Object]
    pods: Iterator[Pod]
    config_maps: list[Object]
    optional: dict[str, list[Object]]
    forbidden: list[str]


def read_cluster(session: Session) -> RawCluster:
    """Read a cluster: one call for discovery, one for each page of a list.

    Raises ``Forbidden`` without its nodes.
    """
    # Only the nodes are indispensable: what else is forbidden is named in a warning, and the rest is read.
    forbidden: list[str] = []
    apis = ServedApis(session)
    optional = {
        key: list(_unless_forbidden(session, Resource(group, version, plural), forbidden))
        for key, (group, plural, versions) in OPTIONAL.items()
        if (version := apis.preferred(group, versions))
    }
    nodes = list(_nodes(session))
    # The vendor's scheduler reports topologies in ConfigMaps; no other cluster has them, nor lets users list
    # them.
    config_maps = []
    if any(map(_is_in_topology_mode, nodes)):
        selector = f"{ACK_SCHEDULE}={ACK_SCHEDULE_TOPOLOGY}"
        config_maps = list(
            _unless_forbidden(session, CONFIG_MAPS, forbidden, "kube-system", labelSelector=selector)
        )
    return RawCluster(nodes, _pods(session, forbidden), config_maps, optional, forbidden)


def _is_in_topology_mode(node: Object) -> bool:
    labels = (fitted(node, _LABELLED).get("metadata") or {}).get("labels") or {}
    return bool(labels.get(ACK_SCHEDULE) == ACK_SCHEDULE_TOPOLOGY)


def _unless_forbidden(
    session: Session, resource: Resource, forbidden: list[str], namespace: str = "", **query: str
) -> Iterator[Object]:
    try:
        yield from _objects(session, resource.path(namespace), **query)
    except Forbidden:
        forbidden.append(resource.plural)
    except NotFound:
        return  # the group is served in this version, and this resource of it is not


def _objects(session: Session, path: str, **query: str) -> Iterator[Object]:
    pages = _pages(session, path, msgspec.json.Decoder(_ObjectList), query)
    yield from _bounded(path, (item for page in pages for item in page.items or []))


def _nodes(session: Session) -> Iterator[Object]:
    """Yield the nodes, without the images that they have, which take most of their bytes."""
    path, kept = NODES.path(), 0

    def read(choice: Choice) -> tuple[_ObjectList, str]:
        nonlocal kept
        body = session.get_raw(path, **choice)
        try:
            page = msgspec.convert(lean_list(body, path), _ObjectList)
        except (ValueError, msgspec.ValidationError):
            page = _decoded(body, msgspec.json.Decoder(_ObjectList), path)
        kept += _size(page, body)
        if kept > LARGEST_KEPT:
            raise endless(
                path, f"more than {LARGEST_KEPT >> 20} MiB of labels, annotations and amounts so far"
            )
        return page, page.metadata.next_page

    pages = session.read_pages(path, read, _PAGE)
    yield from _bounded(path, (item for page in pages for item in page.items or []))


def _size(page: _ObjectList, body: bytes) -> int:
    """Return the bytes of what was read of *body* as *page*."""
    try:
        return len(msgspec.json.encode(page.items))
    # A number of more than 64 bits, or half a surrogate pair, can be read and not written.
    except (OverflowError, ValueError):
        return len(body)


def _bounded(path: str, items: Iterator[Object]) -> Iterator[Object]:
    """Yield *items* of the list at *path*, which are all kept; raises ``DocumentError`` for too many."""
    for number, item in enumerate(items):
        if number == MOST_KEPT:
            raise endless(path, f"more than {MOST_KEPT} objects so far")
        yield item


def _pods(session: Session, forbidden: list[str]) -> Iterator[Pod]:
    """Yield the pods that have not ended, page by page.

    None if the user cannot list those of all namespaces.
    """
    try:
        for page in _pages(
            session, PODS.path(), msgspec.json.Decoder(_PodList), {"fieldSelector": LIVE_PODS}
        ):
            yield from page.items or []
    except Forbidden:
        forbidden.append("pods")


def _pages(
    session: Session, path: str, decoder: "msgspec.json.Decoder[_List]", query: dict[str, str]
) -> Iterator[_List]:
    def read(choice: Choice) -> tuple[_List, str]:
        page = _decoded(session.get_raw(path, **query, **choice), decoder, path)
        return page, page.metadata.next_page

    return session.read_pages(path, read, _PAGE)


def _decoded(body: bytes, decoder: "msgspec.json.Decoder[_List]", path: str) -> _List:
    try:
        try:
            return decoder.decode(body)
        except RecursionError:
            # One object with a deep field of free form, as a ResourceClaim may carry, must not hide all
            # others.
            return decoder.decode(without_depths(body))
    # Text that is not UTF-8 is no error of msgspec's own.
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"the server answered GET {path} with something unexpected: {cut(str(error))}"
        ) from error


def lean_list(body: bytes, path: str) -> Any:
    """Return the list in *body*, from *path*, without fields that the shape of its items lacks.

    For example, of pods neither volumes nor probes are there. The checks are those of ``Session``, which come
    after.
    """
    try:
        return _lean_decoder(answered_at("GET", path).shape).decode(body)
    # One object that is not as its API says must not hide the others: the long way takes out what is wrong
    # with it.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read_body(body)


@lru_cache
def _lean_decoder(shape: Part) -> "msgspec.json.Decoder[Any]":
    fields = {"kind": Any, "metadata": Any, "items": list[_lean_type(shape)] | None}  # type: ignore[misc]  # built here
    return msgspec.json.Decoder(TypedDict("LeanList", fields, total=False))  # type: ignore[operator]  # built here


def _lean_type(shape: Shape) -> Any:
    """Return the type of what has *shape*; of single values anything, as they are checked later."""
    match shape:
        case Part(keys) if keys:
            fields = {key: _lean_type(below) | None for key, below in keys.items()}
            return TypedDict("Lean", fields, total=False)  # type: ignore[operator]  # built here
        case Each(below):
            return list[_lean_type(below)]  # type: ignore[misc]  # built here
        case Named():
            return dict[str, Any]
        case _:
            return object
