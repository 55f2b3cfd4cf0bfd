"""Node labels that place a node in the network, as the known sources write them, coarse to fine.

Sources: NVIDIA topograph (docs/reference/node-labels.md, all three generations of keys), the clouds' documentation
of AWS, Google, Oracle, CoreWeave and Alibaba, Kubernetes' well-known labels.
"""

import re
from collections.abc import Iterable, Mapping

LADDERS: tuple[tuple[str, tuple[str, ...]], ...] = (
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
    ("NVIDIA", ("nvidia.com/gpu.clique",)),
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
        "labels",
        ("topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"),
    ),
)
"""Each source's keys, coarse to fine. On the data, not here, it is decided how they nest."""

_NO_VALUE = re.compile(r"none|unknown|not-available|", re.IGNORECASE)


def value_of(labels: Mapping[str, str], key: str) -> str:
    """Return the domain that *key* gives a node, or an empty text where it gives none."""
    value = labels.get(key, "")
    return "" if _NO_VALUE.fullmatch(value) else value


def known_keys() -> Iterable[tuple[str, str]]:
    """Return every known key with its source, in the order of the tables."""
    return ((source, key) for source, keys in LADDERS for key in keys)
