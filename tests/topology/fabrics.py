"""Nodes with labels, and the objects that declare a fabric over them."""

from typing import Any

from arena_topo.model.cluster import Fabric, GpuNode
from arena_topo.topology.fabric import read_fabric

ZONE, RACK, REGION = (f"topology.kubernetes.io/{level}" for level in ("zone", "rack", "region"))


def fleet(**labels: dict[str, str]) -> tuple[GpuNode, ...]:
    """Return nodes by name with their labels."""
    return tuple(GpuNode(name, labels=node_labels) for name, node_labels in labels.items())


def fabric(nodes: tuple[GpuNode, ...], *objects: dict[str, Any], levels: tuple[str, ...] = ()) -> Fabric:
    """Return the fabric, which must leave no warning."""
    warnings: list[str] = []
    result = read_fabric(nodes, objects, levels, warnings)
    assert warnings == []
    return result


CUSTOM = fleet(
    a={"example.com/row": "x", "example.com/rack": "r1", ZONE: "z"},
    b={"example.com/row": "x", "example.com/rack": "r1", ZONE: "z"},
    c={"example.com/row": "y", "example.com/rack": "r2", ZONE: "z"},
)


LEVELS = [
    {"nodeLabel": "example.com/row"},
    {"nodeLabel": "example.com/rack"},
    {"nodeLabel": "kubernetes.io/hostname"},
]


def network_topology(**parents: str) -> dict[str, Any]:
    """Return Koordinator's object with the layers of *parents*."""
    keys = {"row": ["example.com/row"], "rack": ["example.com/missing", "example.com/rack"]}
    layers = [
        {"topologyLayer": layer, "parentTopologyLayer": parent, "labelKey": keys.get(layer, [])}
        for layer, parent in parents.items()
    ]
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "ClusterNetworkTopology",
        "metadata": {"name": "default"},
        "spec": {"networkTopologySpec": layers},
    }


def hyper_node(
    name: str, tier: int, kind: str, *selectors: dict[str, Any], tier_name: str = ""
) -> dict[str, Any]:
    """Return a HyperNode with members of *kind*."""
    members = [{"type": kind, "selector": selector} for selector in selectors]
    spec = {"tier": tier, "tierName": tier_name, "members": members}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


def exact(name: str) -> dict[str, Any]:
    """Return a selector of one name."""
    return {"exactMatch": {"name": name}}


LEAVES = (
    hyper_node("leaf-1", 1, "Node", exact("a"), exact("b"), tier_name="leaf"),
    hyper_node(
        "leaf-2", 1, "Node", {"labelMatch": {"matchLabels": {"example.com/rack": "r2"}}}, tier_name="leaf"
    ),
)
