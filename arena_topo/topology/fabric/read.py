"""The tree of network domains over the nodes: as a topology object declares it, else as labels nest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import UsageError
from arena_topo.model.cluster.snapshot import Fabric, GpuNode
from arena_topo.model.keys import HOSTNAME
from arena_topo.topology.fabric.hyper_nodes import read_hyper_nodes
from arena_topo.topology.fabric.known_ladders import known_keys, value_of
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


@dataclass(frozen=True, slots=True)
class Ladder:
    """Tiers, coarse to fine, and how a node's labels name its domain at each: the first key that has a value."""

    tiers: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    source: str


def read_fabric(
    nodes: Sequence[GpuNode], topologies: Iterable[RawObject], levels: Sequence[str], warnings: list[str]
) -> Fabric:
    """Return the fabric of *nodes*.

    *levels*, label keys from coarse to fine, win; then Kueue's Topology, KAI's, Koordinator's
    ClusterNetworkTopology, Volcano's HyperNodes; then the known labels. Raises ``UsageError`` where a key of
    *levels* is on no node.
    """
    if levels:
        return _given(nodes, levels)
    objects = list(topologies)
    ladders = [
        ladder
        for kind in (_is_kueue, _is_kai, _is_network_topology)
        for ladder in read_each(filter(kind, objects), _ladders, warnings)
        if ladder.tiers
    ]
    best = max(ladders, key=lambda ladder: _covered(nodes, ladder), default=None)
    if best and _covered(nodes, best):
        unused = [ladder.source for ladder in ladders if ladder is not best]
        if unused:
            warnings.append(f"the fabric is read from {best.source}; not used: {', '.join(unused)}")
        return _fabric(nodes, best)
    hyper_nodes = [each for each in objects if each.get("kind") == "HyperNode"]
    fabric = read_hyper_nodes({node.name: node.labels for node in nodes}, hyper_nodes, warnings)
    return fabric if fabric.tiers else _detected(nodes, warnings)


def _given(nodes: Sequence[GpuNode], levels: Sequence[str]) -> Fabric:
    for key in levels:
        if not any(value_of(node.labels, key) for node in nodes):
            raise UsageError(
                f"--topology-levels: no node has the label {key}",
                hint="name label keys from coarse to fine, for example topology.kubernetes.io/zone,example.com/rack",
            )
    tiers = tuple(key for key in levels if key != HOSTNAME)
    return _fabric(nodes, Ladder(tiers, tuple((key,) for key in tiers), "--topology-levels"))


def _is_kueue(raw: RawObject) -> bool:
    return raw.get("kind") == "Topology" and str(raw.get("apiVersion", "")).startswith(_KUEUE)


def _is_kai(raw: RawObject) -> bool:
    return raw.get("kind") == "Topology" and str(raw.get("apiVersion", "")).startswith(_KAI)


def _is_network_topology(raw: RawObject) -> bool:
    return raw.get("kind") == "ClusterNetworkTopology"


def _ladders(raw: RawObject) -> Iterable[Ladder]:
    spec = mapping(raw, "spec")
    if _is_network_topology(raw):
        layers = _layers(spec)
        yield Ladder(tuple(name for name, _ in layers), tuple(keys for _, keys in layers), identity(raw))
        return
    keys = [string(level, "nodeLabel") for level in items(spec, "levels")]
    tiers = tuple(key for key in keys if key != HOSTNAME)
    yield Ladder(tiers, tuple((key,) for key in tiers), identity(raw))


def _layers(spec: RawObject) -> list[tuple[str, tuple[str, ...]]]:
    """Return the layers of a ClusterNetworkTopology, coarse to fine by their parents."""
    keys: dict[str, tuple[str, ...]] = {}
    parents: dict[str, str] = {}
    for each in items(spec, "networkTopologySpec"):
        layer = string(each, "topologyLayer")
        labels = each.get("labelKey", [])
        if not isinstance(labels, list) or not all(isinstance(key, str) for key in labels):
            raise Malformed(f"spec.networkTopologySpec {layer} labelKey is no list of texts")
        keys[layer], parents[layer] = tuple(labels), optional_string(each, "parentTopologyLayer")
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
        if layer in seen:
            raise Malformed(f"spec.networkTopologySpec has a circle through {layer}")
        seen.add(layer)
        depth += 1
    return depth


def _covered(nodes: Sequence[GpuNode], ladder: Ladder) -> int:
    return sum(all(_domain(node.labels, keys) for keys in ladder.keys) for node in nodes)


def _domain(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((value for value in (value_of(labels, key) for key in keys) if value), "")


def _fabric(nodes: Sequence[GpuNode], ladder: Ladder) -> Fabric:
    paths = {node.name: tuple(_domain(node.labels, keys) for keys in ladder.keys) for node in nodes}
    return Fabric(ladder.tiers, _unique(paths, len(ladder.tiers)), ladder.source)


def _unique(paths: Mapping[str, tuple[str, ...]], depth: int) -> dict[str, tuple[str, ...]]:
    """Give each domain a name of its own: where several parents use a name, the parent's is put before it."""
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


def _detected(nodes: Sequence[GpuNode], warnings: list[str]) -> Fabric:
    """Return the fabric that the known label keys make, ordered by how they nest."""
    domains: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for source, key in known_keys():
        values = [value_of(node.labels, key) for node in nodes]
        having = sum(map(bool, values))
        if having == len(values) and values and _is_tier(values):
            domains[key], sources[key] = values, source
        elif having and having < len(values):
            warnings.append(f"label {key} is on {having} of {len(values)} nodes; it is not used as a tier")
    tiers: list[str] = []
    for key in sorted(domains, key=lambda key: len(set(domains[key]))):
        if not tiers or _nests(domains[tiers[-1]], domains[key]) or _same_ladder(tiers[-1], key):
            tiers.append(key)
        else:
            warnings.append(f"label {key} does not nest in {tiers[-1]}; it is not used as a tier")
    if not tiers:
        return Fabric()
    source = ", ".join(dict.fromkeys(sources[key] for key in tiers))
    ladder = Ladder(tuple(tiers), tuple((key,) for key in tiers), f"node labels ({source})")
    return _fabric(nodes, ladder)


def _is_tier(values: Sequence[str]) -> bool:
    """Whether some domain holds two nodes; a key that is different on every node names the node."""
    return len(set(values)) < len(values) or len(values) == 1


def _nests(coarse: Sequence[str], fine: Sequence[str]) -> bool:
    parents: dict[str, str] = {}
    return all(parents.setdefault(below, above) == above for above, below in zip(coarse, fine, strict=True))


def _same_ladder(coarse: str, fine: str) -> bool:
    """Whether one source names both keys, and in this order: then domains of one name below two parents differ."""
    order = list(known_keys())
    places = {key: place for place, (_, key) in enumerate(order)}
    same = order[places[coarse]][0] == order[places[fine]][0]
    return same and places[coarse] < places[fine]
