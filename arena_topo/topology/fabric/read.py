"""The tree of network domains over the nodes: as a topology object declares it, or else as node labels nest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from arena_topo.errors import UsageError
from arena_topo.model.cluster.snapshot import MOST_TIERS, Fabric, GpuNode
from arena_topo.model.keys import HOSTNAME
from arena_topo.topology.fabric.hyper_nodes import read_hyper_nodes
from arena_topo.topology.fabric.node_labels import LabelTiers, detect_tiers, tiers_of_keys, value_of
from arena_topo.topology.raw_objects import (
    Malformed,
    RawObject,
    identity,
    items,
    mapping,
    optional_string,
    read_each,
    string,
)

_KUEUE = "kueue.x-k8s.io/"
_KAI = "kai.scheduler/"
_NODE_LAYERS = frozenset({"NodeTopologyLayer", "ClusterTopologyLayer"})
"""Koordinator's built-in layers: the node itself and the whole cluster are no tiers."""


def read_fabric(
    nodes: Sequence[GpuNode], topologies: Iterable[RawObject], levels: Sequence[str], warnings: list[str]
) -> Fabric:
    """Return the fabric of *nodes*.

    *levels*, label keys from coarse to fine, win over everything; then come Kueue's Topology, KAI's Topology,
    Koordinator's ClusterNetworkTopology and Volcano's HyperNodes, and last the known labels. Raises ``UsageError``
    where a key of *levels* is on no node.
    """
    if levels:
        return _fabric(nodes, _tiers_of_levels(nodes, levels))
    objects = list(topologies)
    declared = [
        tiers
        for kind in (_is_kueue, _is_kai, _is_network_topology)
        for tiers in read_each(filter(kind, objects), _declared_tiers, warnings)
        if tiers.tiers
    ]
    # An object may be about other nodes, those with CPUs only for example; the first of the best ones counts.
    best = max(declared, key=lambda tiers: _covered(nodes, tiers), default=None)
    if best and _covered(nodes, best):
        unused = [tiers.source for tiers in declared if tiers is not best]
        if unused:
            warnings.append(f"the fabric is read from {best.source}; not used: {', '.join(unused)}")
        return _fabric(nodes, best)
    hyper_nodes = [raw for raw in objects if raw.get("kind") == "HyperNode"]
    fabric = read_hyper_nodes({node.name: node.labels for node in nodes}, hyper_nodes, warnings)
    if fabric.tiers:
        return fabric
    detected = detect_tiers(nodes, warnings)
    return _fabric(nodes, detected) if detected else Fabric()


def _tiers_of_levels(nodes: Sequence[GpuNode], levels: Sequence[str]) -> LabelTiers:
    # A misspelt key would otherwise mean, in silence, that every node is in no domain.
    for key in levels:
        if not any(value_of(node.labels, key) for node in nodes):
            raise UsageError(
                f"--topology-levels: no node has the label {key}",
                hint="name label keys from coarse to fine, for example topology.kubernetes.io/zone,example.com/rack",
            )
    return tiers_of_keys([key for key in levels if key != HOSTNAME], "--topology-levels")


def _is_kueue(raw: RawObject) -> bool:
    return raw.get("kind") == "Topology" and str(raw.get("apiVersion", "")).startswith(_KUEUE)


def _is_kai(raw: RawObject) -> bool:
    return raw.get("kind") == "Topology" and str(raw.get("apiVersion", "")).startswith(_KAI)


def _is_network_topology(raw: RawObject) -> bool:
    return raw.get("kind") == "ClusterNetworkTopology"


def _declared_tiers(raw: RawObject) -> Iterator[LabelTiers]:
    spec = mapping(raw, "spec")
    if _is_network_topology(raw):
        layers = _layers(spec)
        tiers = LabelTiers(
            tuple(name for name, _ in layers), tuple(keys for _, keys in layers), identity(raw)
        )
    else:
        keys = [string(level, "nodeLabel") for level in items(spec, "levels")]
        # The finest level is usually the node itself, which is no tier.
        tiers = tiers_of_keys([key for key in keys if key != HOSTNAME], identity(raw))
    if len(tiers.tiers) > MOST_TIERS:
        raise Malformed(f"it has {len(tiers.tiers)} levels, more than {MOST_TIERS}")
    yield tiers


def _layers(spec: RawObject) -> list[tuple[str, tuple[str, ...]]]:
    """Return the layers of a ClusterNetworkTopology with their label keys, coarse to fine.

    Each layer names its parent: with ``rack`` below ``row`` below ``ClusterTopologyLayer`` the depths are 2 and 1, so
    ``row`` comes first.
    """
    keys: dict[str, tuple[str, ...]] = {}
    parents: dict[str, str] = {}
    for entry in items(spec, "networkTopologySpec"):
        layer = string(entry, "topologyLayer")
        labels = entry.get("labelKey", [])
        if not isinstance(labels, list) or not all(isinstance(key, str) for key in labels):
            raise Malformed(f"spec.networkTopologySpec {layer} labelKey must be a list of strings")
        keys[layer], parents[layer] = tuple(labels), optional_string(entry, "parentTopologyLayer")
    depth = {layer: _depth(layer, parents) for layer in keys}
    return [
        (layer, keys[layer])
        for layer in sorted(keys, key=lambda layer: depth[layer])
        if layer not in _NODE_LAYERS
    ]


def _depth(layer: str, parents: Mapping[str, str]) -> int:
    depth, seen = 0, {layer}
    while parents.get(layer):
        layer = parents[layer]
        # Nothing keeps the layers of an object from naming each other as parents.
        if layer in seen:
            raise Malformed(f"spec.networkTopologySpec has a cycle through {layer}")
        seen.add(layer)
        depth += 1
    return depth


def _covered(nodes: Sequence[GpuNode], tiers: LabelTiers) -> int:
    """Return how many of *nodes* have a domain at every tier."""
    return sum(all(_domain(node.labels, keys) for keys in tiers.keys) for node in nodes)


def _domain(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((value for value in (value_of(labels, key) for key in keys) if value), "")


def _fabric(nodes: Sequence[GpuNode], tiers: LabelTiers) -> Fabric:
    paths = {node.name: tuple(_domain(node.labels, keys) for keys in tiers.keys) for node in nodes}
    return Fabric(tiers.tiers, _with_unique_names(paths, len(tiers.tiers)), tiers.source)


def _with_unique_names(paths: Mapping[str, tuple[str, ...]], depth: int) -> dict[str, tuple[str, ...]]:
    """Return *paths* with one name for each domain: where several parents share a name, the parent's comes first.

    Rack r1 in zone z1 and rack r1 in zone z2 become z1/r1 and z2/r1; r2, which is in z1 only, stays r2.
    """
    named = dict(paths)
    for tier in range(1, depth):
        parents: dict[str, set[str]] = {}
        for path in named.values():
            if path[tier]:
                parents.setdefault(path[tier], set()).add(path[tier - 1])
        for node, path in named.items():
            if path[tier] and path[tier - 1] and len(parents[path[tier]]) > 1:
                named[node] = (*path[:tier], f"{path[tier - 1]}/{path[tier]}", *path[tier + 1 :])
    return named
