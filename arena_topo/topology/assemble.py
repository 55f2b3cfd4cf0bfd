"""From the objects of a cluster to the snapshot that the planner works on."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import combinations
from operator import attrgetter

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import (
    Fact,
    Gpu,
    GpuNode,
    Holder,
    Link,
    LinkGraph,
    Nic,
    NumaZones,
    ShareMode,
    Snapshot,
)
from arena_topo.model.keys import DRA_GPU, GPU_RESOURCES, NVIDIA_GPU
from arena_topo.model.text.json import cut, shown
from arena_topo.model.text.quantity import Resources, parse_instant
from arena_topo.topology.fabric import read_fabric
from arena_topo.topology.objects import (
    NodeFacts,
    PodFacts,
    RawObject,
    Reading,
    Trust,
    labels,
    name,
    read_each,
    skipped,
)
from arena_topo.topology.sources import ack, annotation, dra, gfd, hami, koordinator, node_resource_topology

# One picture of a node's hardware from what several sources say: the one to be trusted most counts.
#
# For example, of a node with eight GPUs the agent's annotation, a DRA slice and the product labels are read.
# Links and GPUs are the agent's; the UUIDs and the memory that it lacks come from the slice, the NICs that
# both lack from the labels. Where the slice puts a GPU on another NUMA node than the agent, that becomes a
# warning.


@dataclass(frozen=True, slots=True)
class NodeHardware:
    """The merged hardware of a node; ``readings`` are those that were used, most trusted first."""

    readings: tuple[Reading, ...] = ()
    machine: str = ""
    gpus: tuple[Gpu, ...] = ()
    links: LinkGraph | None = None
    nics: tuple[Nic, ...] = ()
    measured: tuple[tuple[float, ...], ...] = ()
    facts: tuple[Fact, ...] = ()
    zones: NumaZones | None = None


def _merge(node: str, readings: Iterable[Reading], capacity: int, warnings: list[str]) -> NodeHardware:
    """Return the hardware of *node*, which has *capacity* GPUs by its own account.

    A reading of another number of GPUs is about another state of the node and is left out; contradictions
    become *warnings* that name both sources.
    """
    fitting = _fitting(node, sorted(readings, key=lambda reading: -reading.trust), capacity, warnings)
    if not fitting:
        return NodeHardware()
    with_links = next((reading for reading in fitting if reading.links is not None), None)
    with_nics = next((reading for reading in fitting if reading.nics), None)
    with_gpus = [reading for reading in fitting if reading.gpus]
    with_zones = next((reading for reading in fitting if reading.zones), None)
    _warn_of_contradictions(node, fitting, warnings)
    origins = {
        "links": with_links,
        "gpus": with_gpus[0] if with_gpus else None,
        "nics": with_nics,
        "numa": with_zones,
    }
    # The machine type describes the links, so it comes from where they come from.
    machines = [with_links.machine] if with_links else [reading.machine for reading in fitting]
    return NodeHardware(
        readings=tuple(fitting),
        machine=next(filter(None, machines), ""),
        gpus=_merged_gpus(with_gpus),
        links=with_links.links if with_links else None,
        nics=with_nics.nics if with_nics else (),
        measured=next((reading.measured for reading in fitting if reading.measured), ()),
        facts=tuple(_fact(subject, reading) for subject, reading in origins.items() if reading is not None),
        zones=with_zones.zones if with_zones else None,
    )


def _fitting(node: str, readings: Sequence[Reading], capacity: int, warnings: list[str]) -> list[Reading]:
    """Return the readings that agree on the number of GPUs.

    The node's capacity decides it. But a shared GPU is offered several times, and one of a DRA driver not at
    all: then the most trusted reading with GPUs does.
    """
    shared = [r for r in readings if any(gpu.mode is not ShareMode.WHOLE for gpu in r.gpus)]
    deciding = shared or ([] if capacity > 0 else [reading for reading in readings if reading.gpus])
    expected = len(deciding[0].gpus) if deciding else capacity
    fitting = []
    for reading in readings:
        if reading.gpus and len(reading.gpus) != expected:
            warnings.append(
                f"{reading.source}: lists {len(reading.gpus)} GPUs, node {node} has {expected}; skipped"
            )
        else:
            fitting.append(reading)
    return fitting


def _fact(subject: str, reading: Reading) -> Fact:
    # Where a GPU is does not depend on the rates of its links.
    phrases = (*reading.assumptions, *(reading.assumed_rates if subject == "links" else ()))
    if subject == "numa":
        # What a NUMA node has is counted there, and which GPUs those are is another fact.
        phrases = ()
    remark = f" ({'; '.join(phrases)})" if phrases else ""
    assumed = reading.trust is Trust.PRODUCT_TABLE or bool(phrases)
    return Fact(subject, f"{reading.source}{remark}", reading.age, assumed=assumed)


def _merged_gpus(readings: Sequence[Reading]) -> tuple[Gpu, ...]:
    """Return the GPUs of the most trusted reading, with what the others add to them.

    GPUs are the same by their UUIDs, since sources may number them differently; only where one of the two
    sides has no UUIDs do their positions count.
    """
    if not readings:
        return ()
    merged = list(readings[0].gpus)
    for reading in readings[1:]:
        by_uuid = {gpu.uuid: gpu for gpu in reading.gpus if gpu.uuid}
        for position, gpu in enumerate(merged):
            other = by_uuid.get(gpu.uuid) or (None if gpu.uuid and by_uuid else reading.gpus[position])
            merged[position] = _filled(gpu, other) if other else gpu
    return tuple(merged)


def _filled(gpu: Gpu, other: Gpu) -> Gpu:
    return replace(
        gpu,
        uuid=gpu.uuid or other.uuid,
        product=gpu.product or other.product,
        memory=gpu.memory or other.memory,
        numa=other.numa if gpu.numa is None else gpu.numa,
        socket=other.socket if gpu.socket is None else gpu.socket,
        pcie_root=gpu.pcie_root or other.pcie_root,
        nics=gpu.nics or other.nics,
        # Health and sharing are not contradicted but noticed: the source that sees a GPU fail or divided is
        # right.
        healthy=gpu.healthy and other.healthy,
        mode=other.mode if gpu.mode is ShareMode.WHOLE else gpu.mode,
    )


def _warn_of_contradictions(node: str, readings: Sequence[Reading], warnings: list[str]) -> None:
    """Compare the sources that see GPU links themselves; the others only list PCIe."""
    # Assumed links come from the product table: they cannot contradict what a driver reports.
    seen = [(r, r.links) for r in readings if r.trust >= Trust.HAMI and r.links and not r.assumptions]
    for other, other_links in seen[1:]:
        best, links = seen[0]
        for a, b in combinations(range(links.size), 2):
            link, other_link = links.between(a, b), other_links.between(a, b)
            if _contradict(link, other_link):
                warnings.append(
                    f"node {node}: {best.source} says {link.label} between GPU{a} and GPU{b}, "
                    f"{other.source} says {other_link.label}; the former counts"
                )
                break  # one pair is enough to look into it
    _warn_of_numa(node, readings, warnings)


def _contradict(one: Link, other: Link) -> bool:
    """Whether two links differ in more than their PCIe class, which sources word differently."""
    return one.kind.is_direct != other.kind.is_direct or (one.kind.is_direct and one.count != other.count)


def _warn_of_numa(node: str, readings: Sequence[Reading], warnings: list[str]) -> None:
    seen = [r for r in readings if not r.assumptions and any(gpu.numa is not None for gpu in r.gpus)]
    for other in seen[1:]:
        # Strict, since only readings with the same number of GPUs are left.
        for gpu, other_gpu in zip(seen[0].gpus, other.gpus, strict=True):
            if None not in (gpu.numa, other_gpu.numa) and gpu.numa != other_gpu.numa:
                warnings.append(
                    f"node {node}: {seen[0].source} puts GPU{gpu.index} on NUMA node {gpu.numa}, "
                    f"{other.source} on {other_gpu.numa}; the former counts"
                )
                break


# Which pods hold which GPUs of a node, by the pods' annotations or by the sources of the node.


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The pods that hold GPUs of a node; ``used`` is None unless the GPUs of every holder are known."""

    holders: tuple[Holder, ...] = ()
    used: frozenset[int] | None = None
    source: str = ""


def occupancy(
    pods: Iterable[PodFacts],
    resource: str,
    gpus: Sequence[Gpu],
    readings: Sequence[Reading],
    warnings: list[str],
) -> Occupancy:
    """Return the holders among *pods* of one node, which offers its GPUs as *resource*.

    *readings* stand most trusted first. A pod's own annotation counts before them. Annotations that cannot be
    read, and indices that the node does not have, become *warnings*.
    """
    by_uuid = {gpu.uuid: gpu.index for gpu in gpus if gpu.uuid}
    with_users = [reading for reading in readings if reading.users]
    holders, sources = [], set()
    for pod in pods:
        requested = pod.requests.get(resource, 0)
        indices, source = _indices(pod, resource, by_uuid, with_users, warnings)
        if requested or indices:
            # Claims and shares of GPUs are not requests of the resource: then the indices count.
            gpus_held = max(requested, len(indices or ()))
            holders.append(Holder(pod.namespace, pod.name, pod.job, gpus_held, indices, pod.phase))
            sources.add(source)
    # A claim that no pod holds yet keeps its GPUs from everybody else. Only the most trusted source counts.
    reserved = {index for reading in with_users[:1] for index in reading.users.get(("", ""), ())}
    # Indices mean nothing on a node whose GPUs no source lists.
    used = _used(holders, reserved, len(gpus), warnings) if gpus else None
    return Occupancy(tuple(holders), used, ", ".join(sorted(sources - {""})))


def _indices(
    pod: PodFacts,
    resource: str,
    by_uuid: Mapping[str, int],
    readings: Sequence[Reading],
    warnings: list[str],
) -> tuple[tuple[int, ...] | None, str]:
    """Return the GPUs of a pod and the source that names them, or None where no source does."""
    if pod.annotations:
        try:
            indices = _annotated(pod, resource, by_uuid)
        except DocumentError as error:
            warnings.append(skipped(f"Pod {pod.namespace}/{pod.name}", error))
        else:
            if indices is not None:
                return indices, "pod annotations"
    for reading in readings:
        if (pod.namespace, pod.name) in reading.users:
            return tuple(sorted(reading.users[pod.namespace, pod.name])), reading.source
    return None, ""


def _annotated(pod: PodFacts, resource: str, by_uuid: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the GPUs that the annotations of a pod name, None where they name none.

    Raises ``DocumentError``. Anyone who creates a pod writes its annotations, whatever it requests, and a
    scheduler writes them only onto pods that ask for GPUs. So they count up to what the pod requests: by
    number where it requests whole GPUs as *resource*, and at all only where it requests a GPU by some name,
    such as ``koordinator.sh/gpu-core``.
    """
    indices = ack.pod_gpus(pod.annotations)
    if indices is None:
        indices = koordinator.pod_gpus(pod.annotations)
    if indices is None:
        uuids = hami.pod_gpus(pod.annotations) or ()
        # HAMi names GPUs by UUID, and only a source that lists UUIDs says which GPUs those are.
        if not uuids or any(uuid not in by_uuid for uuid in uuids):
            return None
        indices = tuple(sorted(by_uuid[uuid] for uuid in uuids))
    requested = pod.requests.get(resource, 0)
    if requested and len(indices) > requested:
        raise DocumentError(f"its annotations name {len(indices)} GPUs, and it requests {requested}")
    if indices and not any(amount > 0 and "gpu" in name for name, amount in pod.requests.items()):
        raise DocumentError(f"its annotations name {len(indices)} GPUs, and it requests none")
    return indices


def _used(
    holders: Iterable[Holder], reserved: Iterable[int], size: int, warnings: list[str]
) -> frozenset[int] | None:
    """Return the union of the holders' GPUs, or None where those of one holder are not known."""
    used = set(reserved)
    for holder in holders:
        # One unknown holder may hold any GPU, so that no GPU is known to be free.
        if holder.indices is None:
            return None
        # Such indices follow another numbering, and a wrong set of free GPUs would be worse than none.
        if any(index >= size for index in holder.indices):
            warnings.append(
                f"Pod {holder.namespace}/{holder.pod} holds GPUs {shown(list(holder.indices))}, but its node has {size}; "
                "they are not used"
            )
            return None
        used.update(holder.indices)
    return frozenset(used)


_LONGEST_WARNING = 400
"""Characters of a warning."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The objects of a cluster; lists of kinds that it does not serve stay empty.

    ``config_maps`` are those of ``kube-system`` with the label ``ack.node.gpu.schedule=topology``.
    ``devices`` are Koordinator's. ``zones`` are NodeResourceTopologies. ``topologies`` are Kueue's and KAI's
    Topologies, Koordinator's ClusterNetworkTopologies and Volcano's HyperNodes.
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
    """What does not depend on pods: the nodes, the hardware of each, and the pods that hold claimed devices.

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
    """Return *snapshot*, assembled with *layout*, in which the nodes that *pods* names have just those pods.

    *nodes* are those among them of which more has changed, ``is_alike`` to what they were. The others are as
    they were. It takes as long as there are such nodes, however many others there are.
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
    # By place, in the order of the names in which they were assembled: most snapshots differ in a node or
    # two.
    others = list(snapshot.nodes)
    for node in changed.values():
        others[bisect_left(others, node.name, key=_name_of)] = node
    return replace(snapshot, nodes=tuple(others), warnings=tuple(distinct)), layout


_name_of = attrgetter("name")


def is_alike(before: NodeFacts, after: NodeFacts) -> bool:
    """Whether a node that became *after* has the same hardware and place in the fabric."""
    resource = _gpu_resource(before.capacity)
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
    """Return a cluster's snapshot at the RFC 3339 instant *taken*, and the part that ignores its pods.

    *levels* are label keys, coarse to fine, that replace the detected tiers of the fabric. Whatever cannot be
    read is left out and named in the snapshot's warnings.
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
    # Nodes without GPUs often lack the fabric's labels, and a tier is one only where every node has its
    # label.
    with_gpus = [node for node in nodes if node.gpu_total or node.gpus]
    fabric = read_fabric(with_gpus or nodes, objects.topologies, levels, warnings)
    # A warning names objects, and a server may have let a name be of any length.
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
    resources = {node.name: _gpu_resource(node.capacity) for node in objects.nodes}

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
        readers.append(partial(gfd.read_labels, capacity=node.capacity.get(_gpu_resource(node.capacity), 0)))
    for read in readers:
        try:
            yield from read(node)
        except DocumentError as error:
            warnings.append(skipped(f"Node {node.name}", error))


def _gpu_resource(amounts: Resources) -> str:
    """Return the resource by which a node with *amounts* offers its GPUs: NVIDIA's where it offers none."""
    return max(GPU_RESOURCES, key=lambda resource: (amounts.get(resource, 0), resource == NVIDIA_GPU))


def _hardware(node: NodeFacts, readings: Sequence[Reading], warnings: list[str]) -> NodeHardware:
    if not readings:
        return NodeHardware()
    return _merge(node.name, readings, node.capacity.get(_gpu_resource(node.capacity), 0), warnings)


def _resource_of(node: NodeFacts, readings: Iterable[Reading]) -> str:
    # By capacity: a node whose GPUs are all unhealthy stays a node with GPUs.
    resource = _gpu_resource(node.capacity)
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
        occupied = Occupancy(used=frozenset())  # no pod holds GPUs: all indices are known to be free
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

    Shared GPUs are offered as replicas, and GPUs of DRA as no resource at all; both are counted by the GPUs
    that are there and the GPUs that are in use. For example, four GPUs offered as ten replicas each, of which
    pods have requested three on two GPUs, count as 4 allocatable and 2 requested, not as 40 and 3.
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
    # Where fewer replicas are offered than there are GPUs, some GPUs can serve no pod.
    present = min(healthy, offered) if shared and offered else healthy
    return {**node.allocatable, resource: present}, {**load.requested, resource: in_use}
