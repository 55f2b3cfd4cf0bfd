"""Layouts: the machines of a sandbox as YAML declares them, turned into Node and ConfigMap objects.

A layout is a document with ``nodes``, a list of groups::

    nodes:
      - name: "gpu-{}"          # {} becomes start, start + 1, ...
        count: 4                # default 1
        start: 1
        matrix: dgx-a100.txt    # nvidia-smi topo -m; absent for nodes without GPUs
        product: NVIDIA-A100-SXM4-80GB
        memory: 81920           # MiB of one GPU
        publish: [gfd, agent]   # gfd, agent, ack, hami
        resource: nvidia.com/gpu
        capacity: {cpu: "96", memory: 768Gi}
        labels: {}              # and annotations, taints, unschedulable
        busy: 2                 # GPUs allocated to another team's pod

or, in place of ``nodes``, with ``snapshot``: a saved snapshot, as ``sandbox import`` writes it.
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any

from arena_topo.errors import DocumentError, UsageError
from arena_topo.files import read_bytes
from arena_topo.model.cluster import Fabric, GpuNode, Hardware, Holder, Link, LinkClass, ShareMode, Snapshot
from arena_topo.model.keys import (
    ACK_GPU_GROUP,
    ACK_SCHEDULE,
    ACK_SCHEDULE_TOPOLOGY,
    GPU_RESOURCES,
    GPU_TOPOLOGY,
    HAMI_REGISTER,
    HAMI_SCORE,
    HOSTNAME,
    NVIDIA_GPU,
    OPERATOR_JOB_NAME,
)
from arena_topo.model.objects import Object
from arena_topo.model.text import yaml
from arena_topo.model.text.json import MOST_SHOWN
from arena_topo.model.text.quantity import quantities
from arena_topo.topology.files import read_snapshot, snapshot_document
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.hardware import find_product
from arena_topo.topology.objects import MOST_GPUS, PodKey
from arena_topo.topology.sources import annotation

_DATA = files("arena_topo.sandbox") / "data"
_CAPACITY = {"cpu": "96", "memory": "768Gi", "pods": "110", "ephemeral-storage": "1Ti"}
_KEYS = frozenset(
    {"name", "count", "start", "matrix", "product", "memory", "publish", "resource", "capacity", "labels"}
    | {"annotations", "taints", "unschedulable", "busy"}
)
MOST_NODES = 10_000
"""Nodes of one group; the largest clusters have as many in all."""
_MOST = {"count": MOST_NODES, "start": 2**31, "memory": 2**31, "busy": MOST_GPUS}
_DIGITS = 10
_SOURCES = frozenset({"gfd", "agent", "ack", "hami"})


@dataclass(frozen=True, slots=True)
class Layout:
    """The objects of a layout in the order in which they are created."""

    name: str
    description: str
    objects: tuple[Object, ...]


def names() -> list[str]:
    """Return the layouts that come with the tool."""
    files_ = (_DATA / "layouts").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files_ if file.name.endswith(".yaml"))


def resolved(name: str) -> str:
    """Return *name* as it means the same layout in another folder: the absolute path of a file."""
    return name if not name or name in names() or not Path(name).is_file() else str(Path(name).resolve())


def load(name: str, at: str) -> Layout:
    """Return the layout called *name*, or that of the file *name*; annotations are stamped *at*.

    Raises ``UsageError`` when there is none and ``DocumentError`` when it cannot be used.
    """
    if name in names():
        text = (_DATA / "layouts" / f"{name}.yaml").read_text("utf-8")
    elif Path(name).is_file():
        text = _text(name)
    else:
        raise UsageError(
            f"there is no layout {name!r}",
            hint=f"choose one of {', '.join(names())}, or a path to a YAML file",
        )
    document = _document(text, name)
    if "snapshot" in document:
        objects = _objects_of(document["snapshot"], f"{name}: snapshot", at)
    elif isinstance(document.get("nodes"), list) and document["nodes"]:
        objects = [obj for group in document["nodes"] for obj in _group(group, name, at)]
    else:
        raise DocumentError(
            f"the layout {name} has no list of nodes and no snapshot", hint="see docs/how-to/sandbox.md"
        )
    objects += document.get("objects") or []
    return Layout(name, str(document.get("description", "")), tuple(objects))


def _text(path: str | Path) -> str:
    """Return the text of a user's file. Raises ``DocumentError``."""
    try:
        return read_bytes(path).decode()
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path} is not a text file") from error


def _document(text: str, name: str) -> Object:
    document = _json(text) or yaml.load(text, name=f"the layout {name}")
    if not isinstance(document, dict):
        raise DocumentError(f"the layout {name} is not a mapping", hint="see docs/how-to/sandbox.md")
    return document


def _json(text: str) -> object:
    """Return the document in *text*, None where it is not JSON, which is read much faster than YAML."""
    try:
        return json.loads(text)
    # What nests deeper than Python reads is refused as YAML is.
    except (ValueError, RecursionError):
        return None


def _group(group: Any, layout: str, at: str) -> Iterator[Object]:
    if not isinstance(group, dict) or not isinstance(group.get("name"), str):
        raise DocumentError(f"the layout {layout} has a group of nodes without a name")
    if unknown := sorted(group.keys() - _KEYS):
        raise DocumentError(f"the layout {layout} has an unknown key {unknown[0]!r} in {group['name']}")
    for key, most in _MOST.items():
        value = str(group.get(key, 0))
        if not (value.isascii() and value.isdecimal() and len(value) <= _DIGITS and int(value) <= most):
            raise DocumentError(
                f"the layout {layout} has {key}: {value[:MOST_SHOWN]!r} in {group['name']}, "
                f"which is no whole number up to {most}"
            )
    if unknown := sorted(set(group.get("publish", ())) - _SOURCES):
        raise DocumentError(
            f"the layout {layout} publishes {unknown[0]!r}, which is not one of {', '.join(sorted(_SOURCES))}"
        )
    hardware = _hardware(group, layout)
    start = int(group.get("start", 1))
    for number in range(start, start + int(group.get("count", 1))):
        yield from _node(group, group["name"].replace("{}", str(number)), hardware, at)


def _hardware(group: Mapping[str, Any], layout: str) -> Hardware | None:
    """Return what is in every machine of *group*, None where there are no GPUs."""
    if "matrix" not in group:
        return None
    return parse_matrix(_matrix(group["matrix"], layout), group["matrix"], str(group.get("product", "")))


def _matrix(path: str, layout: str) -> str:
    # The matrices that come with the tool take precedence, then those next to the user's layout.
    shipped = _DATA / "matrices" / path
    if shipped.is_file():
        return shipped.read_text("utf-8")
    own = Path(layout).parent / path
    if not own.is_file():
        raise DocumentError(f"the layout {layout} names a matrix {path} that does not exist")
    return _text(own)


def _node(group: Mapping[str, Any], name: str, hardware: Hardware | None, at: str) -> Iterator[Object]:
    machine = None
    if hardware is not None:
        machine = _Machine(name, hardware, str(group.get("product", "")), int(group.get("memory", 0)))
    sources = group.get("publish", ("gfd", "agent"))
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    annotations: dict[str, str] = {}
    capacity = {**_CAPACITY, **(group.get("capacity") or {})}
    if machine is not None:
        capacity[group.get("resource", "nvidia.com/gpu")] = str(machine.size)
        labels |= machine.labels() if "gfd" in sources else {}
        annotations |= (
            {GPU_TOPOLOGY: annotation.encode(machine.hardware, _busy_gpus(group, name), at)}
            if "agent" in sources
            else {}
        )
        annotations |= _hami_annotations(machine, at) if "hami" in sources else {}
    if "ack" in sources:
        labels[ACK_SCHEDULE] = ACK_SCHEDULE_TOPOLOGY
    spec: Object = {"taints": group["taints"]} if group.get("taints") else {}
    spec |= {"unschedulable": True} if group.get("unschedulable") else {}
    meta: Object = {"name": name, "labels": labels | (group.get("labels") or {})}
    meta["annotations"] = annotations | (group.get("annotations") or {})
    status = {"capacity": capacity, "allocatable": capacity}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}
    if machine is not None and "ack" in sources:
        yield _topology_config_map(machine)
    if group.get("busy"):
        limits = {group.get("resource", "nvidia.com/gpu"): str(group["busy"]), "cpu": "8", "memory": "32Gi"}
        yield _sleeping_pod(_busy_pod(name), "other-team", name, limits)


def _busy_pod(node: str) -> str:
    return f"training-{node.replace('.', '-')}"


def _busy_gpus(group: Mapping[str, Any], node: str) -> dict[PodKey, tuple[int, ...]]:
    busy = int(group.get("busy") or 0)
    return {("other-team", _busy_pod(node)): tuple(range(busy))} if busy else {}


# From a snapshot of a real cluster to a layout, and from a layout's snapshot to the objects of the sandbox.
#
# The sandbox publishes what the cluster did in the way in which it did: ACK's ConfigMaps, HAMi's annotations,
# our own, labels. Facts from another source (Koordinator, DRA, NodeResourceTopology) are written into our own
# annotation.

_CONFIG_MAP = "ConfigMap "
_OTHERS = "kube-system"
"""Namespace of the pod that stands for all pods of a node where none holds GPUs."""
_TAINTED_BY_SANDBOX = "node.kubernetes.io/un"
"""Beginning of the taints that the sandbox itself puts on nodes that are lost (unreachable) or cordoned."""


class _Publisher(Enum):
    """What publishes facts of a node in the sandbox."""

    AGENT = "agent"
    ACK = "ack"
    HAMI = "hami"
    LABELS = "labels"


def layout_document(snapshot: Snapshot) -> Object:
    """Return the layout that shows *snapshot*."""
    name = snapshot.cluster or "a cluster"
    when = f" as it was at {snapshot.taken}" if snapshot.taken else ""
    return {"description": f"imported from {name}{when}", "snapshot": snapshot_document(snapshot)}


def _objects_of(document: object, source: str, stamp: str) -> list[Object]:
    """Return the objects that show the snapshot in *document* as of *stamp*; raises ``DocumentError``."""
    snapshot = read_snapshot(document, source)
    pods = {node.name: _pods(node) for node in snapshot.nodes}
    spaces = {pod["metadata"]["namespace"] for on_node in pods.values() for pod in on_node}
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(spaces)
    ]
    objects += _fabric_objects(snapshot.fabric)
    for node in snapshot.nodes:
        objects += _node_objects(node, len(pods[node.name]), _tier_labels(snapshot.fabric, node.name), stamp)
    return objects + [pod for on_node in pods.values() for pod in on_node]


def _publishers(node: GpuNode) -> Mapping[str, _Publisher]:
    """Return what publishes each subject of *node*; labels leave an assumption what it is."""
    # Of a product that is not known only rates were assumed, of links that labels do not show.
    is_known = bool(node.gpus) and find_product(node.gpus[0].product) is not None
    return {
        fact.subject: _Publisher.LABELS if fact.assumed and is_known else _publisher(fact.source)
        for fact in node.facts
        if fact.subject not in ("used", "numa")
    }


def _publisher(source: str) -> _Publisher:
    if source.startswith(_CONFIG_MAP):
        return _Publisher.ACK
    if HAMI_REGISTER in source or HAMI_SCORE in source:
        return _Publisher.HAMI
    return _Publisher.LABELS if source.startswith("Node ") and " label " in source else _Publisher.AGENT


def _agent_names_holders(node: GpuNode) -> bool:
    """Whether our annotation says which pods hold which GPUs, and not the pods' own annotations."""
    return any(fact.subject == "used" and GPU_TOPOLOGY in fact.source for fact in node.facts)


def _node_objects(node: GpuNode, pods: int, labels: Mapping[str, str], stamp: str) -> Iterator[Object]:
    """Yield the objects that show *node* with so many *pods* on it; *labels* are put on it, too."""
    product = node.gpus[0].product if node.gpus else ""
    machine = _Machine(node.name, Hardware(node.gpus, node.links, node.nics), product, 0)
    publishers = _publishers(node)
    annotations: dict[str, str] = {} if node.ready else {LOST: "true"}
    if _Publisher.HAMI in publishers.values():
        shares = 2 if any(gpu.mode is ShareMode.SHARED for gpu in node.gpus) else 1
        scored = publishers.get("links") is _Publisher.HAMI
        published = _hami_annotations(machine, stamp, shares=shares)
        # Where the links came from another source, HAMi's scores would be a second one.
        annotations |= {key: text for key, text in published.items() if scored or not key.endswith("score")}
    if hardware := _agent_hardware(node, publishers):
        annotations[GPU_TOPOLOGY] = annotation.encode(hardware, _annotated_holders(node), stamp)
    own = {HOSTNAME: node.hostname or node.name, **node.labels, **labels}
    meta = {"name": node.name, "labels": own, "annotations": annotations}
    head = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
    yield {**head, "spec": _spec(node), "status": _status(node, pods)}
    if node.measured or _Publisher.ACK in publishers.values():
        config_map = _topology_config_map(machine, node.measured)
        sources = [fact.source.split()[1] for fact in node.facts if fact.source.startswith(_CONFIG_MAP)]
        if sources:
            config_map["metadata"]["name"] = sources[0].rpartition("/")[2]
        yield config_map


def _agent_hardware(node: GpuNode, publishers: Mapping[str, _Publisher]) -> Hardware | None:
    """Return what our annotation has to say of *node*, None where it is not needed."""
    links = node.links if publishers.get("links") is _Publisher.AGENT else None
    nics = node.nics if publishers.get("nics") is _Publisher.AGENT else ()
    # Links and holders refer to GPUs by their indices, so these come with them.
    named = _agent_names_holders(node)
    has_gpus = links is not None or named or publishers.get("gpus") is _Publisher.AGENT
    gpus = node.gpus if has_gpus else ()
    return Hardware(gpus, links, nics) if gpus or nics or named else None


def _annotated_holders(node: GpuNode) -> dict[PodKey, tuple[int, ...]]:
    """Return which pods hold which GPUs; GPUs in use that no pod holds get an entry without a name."""
    if not _agent_names_holders(node):
        return {}
    holders = {(holder.namespace, holder.pod): holder.indices for holder in node.holders if holder.indices}
    allocated = {index for indices in holders.values() for index in indices}
    reserved = tuple(sorted((node.used or frozenset()) - allocated))
    return {**holders, ("", ""): reserved} if reserved else holders


def _spec(node: GpuNode) -> Object:
    # The sandbox puts these taints on the node itself, from its annotation and its spec.
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect}
        for taint in node.taints
        if not taint.key.startswith(_TAINTED_BY_SANDBOX)
    ]
    spec: Object = {"taints": taints} if taints else {}
    return spec | ({"unschedulable": True} if node.unschedulable else {})


def _status(node: GpuNode, pods: int) -> Object:
    """Return the amounts; the room for pods is such that as many more fit as on the real node."""
    amounts = {name: value for name, value in node.allocatable.items() if name != node.gpu_resource}
    # Only pods that hold GPUs are imported; the room that the others take is taken off.
    if "pods" in amounts:
        amounts["pods"] += pods - node.requested.get("pods", 0)
    capacity = dict(amounts)
    # A device plugin counts a broken GPU in the capacity and not in what can be allocated.
    if node.gpu_total or node.unhealthy:
        amounts[_gpu_resource(node)] = node.gpu_total
        capacity[_gpu_resource(node)] = node.gpu_total + node.unhealthy
    status: Object = {"allocatable": quantities(amounts), "capacity": quantities(capacity)}
    if node.address:
        hostname = {"type": "Hostname", "address": node.hostname or node.name}
        status["addresses"] = [{"type": "InternalIP", "address": node.address}, hostname]
    return status


def _gpu_resource(node: GpuNode) -> str:
    """Return the resource by which *node* offers GPUs in the sandbox, which allocates no claims."""
    return node.gpu_resource if node.gpu_resource in GPU_RESOURCES else NVIDIA_GPU


def _pods(node: GpuNode) -> list[Object]:
    """Return the pods that hold GPUs; the first, or one that stands for all, requests what is not GPUs."""
    rest = {
        name: value
        for name, value in node.requested.items()
        if value and name not in {node.gpu_resource, _gpu_resource(node), "pods"}
    }
    if not node.holders:
        return [_sleeping_pod(f"imported-{node.name}", _OTHERS, node.name, quantities(rest))] if rest else []
    pods = []
    for holder in node.holders:
        requests = {_gpu_resource(node): holder.gpus, **rest}
        pods.append(_holder_pod(node, holder, requests))
        # Only the first pod requests it, so that the node's sum stays right.
        rest = {}
    return pods


def _holder_pod(node: GpuNode, holder: Holder, requests: Mapping[str, int]) -> Object:
    pod = _sleeping_pod(holder.pod, holder.namespace or "default", node.name, quantities(requests))
    if holder.job:
        pod["metadata"]["labels"] = {OPERATOR_JOB_NAME: holder.job}
    if holder.indices and not _agent_names_holders(node):
        pod["metadata"]["annotations"][ACK_GPU_GROUP] = ",".join(map(str, holder.indices))
    return pod


# The fabric of an imported cluster: the objects and labels that declare it.
#
# Kinds: kueue.x-k8s.io Topology, scheduling.koordinator.sh ClusterNetworkTopology, topology.volcano.sh
# HyperNode.

_NETWORK_TOPOLOGY = "ClusterNetworkTopology"
_KUEUE = ("kueue.x-k8s.io", "v1beta2", "Topology", "topologies")
_KOORDINATOR = ("scheduling.koordinator.sh", "v1alpha1", _NETWORK_TOPOLOGY, "clusternetworktopologies")
_VOLCANO = ("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes")


def _tier_labels(fabric: Fabric, node: str) -> dict[str, str]:
    """Return the labels that *node* needs in a fabric whose own label keys are not known."""
    # A ClusterNetworkTopology names tiers, not label keys; other sources need no label, or the node has its
    # own.
    if not fabric.source.startswith(_NETWORK_TOPOLOGY) or node not in fabric.paths:
        return {}
    tiers = zip(fabric.tiers, fabric.paths[node], strict=True)
    return {f"{_TIER_PREFIX}{tier}": domain.rpartition("/")[2] for tier, domain in tiers if domain}


def _fabric_objects(fabric: Fabric) -> list[Object]:
    """Return the definition and the objects that declare *fabric*; none where the nodes' labels do."""
    kind, _, name = fabric.source.partition(" ")
    if not fabric.tiers or fabric.source.startswith("node labels"):
        return []
    if fabric.source == "HyperNodes":
        return [_definition(*_VOLCANO), *_hyper_nodes(fabric)]
    if kind == _NETWORK_TOPOLOGY:
        return [_definition(*_KOORDINATOR), _network_topology(fabric, name)]
    levels = [{"nodeLabel": key} for key in (*fabric.tiers, HOSTNAME)]
    return [
        _definition(*_KUEUE),
        _object(_KUEUE, name if kind == "Topology" else "imported", {"levels": levels}),
    ]


def _hyper_nodes(fabric: Fabric) -> Iterator[Object]:
    """Yield a HyperNode for each domain of each tier, the coarsest tier with the highest number."""
    for index, tier in enumerate(fabric.tiers):
        members: dict[str, list[str]] = {}
        for node, path in fabric.paths.items():
            # A node may be outside of a tier's domains.
            if path[index]:
                members.setdefault(path[index], []).append(node)
        for domain, nodes in members.items():
            selectors = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
            spec = {"tier": len(fabric.tiers) - index, "tierName": tier, "members": selectors}
            yield _object(_VOLCANO, domain, spec)


def _network_topology(fabric: Fabric, name: str) -> Object:
    parents = ["ClusterTopologyLayer", *fabric.tiers]
    layers: list[Object] = [
        {"topologyLayer": tier, "labelKey": [f"{_TIER_PREFIX}{tier}"], "parentTopologyLayer": above}
        for tier, above in zip(fabric.tiers, parents, strict=False)
    ]
    layers.append({"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": fabric.tiers[-1]})
    return _object(_KOORDINATOR, name, {"networkTopologySpec": layers})


def _object(identity: tuple[str, str, str, str], name: str, spec: Object) -> Object:
    group, version, kind, _ = identity
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _definition(group: str, version: str, kind: str, plural: str) -> Object:
    """Return a CustomResourceDefinition of *kind* that keeps every field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    crd = ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "")
    spec = {"group": group, "scope": "Cluster", "names": names, "versions": [served]}
    return _object(crd, f"{plural}.{group}", spec)


# What is on the machines of a layout: the facts that agents of vendors publish, and pods that hold GPUs.
#
# Formats: the Kubernetes device plugin's gpu-feature-discovery README; kubeflow/arena 0.15.5 pkg/topnode;
# HAMi 2.8 docs/develop/protocol.md and pkg/device/nvidia/calculate_score.go.

# Annotation and label keys that only the sandbox knows.

LOST = "sandbox.arena-topo.dev/lost"
"""Annotation of a node whose kubelet has stopped reporting; its pods stay, as at first."""
_TIER_PREFIX = "sandbox.arena-topo.dev/"
"""Prefix of the labels that stand for a tier whose own label key a snapshot does not have."""
RUNS = "sandbox.arena-topo.dev/runs"
"""Annotation of a pod: what its first container runs, in place of its own command: ``sleep 60; exit 3``."""
AS_PUBLISHED = "sandbox.arena-topo.dev/as-published"
"""Annotation of a layout's pods: they hold the GPUs that the layout publishes, if any."""

_FAMILIES = {
    "V100": ("volta", "7", "0"),
    "A100": ("ampere", "8", "0"),
    "H100": ("hopper", "9", "0"),
    "H200": ("hopper", "9", "0"),
    "L40S": ("ada-lovelace", "8", "9"),
}
_PCIE_SCORES = {
    LinkClass.SYS: 10,
    LinkClass.NODE: 20,
    LinkClass.PHB: 30,
    LinkClass.PXB: 40,
    LinkClass.PIX: 50,
}
_NVLINK_SCORE = 100  # per NVLink between the two GPUs
_PCIE_RATE = 16.0  # GB/s in one direction
_SYS_RATE = 8.0  # GB/s in one direction, across the processors


@dataclass(frozen=True, slots=True)
class _Machine:
    """One machine of a layout; ``memory`` is that of one GPU, in MiB."""

    name: str
    hardware: Hardware
    product: str
    memory: int

    @property
    def size(self) -> int:
        """How many GPUs it has."""
        return len(self.hardware.gpus)

    def uuids(self) -> list[str]:
        """Return its GPUs' UUIDs: their own, or ones derived from the machine's name."""
        return [
            gpu.uuid or f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{self.name}/{index}')}"
            for index, gpu in enumerate(self.hardware.gpus)
        ]

    def link(self, a: int, b: int) -> Link:
        """Return the link of two GPUs."""
        links = self.hardware.links
        return links.between(a, b) if links is not None else Link(LinkClass.UNKNOWN)

    def labels(self) -> dict[str, str]:
        """Return the labels of GPU feature discovery."""
        family = next((value for key, value in _FAMILIES.items() if key in self.product), None)
        labels = {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(self.size),
            "nvidia.com/gpu.product": self.product,
            "nvidia.com/gpu.memory": str(self.memory),
            "nvidia.com/gpu.replicas": "1",
        }
        if family is not None:
            labels["nvidia.com/gpu.family"] = family[0]
            labels |= {"nvidia.com/gpu.compute.major": family[1], "nvidia.com/gpu.compute.minor": family[2]}
        return labels


def _topology_config_map(machine: _Machine, measured: Sequence[Sequence[float]] = ()) -> Object:
    """Return ACK's ConfigMap of a machine's links; *measured* by a p2p test, in GB/s both ways."""
    size = range(machine.size)
    words = [["X" if a == b else machine.link(a, b).label for b in size] for a in size]
    rates = [[0.0 if a == b else _rate(machine.link(a, b)) for b in size] for a in size]
    labels = {"ack.node.gpu.schedule": "topology", "nodename": machine.name}
    data = {
        "devices": json.dumps(
            {str(gpu.index): "Healthy" if gpu.healthy else "Unhealthy" for gpu in machine.hardware.gpus}
        ),
        "linkType": json.dumps(words),
        "bandwidth": json.dumps([list(row) for row in measured] or rates),
    }
    meta = {"name": f"{machine.name}-gpu-topology", "namespace": "kube-system", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _rate(link: Link) -> float:
    """Return what a p2p test of both directions shows, in GB/s."""
    if link.bandwidth and link.kind.is_direct:
        return 2 * link.bandwidth
    return 2 * (_SYS_RATE if link.kind is LinkClass.SYS else _PCIE_RATE)


def _hami_annotations(machine: _Machine, at: str, shares: int = 10) -> dict[str, str]:
    """Return HAMi's register and link scores of a machine whose GPUs have *shares* parts each."""
    uuids, size = machine.uuids(), range(machine.size)
    register = [
        {
            "id": uuids[index],
            "index": index,
            "count": shares,
            "devmem": gpu.memory or machine.memory,
            "devcore": 100,  # percent
            "type": f"NVIDIA-{machine.product.removeprefix('NVIDIA-')}",
            "numa": gpu.numa or 0,
            "mode": "mig" if gpu.mode is ShareMode.MIG else "hami-core",
            "health": gpu.healthy,
        }
        for index, gpu in enumerate(machine.hardware.gpus)
    ]
    scores = [
        {"uuid": uuids[a], "score": {uuids[b]: link_score(machine.link(a, b)) for b in size if a != b}}
        for a in size
    ]
    return {
        HAMI_REGISTER: json.dumps(register, separators=(",", ":")),
        HAMI_SCORE: json.dumps(scores, separators=(",", ":")),
        "hami.io/node-handshake": f"Reported_{at}",
    }


def link_score(link: Link) -> int:
    """Return the score of a link, by whose sum HAMi and NVIDIA's allocator compare sets of GPUs."""
    if link.kind.is_direct:
        return _NVLINK_SCORE * max(link.count, 1)
    return _PCIE_SCORES.get(link.kind, 0)


def _sleeping_pod(name: str, namespace: str, node: str, limits: Mapping[str, str]) -> Object:
    """Return a pod on *node* that occupies *limits* and does nothing."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "infinity"]}
    spec = {
        "nodeName": node,
        "containers": [container | {"resources": {"limits": dict(limits)}}],
        "tolerations": [{"operator": "Exists"}],
    }
    meta = {"name": name, "namespace": namespace, "annotations": {AS_PUBLISHED: "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
