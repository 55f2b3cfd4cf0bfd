"""The fabric of an imported cluster: the objects and labels that declare it.

Kinds: kueue.x-k8s.io Topology, scheduling.koordinator.sh ClusterNetworkTopology, topology.volcano.sh HyperNode.
"""

from collections.abc import Iterator

from arena_topo.model.cluster.snapshot import Fabric
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.objects import Object
from arena_topo.sandbox.keys import TIER_PREFIX

_NETWORK_TOPOLOGY = "ClusterNetworkTopology"
_KUEUE = ("kueue.x-k8s.io", "v1beta2", "Topology", "topologies")
_KOORDINATOR = ("scheduling.koordinator.sh", "v1alpha1", _NETWORK_TOPOLOGY, "clusternetworktopologies")
_VOLCANO = ("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes")


def tier_labels(fabric: Fabric, node: str) -> dict[str, str]:
    """Return the labels that *node* needs in a fabric whose own label keys are not known."""
    # A ClusterNetworkTopology names tiers, not label keys; other sources need no label, or the node has its own.
    if not fabric.source.startswith(_NETWORK_TOPOLOGY) or node not in fabric.paths:
        return {}
    tiers = zip(fabric.tiers, fabric.paths[node], strict=True)
    return {f"{TIER_PREFIX}{tier}": domain.rpartition("/")[2] for tier, domain in tiers if domain}


def fabric_objects(fabric: Fabric) -> list[Object]:
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
