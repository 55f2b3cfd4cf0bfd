"""From the objects of a cluster to the snapshot that the planner works on."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from operator import attrgetter

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import ShareMode
from arena_topo.model.cluster.snapshot import Fact, GpuNode, Snapshot
from arena_topo.model.keys import DRA_GPU, GPU_RESOURCES, NVIDIA_GPU
from arena_topo.model.notation.bounded_json import cut
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.notation.quantity import Resources
from arena_topo.topology.fabric.read import read_fabric
from arena_topo.topology.merge import NodeHardware, merge
from arena_topo.topology.node_facts import NodeFacts
from arena_topo.topology.occupancy import Occupancy, occupancy
from arena_topo.topology.pod_facts import PodFacts
from arena_topo.topology.raw_objects import Malformed, RawObject, labels, name, read_each, skipped
from arena_topo.topology.reading import Reading, Trust
from arena_topo.topology.sources import ack, annotation, dra, gfd, hami, koordinator, node_resource_topology

_LONGEST_WARNING = 400
"""Characters of a warning."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects of a cluster; lists of kinds that it does not serve stay empty.

    ``config_maps`` are those of ``kube-system`` with the label ``ack.node.gpu.schedule=topology``. ``devices`` are
    Koordinator's. ``zones`` are NodeResourceTopologies. ``topologies`` are Kueue's and KAI's Topologies,
    Koordinator's ClusterNetworkTopologies and Volcano's HyperNodes.
    """

    nodes: Sequence[NodeFacts]
    pods: Iterable[PodFacts] = ()
    config_maps: Sequence[RawObject] = ()
    devices: Sequence[RawObject] = ()
    slices: Sequence[RawObject] = ()
    claims: Sequence[RawObject] = ()
    zones: Sequence[RawObject] = ()
    topologies: Sequence[RawObject] = ()


@dataclass(slots=True)
class _Load:
    """What the pods of one node request together, and those among them that may hold GPUs."""

    requested: dict[str, int] = field(default_factory=dict)
    pods: list[PodFacts] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Layout:
    """What does not depend on pods: the nodes, the hardware of each, and the pods that hold devices by claims.

    ``resources`` are those by which the nodes offer their GPUs.
    """

    nodes: Mapping[str, NodeFacts]
    hardware: Mapping[str, NodeHardware]
    resources: Mapping[str, str]
    claiming: frozenset[tuple[str, str]] = frozenset()


def assemble(
    objects: ClusterObjects, *, cluster: str = "", taken: str = "", levels: Sequence[str] = ()
) -> Snapshot:
    """Return the snapshot of a cluster, as ``assembled`` does."""
    return assembled(objects, cluster=cluster, taken=taken, levels=levels)[0]


def with_other_pods(
    snapshot: Snapshot,
    layout: Layout,
    pods: Mapping[str, Iterable[PodFacts]],
    nodes: Iterable[NodeFacts] = (),
) -> tuple[Snapshot, Layout]:
    """Return *snapshot*, which was assembled with *layout*, where the nodes that *pods* names have those pods, and no others.

    *nodes* are those among them of which more has changed, ``is_alike`` to what they were. The others are as they were. It
    takes as long as there are such nodes, however many others there are.
    """
    facts = {node.name: node for node in nodes}
    if facts:
        layout = replace(layout, nodes={**layout.nodes, **facts})
    warnings: list[str] = []
    changed = {
        name: _node(
            layout.nodes[name],
            _loads(on_node, layout.claiming).get(name) or _Load(),
            layout.hardware[name],
            layout.resources[name],
            warnings,
        )
        for name, on_node in pods.items()
        if name in layout.nodes
    }
    distinct = dict.fromkeys((*snapshot.warnings, *(cut(warning, _LONGEST_WARNING) for warning in warnings)))
    # By place, in the order of the names in which they were assembled: most snapshots differ in a node or two.
    others = list(snapshot.nodes)
    for node in changed.values():
        others[bisect_left(others, node.name, key=_name_of)] = node
    return replace(snapshot, nodes=tuple(others), warnings=tuple(distinct)), layout


_name_of = attrgetter("name")


def is_alike(before: NodeFacts, after: NodeFacts) -> bool:
    """Whether a node that became *after* has the same hardware and place in the fabric, so that no other is concerned."""
    resource = gpu_resource(before.capacity)
    # A fabric is read from the nodes that have GPUs.
    return (before.name, before.hostname, before.labels, before.annotations, before.capacity) == (
        after.name,
        after.hostname,
        after.labels,
        after.annotations,
        after.capacity,
    ) and bool(before.allocatable.get(resource)) == bool(after.allocatable.get(resource))


def assembled(
    objects: ClusterObjects, *, cluster: str = "", taken: str = "", levels: Sequence[str] = ()
) -> tuple[Snapshot, Layout]:
    """Return the snapshot of a cluster at the RFC 3339 instant *taken*, and what of it does not depend on its pods.

    *levels* are label keys, coarse to fine, that replace the detected tiers of the fabric. Whatever cannot be read is
    left out and named in the snapshot's warnings.
    """
    warnings: list[str] = []
    # Without an instant no age can be computed; the facts then have none.
    now = parse_instant(taken) if taken else None
    names = {node.name for node in objects.nodes}
    claiming = _pods_with_claims(objects.claims)
    loads = _loads(objects.pods, claiming)
    readings = _readings(objects, now, warnings)
    # Objects about a node may outlive it.
    unknown = sorted(readings.keys() - names)
    warnings += [f"{readings[name][0].source}: there is no node {name}; skipped" for name in unknown]
    hardware = {node.name: _hardware(node, readings.get(node.name, []), warnings) for node in objects.nodes}
    resources = {node.name: _resource_of(node, readings.get(node.name, [])) for node in objects.nodes}
    nodes = tuple(
        _node(node, loads.get(node.name) or _Load(), hardware[node.name], resources[node.name], warnings)
        for node in sorted(objects.nodes, key=_name_of)
    )
    # Nodes without GPUs often lack the fabric's labels, and a tier is one only where every node has its label.
    with_gpus = [node for node in nodes if node.gpu_total or node.gpus]
    fabric = read_fabric(with_gpus or nodes, objects.topologies, levels, warnings)
    # A warning names objects, and whoever serves them may have let a name be of any length.
    shortened = tuple(cut(warning, _LONGEST_WARNING) for warning in warnings)
    snapshot = Snapshot(nodes=nodes, fabric=fabric, cluster=cluster, taken=taken, warnings=shortened)
    return snapshot, Layout({node.name: node for node in objects.nodes}, hardware, resources, claiming)


def _pods_with_claims(claims: Iterable[RawObject]) -> frozenset[tuple[str, str]]:
    """Return the pods that hold devices by claims, whatever their requests say."""
    unreadable: list[str] = []  # the reader of claims warns of these
    return frozenset(read_each(claims, dra.holders_of, unreadable))


def _loads(pods: Iterable[PodFacts], claiming: frozenset[tuple[str, str]]) -> dict[str, _Load]:
    loads: dict[str, _Load] = {}
    for pod in pods:
        if not pod.occupies:
            continue
        # Not setdefault: it would make a new value for each of thousands of pods.
        load = loads.get(pod.node)
        if load is None:
            load = loads[pod.node] = _Load()
        requested = load.requested
        # Nodes offer places for pods as a resource of their own, of which every pod takes one.
        requested["pods"] = requested.get("pods", 0) + 1
        for resource, amount in pod.requests.items():
            requested[resource] = requested.get(resource, 0) + amount
        # Other pods cannot hold GPUs, and most pods of a cluster are others.
        if (
            pod.annotations
            or any(pod.requests.get(resource) for resource in GPU_RESOURCES)
            or (claiming and (pod.namespace, pod.name) in claiming)
        ):
            load.pods.append(pod)
    return loads


def _readings(objects: ClusterObjects, now: datetime | None, warnings: list[str]) -> dict[str, list[Reading]]:
    by_node: dict[str, list[Reading]] = {}
    for reading in _all_readings(objects, now, warnings):
        by_node.setdefault(reading.node, []).append(reading)
    return by_node


def _all_readings(objects: ClusterObjects, now: datetime | None, warnings: list[str]) -> Iterator[Reading]:
    # ACK's ConfigMaps and Koordinator's Devices need not name the product, but the node's labels may.
    products = {node.name: gfd.product_of(node.labels) for node in objects.nodes}
    resources = {node.name: gpu_resource(node.capacity) for node in objects.nodes}

    def config_map(raw: RawObject) -> Iterator[Reading]:
        return ack.read_config_map(raw, now, products.get(labels(raw).get("nodename", ""), ""))

    def device(raw: RawObject) -> Iterator[Reading]:
        return koordinator.read_device(raw, now, products.get(name(raw), ""))

    def zone(raw: RawObject) -> Iterator[Reading]:
        return node_resource_topology.read_zones(raw, resources.get(name(raw), NVIDIA_GPU), now)

    yield from read_each(objects.config_maps, config_map, warnings, "ConfigMap")
    yield from read_each(objects.devices, device, warnings)
    yield from read_each(objects.zones, zone, warnings)
    yield from dra.read_dra(objects.slices, objects.claims, warnings, now)
    for node in objects.nodes:
        yield from _of_node(node, now, warnings)


def _of_node(node: NodeFacts, now: datetime | None, warnings: list[str]) -> Iterator[Reading]:
    """Yield what the labels and annotations of the Node object itself say."""
    readers: list[Callable[[NodeFacts], Iterator[Reading]]] = []
    if node.annotations:
        readers += [partial(annotation.read_annotation, now=now), hami.read_node]
    if node.labels:
        readers.append(partial(gfd.read_labels, capacity=node.capacity.get(gpu_resource(node.capacity), 0)))
    for read in readers:
        try:
            yield from read(node)
        except (Malformed, DocumentError) as error:
            warnings.append(skipped(f"Node {node.name}", error))


def gpu_resource(amounts: Resources) -> str:
    """Return the resource by which a node with *amounts* offers its GPUs: NVIDIA's where it offers none."""
    return max(GPU_RESOURCES, key=lambda resource: (amounts.get(resource, 0), resource == NVIDIA_GPU))


def _hardware(node: NodeFacts, readings: Sequence[Reading], warnings: list[str]) -> NodeHardware:
    if not readings:
        return NodeHardware()
    return merge(node.name, readings, node.capacity.get(gpu_resource(node.capacity), 0), warnings)


def _resource_of(node: NodeFacts, readings: Iterable[Reading]) -> str:
    # By capacity: a node whose GPUs are all unhealthy stays a node with GPUs.
    resource = gpu_resource(node.capacity)
    if not node.capacity.get(resource, 0) and any(reading.trust is Trust.DRA for reading in readings):
        return DRA_GPU  # the device class, by which claims ask for these GPUs
    return resource


def _node(
    node: NodeFacts, load: _Load, hardware: NodeHardware, resource: str, warnings: list[str]
) -> GpuNode:
    occupied = (
        occupancy(load.pods, resource, hardware.gpus, hardware.readings, warnings)
        if load.pods
        else Occupancy()
    )
    if not load.pods and hardware.gpus:
        occupied = Occupancy(used=frozenset())  # nobody holds GPUs: all indices are known to be free
    allocatable, requested = _device_counts(node, load, hardware, occupied, resource)
    return GpuNode(
        name=node.name,
        hostname=node.hostname,
        labels=node.labels,
        taints=node.taints,
        unschedulable=node.unschedulable,
        ready=node.ready,
        address=node.address,
        allocatable=allocatable,
        requested=requested,
        gpu_resource=resource,
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        nics=hardware.nics,
        measured=hardware.measured,
        # A device plugin leaves unhealthy GPUs in the capacity, and takes them out of what is allocatable.
        unhealthy=max(node.capacity.get(resource, 0) - node.allocatable.get(resource, 0), 0),
        used=occupied.used,
        holders=occupied.holders,
        facts=(*hardware.facts, Fact("used", occupied.source)) if occupied.source else hardware.facts,
        zones=hardware.zones,
    )


def _device_counts(
    node: NodeFacts, load: _Load, hardware: NodeHardware, occupied: Occupancy, resource: str
) -> tuple[Resources, Resources]:
    """Return allocatable and requested amounts, with the GPUs counted as devices.

    Shared GPUs are offered as replicas, and GPUs of DRA as no resource at all; both are counted by the GPUs that
    are there and the GPUs that are in use. For example, four GPUs offered as ten replicas each, of which pods have
    requested three on two GPUs, count as 4 allocatable and 2 requested, not as 40 and 3.
    """
    offered, requested = node.allocatable.get(resource, 0), load.requested.get(resource, 0)
    shared = any(gpu.mode is ShareMode.SHARED for gpu in hardware.gpus)
    claimed = not node.capacity.get(resource, 0) and bool(hardware.gpus)
    # Without indices the requests have to do. Of replicas there may be more than GPUs.
    in_use = len(occupied.used) if occupied.used is not None else min(requested, len(hardware.gpus))
    if not shared and not claimed:
        # A pod may hold GPUs by an annotation without requesting the resource.
        if occupied.used is not None and in_use > requested:
            return node.allocatable, {**load.requested, resource: in_use}
        return node.allocatable, load.requested
    healthy = sum(gpu.healthy for gpu in hardware.gpus)
    # Where fewer replicas are offered than there are GPUs, some GPUs can serve nobody.
    present = min(healthy, offered) if shared and offered else healthy
    return {**node.allocatable, resource: present}, {**load.requested, resource: in_use}
