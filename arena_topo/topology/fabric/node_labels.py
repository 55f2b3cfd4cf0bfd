"""Tiers by node labels: the keys that the known sources write, and how they nest on the nodes of a cluster.

Nothing guarantees which of the keys a cluster has, nor in which order they nest, so the nodes' own labels decide. Take
these five nodes::

    node    zone    block   rack
    a       z1      b1      r1
    b       z1      b2      r1
    c       z1      b1      r2
    d       z2      b3      r3
    e       z2      b3      r3

Keys are looked at from the one with the fewest domains to the one with the most: zone (2), block (3), rack (3). The
zone is the first tier. Each block lies in one zone, so block is the next tier. Rack r1 lies in the blocks b1 and b2,
so it does not nest in the tier above it: it is left out with a warning.

Sources: NVIDIA/topograph, docs/reference/node-labels.md (all three generations of keys); the guides of AWS, Google
Cloud, Oracle, CoreWeave and Alibaba Cloud on network topology; Kubernetes' well-known labels.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.keys import CLIQUE

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
    """Tiers, coarse to fine, and the label keys that name a node's domain at each: the first one with a value counts."""

    tiers: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    source: str


def tiers_of_keys(keys: Sequence[str], source: str) -> LabelTiers:
    """Return the tiers that have the names of their label *keys*, coarse to fine."""
    return LabelTiers(tuple(keys), tuple((key,) for key in keys), source)


def value_of(labels: Mapping[str, str], key: str) -> str:
    """Return the domain that the label *key* gives a node, or an empty string where it gives none."""
    value = labels.get(key, "")
    return "" if _NO_VALUE.fullmatch(value) else value


def detect_tiers(nodes: Sequence[GpuNode], warnings: list[str]) -> LabelTiers | None:
    """Return the tiers that the known label keys make, ordered by how they nest, or None without any."""
    domains: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for source, key in _known_keys():
        values = [value_of(node.labels, key) for node in nodes]
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
    return tiers_of_keys(tiers, f"node labels ({names})")


def _known_keys() -> Iterator[tuple[str, str]]:
    """Yield every known key with its source, in the order of the table."""
    return ((source, key) for source, keys in _KNOWN_KEYS for key in keys)


def _is_tier(values: Sequence[str]) -> bool:
    """Whether some domain holds two nodes; a key that differs on every node names the node."""
    # A single node cannot tell the two apart, so that there every key counts as a tier.
    return len(set(values)) < len(values) or len(values) == 1


def _count(values: Sequence[str]) -> int:
    """Return how many domains *values* name; each node without one is by itself."""
    return len(set(filter(None, values))) + values.count("")


def _nests(coarse: Sequence[str], fine: Sequence[str]) -> bool:
    """Whether each domain of *fine* lies in one domain of *coarse*; both give the domains of the nodes in order."""
    parents: dict[str, str] = {}
    pairs = [(above, below) for above, below in zip(coarse, fine, strict=True) if below]
    return all(parents.setdefault(below, above) == above for above, below in pairs)


def _same_source(coarse: str, fine: str) -> bool:
    """Whether one source writes both keys, and in this order: then it means two domains where parents share a name.

    Racks are often numbered anew in every zone: r1 of zone z1 and r1 of zone z2 are two racks.
    """
    sources = {key: (source, position) for position, (source, key) in enumerate(_known_keys())}
    return sources[coarse][0] == sources[fine][0] and sources[coarse][1] < sources[fine][1]
