"""The tree of network domains over the nodes: as a topology object declares it, or as node labels nest."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import DocumentError, UsageError
from arena_topo.model.cluster import MOST_TIERS, Fabric, GpuNode
from arena_topo.model.keys import CLIQUE, HOSTNAME
from arena_topo.model.pods import Requirement
from arena_topo.model.text.documents import STRING, items, list_of, mapping, strings, take
from arena_topo.model.text.json import shown
from arena_topo.topology.objects import RawObject, identity, name, read_each, skipped

# Volcano's HyperNodes: a tree of network domains whose leaves select nodes by name, pattern or label.
#
# A lower tier is closer. For example, ``leaf-1`` of tier 1 selects the nodes a and b, ``leaf-2`` selects c,
# and ``spine`` of tier 2 selects the HyperNodes that match ``^leaf-``: then node a is in (spine, leaf-1),
# node c in (spine, leaf-2). Source: volcano-sh/apis, topology.volcano.sh/v1alpha1.

Labels = Mapping[str, str]

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_MOST_PATTERN = 256
_MOST_REPEATS = 3
_REPEATED_GROUP = re.compile(r"\)[*+{]|\)\?[*+{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?(?!:)")


@dataclass(frozen=True, slots=True)
class _HyperNode:
    """One domain: its tier, and its members among nodes or among other HyperNodes."""

    name: str
    tier: int
    tier_name: str
    nodes: tuple[RawObject, ...]
    children: tuple[RawObject, ...]


def read_hyper_nodes(
    nodes: Mapping[str, Labels], objects: Iterable[RawObject], problems: list[str]
) -> Fabric:
    """Return the fabric that HyperNodes make of *nodes*, given with their labels; empty without any.

    What cannot be read is added to *problems*.
    """
    hyper_nodes = list(read_each(objects, _hyper_node, problems))
    if not hyper_nodes:
        return Fabric()
    order = sorted({hyper_node.tier for hyper_node in hyper_nodes}, reverse=True)
    if len(order) > MOST_TIERS:
        problems.append(f"HyperNodes have {len(order)} tiers, more than {MOST_TIERS}; they are not used")
        return Fabric()
    # Where HyperNodes of a tier disagree on its name, the first one counts.
    names = {
        hyper_node.tier: hyper_node.tier_name or f"tier-{hyper_node.tier}"
        for hyper_node in reversed(hyper_nodes)
    }
    paths = {node: [""] * len(order) for node in nodes}
    members: dict[str, set[str]] = {}
    # From the closest tier upwards, so that the members of a HyperNode's children are known before its own.
    for hyper_node in sorted(hyper_nodes, key=lambda hyper_node: (hyper_node.tier, hyper_node.name)):
        try:
            members[hyper_node.name] = _members(hyper_node, nodes, members)
        except DocumentError as error:
            problems.append(skipped(f"HyperNode {hyper_node.name}", error))
            continue
        level = order.index(hyper_node.tier)
        shared = []
        for node in sorted(members[hyper_node.name]):
            if paths[node][level]:
                shared.append(node)
            else:
                paths[node][level] = hyper_node.name
        if shared:
            more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
            problems.append(
                f"node {shared[0]}{more} is in HyperNodes {paths[shared[0]][level]} and {hyper_node.name} "
                f"of tier {hyper_node.tier}; the former counts"
            )
    return Fabric(
        tuple(names[tier] for tier in order),
        {node: tuple(path) for node, path in paths.items()},
        "HyperNodes",
    )


def _hyper_node(raw: RawObject) -> Iterator[_HyperNode]:
    spec = mapping(raw, "spec")
    members: dict[str, list[RawObject]] = {"Node": [], "HyperNode": []}
    for member in items(spec, "members"):
        kind = take(member, "type", str)
        if kind not in members:
            raise DocumentError(f"spec.members type is {kind!r}, expected Node or HyperNode")
        members[kind].append(mapping(member, "selector"))
    tier_name = take(spec, "tierName", str, "")
    yield _HyperNode(
        name(raw), take(spec, "tier", int), tier_name, tuple(members["Node"]), tuple(members["HyperNode"])
    )


def _members(hyper_node: _HyperNode, nodes: Mapping[str, Labels], below: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes in a HyperNode; *below* has those in the HyperNodes of lower tiers."""
    members: set[str] = set()
    for selector in hyper_node.nodes:
        members |= _selected(selector, nodes)
    for selector in hyper_node.children:
        for child in _selected(selector, {child: {} for child in below}):
            members |= below[child]
    return members


def _selected(selector: RawObject, candidates: Mapping[str, Labels]) -> set[str]:
    if "exactMatch" in selector:
        exact = take(mapping(selector, "exactMatch"), "name", str)
        # A HyperNode may still name a node that was removed, or one that has no GPUs.
        return {exact} & set(candidates)
    if "regexMatch" in selector:
        text = take(mapping(selector, "regexMatch"), "pattern", str)
        pattern = _pattern(text)
        # Not fullmatch: Go's MatchString, which Volcano uses, finds a pattern anywhere in a name.
        return {name for name in candidates if pattern.search(name)}
    match = mapping(selector, "labelMatch")
    required = strings(match, "matchLabels")
    requirements = [_requirement(expression) for expression in items(match, "matchExpressions")]
    if not required and not requirements:
        raise DocumentError("spec.members has a selector that selects nothing")
    return {
        name
        for name, labels in candidates.items()
        if required.items() <= labels.items()
        and all(requirement.holds(labels) for requirement in requirements)
    }


def _requirement(raw: RawObject) -> Requirement:
    """Return an expression of a label selector: ``{key: rack, operator: In, values: [r1, r2]}``.

    Raises ``DocumentError``.
    """
    operator = take(raw, "operator", str)
    if operator not in _OPERATORS:
        expected = ", ".join(sorted(_OPERATORS))
        raise DocumentError(f"spec.members operator is {shown(operator)}, expected one of {expected}")
    values: tuple[str, ...] = list_of(STRING).read(raw.get("values") or [], "spec.members values")
    return Requirement(take(raw, "key", str), operator, values)


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern *text* of node names; raises ``DocumentError``.

    Go matches every pattern in linear time, and Python some of them in exponential time: ``(a+)+$`` on thirty
    letters takes minutes. Such patterns have a repeated group, or many repeats, and names of nodes need
    neither.
    """
    is_slow = (
        len(text) > _MOST_PATTERN
        or _REPEATED_GROUP.search(text)
        or _BACK_REFERENCE.search(text)
        or len(_REPEAT.findall(text)) > _MOST_REPEATS
    )
    if is_slow:
        raise DocumentError(
            f"spec.members regexMatch {shown(text)} has a repeated group, or more than {_MOST_REPEATS} repeats"
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # Go reads what Python only warns of
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise DocumentError(f"spec.members regexMatch {shown(text)}: {error}") from error


# Tiers by node labels: the keys that the known sources write, and how they nest on the nodes of a cluster.
#
# Nothing guarantees which of the keys a cluster has, nor in which order they nest, so the nodes' own labels
# decide. Take these five nodes::
#
#     node    zone    block   rack
#     a       z1      b1      r1
#     b       z1      b2      r1
#     c       z1      b1      r2
#     d       z2      b3      r3
#     e       z2      b3      r3
#
# Keys are looked at from the one with the fewest domains to the one with the most: zone (2), block (3), rack
# (3). The zone is the first tier. Each block lies in one zone, so block is the next tier. Rack r1 lies in the
# blocks b1 and b2, so it does not nest in the tier above it: it is left out with a warning.
#
# Sources: NVIDIA/topograph, docs/reference/node-labels.md (all three generations of keys); the guides of AWS,
# Google Cloud, Oracle, CoreWeave and Alibaba Cloud on network topology; Kubernetes' well-known labels.

_KNOWN_KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("topograph", tuple(f"fabric.topograph.run/tier-{tier}" for tier in range(9, -1, -1))),
    ("topograph", ("accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain")),
    ("topograph", ("network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter")),
    (
        "topograph",
        (
            "network.topology.nvidia.com/spine",
            "network.topology.nvidia.com/block",
            "network.topology.nvidia.com/leaf",
            "network.topology.nvidia.com/accelerator",
        ),
    ),
    ("NVIDIA", (CLIQUE,)),
    ("AWS", tuple(f"topology.k8s.aws/network-node-layer-{layer}" for layer in range(1, 5))),
    ("AWS", ("topology.k8s.aws/ultraserver-id",)),
    ("GKE", tuple(f"cloud.google.com/gce-topology-{level}" for level in ("block", "subblock", "host"))),
    (
        "OCI",
        tuple(
            f"oci.oraclecloud.com/rdma.{level}_id"
            for level in ("hpc_island", "network_block", "local_block", "host")
        ),
    ),
    ("OCI", ("oci.oraclecloud.com/host.network_block_id", "oci.oraclecloud.com/host.rack_id")),
    (
        "CoreWeave",
        (
            "ib.coreweave.cloud/fabric",
            "ib.coreweave.cloud/superpod",
            "ib.coreweave.cloud/leafgroup",
            "backend.coreweave.cloud/fabric",
            "backend.coreweave.cloud/leafgroup",
            "node.coreweave.cloud/rack",
        ),
    ),
    ("ACK Lingjun", ("alibabacloud.com/point-of-delivery", "alibabacloud.com/asw-id")),
    (
        "Kubernetes",
        ("topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"),
    ),
)
"""Each source's keys in its own order, coarse to fine."""

_NO_VALUE = re.compile(r"none|unknown|not-available|", re.IGNORECASE)
"""What sources write where a node is in no domain."""


def is_level(key: str) -> bool:
    """Whether a known source writes the tier of a node under the label *key*."""
    return any(key in keys for _, keys in _KNOWN_KEYS)


@dataclass(frozen=True, slots=True)
class LabelTiers:
    """Tiers, coarse to fine, and the label keys of each: the first one with a value names a node's domain."""

    tiers: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    source: str


def _tiers_of_keys(keys: Sequence[str], source: str) -> LabelTiers:
    """Return the tiers that have the names of their label *keys*, coarse to fine."""
    return LabelTiers(tuple(keys), tuple((key,) for key in keys), source)


def _value_of(labels: Mapping[str, str], key: str) -> str:
    """Return the domain that the label *key* gives a node, or an empty string where it gives none."""
    value = labels.get(key, "")
    return "" if _NO_VALUE.fullmatch(value) else value


def _detect_tiers(nodes: Sequence[GpuNode], warnings: list[str]) -> LabelTiers | None:
    """Return the tiers that the known label keys make, ordered by how they nest, or None without any."""
    domains: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for source, key in _known_keys():
        values = [_value_of(node.labels, key) for node in nodes]
        labelled = sum(map(bool, values))
        # Nodes without NVLink between them have no clique, and are in none.
        complete = labelled == len(values) or (key == CLIQUE and _is_tier([*filter(None, values)]))
        if labelled and complete and _is_tier(values):
            domains[key], sources[key] = values, source
        elif 0 < labelled < len(values):
            # As a tier it would put the other nodes into no domain, far from everything.
            warnings.append(f"label {key} is on {labelled} of {len(values)} nodes; it is not used as a tier")
    tiers: list[str] = []
    # Keys with equally many domains stay in the order of the table, where each source's are coarse to fine.
    for key in sorted(domains, key=lambda key: _count(domains[key])):
        if not tiers or _nests(domains[tiers[-1]], domains[key]) or _same_source(tiers[-1], key):
            tiers.append(key)
        else:
            warnings.append(f"label {key} does not nest in {tiers[-1]}; it is not used as a tier")
    if not tiers:
        return None
    names = ", ".join(dict.fromkeys(sources[key] for key in tiers))
    return _tiers_of_keys(tiers, f"node labels ({names})")


def _known_keys() -> Iterator[tuple[str, str]]:
    return ((source, key) for source, keys in _KNOWN_KEYS for key in keys)


def _is_tier(values: Sequence[str]) -> bool:
    """Whether some domain holds two nodes; a key that differs on every node names the node."""
    # A single node cannot tell the two apart, so that there every key counts as a tier.
    return len(set(values)) < len(values) or len(values) == 1


def _count(values: Sequence[str]) -> int:
    """Return how many domains *values* name; each node without one is by itself."""
    return len(set(filter(None, values))) + values.count("")


def _nests(coarse: Sequence[str], fine: Sequence[str]) -> bool:
    """Whether each domain of *fine* lies in one domain of *coarse*, both by node, in the same order."""
    parents: dict[str, str] = {}
    pairs = [(above, below) for above, below in zip(coarse, fine, strict=True) if below]
    return all(parents.setdefault(below, above) == above for above, below in pairs)


def _same_source(coarse: str, fine: str) -> bool:
    """Whether one source writes both keys in this order: then parents that share a name are two domains.

    Racks are often numbered again in every zone: r1 of zone z1 and r1 of zone z2 are two racks.
    """
    sources = {key: (source, position) for position, (source, key) in enumerate(_known_keys())}
    return sources[coarse][0] == sources[fine][0] and sources[coarse][1] < sources[fine][1]


_KUEUE = "kueue.x-k8s.io/"
_KAI = "kai.scheduler/"
_NODE_LAYERS = frozenset({"NodeTopologyLayer", "ClusterTopologyLayer"})
"""Koordinator's built-in layers: the node itself and the whole cluster are not tiers."""


def read_fabric(
    nodes: Sequence[GpuNode], topologies: Iterable[RawObject], levels: Sequence[str], warnings: list[str]
) -> Fabric:
    """Return the fabric of *nodes*.

    *levels*, label keys from coarse to fine, win over everything; then come Kueue's Topology, KAI's Topology,
    Koordinator's ClusterNetworkTopology and Volcano's HyperNodes, and last the known labels. Raises
    ``UsageError`` where a key of *levels* is on no node.
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
    detected = _detect_tiers(nodes, warnings)
    return _fabric(nodes, detected) if detected else Fabric()


def _tiers_of_levels(nodes: Sequence[GpuNode], levels: Sequence[str]) -> LabelTiers:
    # A misspelt key would otherwise mean, in silence, that every node is in no domain.
    for key in levels:
        if not any(_value_of(node.labels, key) for node in nodes):
            raise UsageError(
                f"--topology-levels: no node has the label {key}",
                hint="name label keys from coarse to fine, for example topology.kubernetes.io/zone,example.com/rack",
            )
    return _tiers_of_keys([key for key in levels if key != HOSTNAME], "--topology-levels")


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
        keys = [take(level, "nodeLabel", str) for level in items(spec, "levels")]
        # The finest level is usually the node itself, which is not a tier.
        tiers = _tiers_of_keys([key for key in keys if key != HOSTNAME], identity(raw))
    if len(tiers.tiers) > MOST_TIERS:
        raise DocumentError(f"it has {len(tiers.tiers)} levels, more than {MOST_TIERS}")
    yield tiers


def _layers(spec: RawObject) -> list[tuple[str, tuple[str, ...]]]:
    """Return the layers of a ClusterNetworkTopology with their label keys, coarse to fine.

    Each layer names its parent: with ``rack`` below ``row`` below ``ClusterTopologyLayer`` the depths are 2
    and 1, so ``row`` comes first.
    """
    keys: dict[str, tuple[str, ...]] = {}
    parents: dict[str, str] = {}
    for entry in items(spec, "networkTopologySpec"):
        layer = take(entry, "topologyLayer", str)
        labels = entry.get("labelKey", [])
        if not isinstance(labels, list) or not all(isinstance(key, str) for key in labels):
            raise DocumentError(f"spec.networkTopologySpec {layer} labelKey must be a list of strings")
        keys[layer], parents[layer] = tuple(labels), take(entry, "parentTopologyLayer", str, "")
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
            raise DocumentError(f"spec.networkTopologySpec has a cycle through {layer}")
        seen.add(layer)
        depth += 1
    return depth


def _covered(nodes: Sequence[GpuNode], tiers: LabelTiers) -> int:
    """Return how many of *nodes* have a domain at every tier."""
    return sum(all(_domain(node.labels, keys) for keys in tiers.keys) for node in nodes)


def _domain(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((value for value in (_value_of(labels, key) for key in keys) if value), "")


def _fabric(nodes: Sequence[GpuNode], tiers: LabelTiers) -> Fabric:
    paths = {node.name: tuple(_domain(node.labels, keys) for keys in tiers.keys) for node in nodes}
    return Fabric(tiers.tiers, _with_unique_names(paths, len(tiers.tiers)), tiers.source)


def _with_unique_names(paths: Mapping[str, tuple[str, ...]], depth: int) -> dict[str, tuple[str, ...]]:
    """Return *paths* with one name for each domain: a shared name is preceded by its parent's.

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
