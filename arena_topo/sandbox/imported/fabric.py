"""The fabric of an imported cluster: the objects that declare it, where labels alone do not.

Kinds: kueue.x-k8s.io Topology, scheduling.koordinator.sh ClusterNetworkTopology, topology.volcano.sh HyperNode.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from arena_topo.model.cluster.snapshot import Fabric
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.objects import Object

NETWORK_TOPOLOGY = "ClusterNetworkTopology"
HYPER_NODES = "HyperNodes"
TIER_LABEL = "sandbox.arena-topo.dev/"
"""Prefix of the labels that stand for a tier whose own label key a snapshot does not tell."""
_BY_LABELS = "node labels"
_KUEUE = ("kueue.x-k8s.io", "v1beta2", "Topology", "topologies")
_KOORDINATOR = ("scheduling.koordinator.sh", "v1alpha1", NETWORK_TOPOLOGY, "clusternetworktopologies")
_VOLCANO = ("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes")


def fabric_objects(fabric: Fabric) -> list[Object]:
    """Return the definition and the objects that declare *fabric*; none where the nodes' labels do."""
    kind, _, name = fabric.source.partition(" ")
    if not fabric.tiers or fabric.source.startswith(_BY_LABELS):
        return []
    if fabric.source == HYPER_NODES:
        return [_definition(*_VOLCANO), *_hyper_nodes(fabric)]
    if kind == NETWORK_TOPOLOGY:
        return [_definition(*_KOORDINATOR), _network_topology(fabric, name)]
    levels = [{"nodeLabel": key} for key in (*fabric.tiers, HOSTNAME)]
    named = name if kind == "Topology" else "imported"
    return [_definition(*_KUEUE), _object(_KUEUE, named, {"levels": levels})]


def _hyper_nodes(fabric: Fabric) -> Iterator[Object]:
    """Yield a HyperNode for each domain of each tier, the coarsest tier with the highest number."""
    for at, tier in enumerate(fabric.tiers):
        members: dict[str, list[str]] = {}
        for node, path in fabric.paths.items():
            if path[at]:
                members.setdefault(path[at], []).append(node)
        for domain, nodes in members.items():
            selectors = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
            spec = {"tier": len(fabric.tiers) - at, "tierName": tier, "members": selectors}
            yield _object(_VOLCANO, domain, spec)


def _network_topology(fabric: Fabric, name: str) -> Object:
    parents = ["ClusterTopologyLayer", *fabric.tiers]
    layers: list[Object] = [
        {"topologyLayer": tier, "labelKey": [f"{TIER_LABEL}{tier}"], "parentTopologyLayer": above}
        for tier, above in zip(fabric.tiers, parents, strict=False)
    ]
    layers.append({"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": fabric.tiers[-1]})
    return _object(_KOORDINATOR, name, {"networkTopologySpec": layers})


def _object(kind: tuple[str, str, str, str], name: str, spec: Mapping[str, Any]) -> Object:
    group, version, singular, _ = kind
    return {
        "apiVersion": f"{group}/{version}",
        "kind": singular,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def _definition(group: str, version: str, kind: str, plural: str) -> Object:
    """Return a definition of *kind* that keeps every field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [served],
        },
    }
