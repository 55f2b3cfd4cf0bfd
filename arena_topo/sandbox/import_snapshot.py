"""From a snapshot of a real cluster to a layout, and from a layout's snapshot to the objects of the sandbox.

The sandbox publishes what the cluster did in the way in which it did: ACK's ConfigMaps, HAMi's annotations,
our own, labels. Facts from another source (Koordinator, DRA, NodeResourceTopology) are written into our own
annotation.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from arena_topo.model.cluster import Fabric, GpuNode, Holder, Snapshot
from arena_topo.model.hardware import Hardware, ShareMode
from arena_topo.model.keys import (
    ACK_GPU_GROUP,
    GPU_RESOURCES,
    GPU_TOPOLOGY,
    HAMI_REGISTER,
    HAMI_SCORE,
    HOSTNAME,
    NVIDIA_GPU,
    OPERATOR_JOB_NAME,
)
from arena_topo.model.objects import Object
from arena_topo.model.text.quantity import Resources
from arena_topo.sandbox.vendor_agents import (
    LOST,
    TIER_PREFIX,
    Machine,
    hami_annotations,
    sleeping_pod,
    topology_config_map,
)
from arena_topo.topology.files import read_snapshot, snapshot_document
from arena_topo.topology.hardware import find_product
from arena_topo.topology.objects import PodKey
from arena_topo.topology.sources import annotation

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


def objects_of(document: object, source: str, stamp: str) -> list[Object]:
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
    machine = Machine(node.name, Hardware(node.gpus, node.links, node.nics), product, 0)
    publishers = _publishers(node)
    annotations: dict[str, str] = {} if node.ready else {LOST: "true"}
    if _Publisher.HAMI in publishers.values():
        shares = 2 if any(gpu.mode is ShareMode.SHARED for gpu in node.gpus) else 1
        scored = publishers.get("links") is _Publisher.HAMI
        published = hami_annotations(machine, stamp, shares=shares)
        # Where the links came from another source, HAMi's scores would be a second one.
        annotations |= {key: text for key, text in published.items() if scored or not key.endswith("score")}
    if hardware := _agent_hardware(node, publishers):
        annotations[GPU_TOPOLOGY] = annotation.encode(hardware, _annotated_holders(node), stamp)
    own = {HOSTNAME: node.hostname or node.name, **node.labels, **labels}
    meta = {"name": node.name, "labels": own, "annotations": annotations}
    head = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
    yield {**head, "spec": _spec(node), "status": _status(node, pods)}
    if node.measured or _Publisher.ACK in publishers.values():
        config_map = topology_config_map(machine, node.measured)
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
    status: Object = {"allocatable": _quantities(amounts), "capacity": _quantities(capacity)}
    if node.address:
        hostname = {"type": "Hostname", "address": node.hostname or node.name}
        status["addresses"] = [{"type": "InternalIP", "address": node.address}, hostname]
    return status


def _gpu_resource(node: GpuNode) -> str:
    """Return the resource by which *node* offers GPUs in the sandbox, which allocates no claims."""
    return node.gpu_resource if node.gpu_resource in GPU_RESOURCES else NVIDIA_GPU


def _quantities(amounts: Resources) -> dict[str, str]:
    return {name: f"{value}m" if name == "cpu" else str(value) for name, value in amounts.items()}


def _pods(node: GpuNode) -> list[Object]:
    """Return the pods that hold GPUs; the first, or one that stands for all, requests what is not GPUs."""
    rest = {
        name: value
        for name, value in node.requested.items()
        if value and name not in {node.gpu_resource, _gpu_resource(node), "pods"}
    }
    if not node.holders:
        return [sleeping_pod(f"imported-{node.name}", _OTHERS, node.name, _quantities(rest))] if rest else []
    pods = []
    for holder in node.holders:
        requests = {_gpu_resource(node): holder.gpus, **rest}
        pods.append(_holder_pod(node, holder, requests))
        # Only the first pod requests it, so that the node's sum stays right.
        rest = {}
    return pods


def _holder_pod(node: GpuNode, holder: Holder, requests: Mapping[str, int]) -> Object:
    pod = sleeping_pod(holder.pod, holder.namespace or "default", node.name, _quantities(requests))
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
    return {f"{TIER_PREFIX}{tier}": domain.rpartition("/")[2] for tier, domain in tiers if domain}


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
        {"topologyLayer": tier, "labelKey": [f"{TIER_PREFIX}{tier}"], "parentTopologyLayer": above}
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
