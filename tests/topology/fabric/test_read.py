"""The fabric: declared by topology objects, else found in labels by how they nest."""

from typing import Any

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster.snapshot import Fabric, GpuNode
from arena_topo.topology.fabric.read import read_fabric

ZONE, RACK, REGION = (f"topology.kubernetes.io/{level}" for level in ("zone", "rack", "region"))


def fleet(**labels: dict[str, str]) -> tuple[GpuNode, ...]:
    """Return nodes by name with their labels."""
    return tuple(GpuNode(name, labels=each) for name, each in labels.items())


def fabric(nodes: tuple[GpuNode, ...], *objects: dict[str, Any], levels: tuple[str, ...] = ()) -> Fabric:
    """Return the fabric, which must leave no warning."""
    warnings: list[str] = []
    found = read_fabric(nodes, objects, levels, warnings)
    assert warnings == []
    return found


def tiers_of(rack: str, spine: str, prefix: str = "fabric.topograph.run/tier-") -> dict[str, str]:
    """Return topograph's labels of a node."""
    return {f"{prefix}0": rack, f"{prefix}1": spine}


RACKS = fleet(
    a=tiers_of("r1", "s1"),
    b=tiers_of("r1", "s1"),
    c=tiers_of("r2", "s1"),
    d=tiers_of("r3", "s2"),
    e=tiers_of("r3", "s2"),
)


def test_labels_are_ordered_by_how_they_nest() -> None:
    """Topograph counts tiers from the closest, AWS from the farthest; the data decides."""
    found = fabric(RACKS)

    assert found.tiers == ("fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0")
    assert found.paths["c"] == ("s1", "r2")
    assert found.source == "node labels (topograph)"


@pytest.mark.parametrize(
    "keys",
    [
        ("network.topology.nvidia.com/spine", "network.topology.nvidia.com/block"),
        ("network.topology.nvidia.com/spine", "network.topology.nvidia.com/leaf"),
        ("topology.k8s.aws/network-node-layer-1", "topology.k8s.aws/network-node-layer-3"),
        ("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"),
        ("oci.oraclecloud.com/rdma.hpc_island_id", "oci.oraclecloud.com/rdma.local_block_id"),
        ("ib.coreweave.cloud/superpod", "ib.coreweave.cloud/leafgroup"),
        ("alibabacloud.com/point-of-delivery", "alibabacloud.com/asw-id"),
        (ZONE, RACK),
    ],
    ids=lambda keys: keys[1],
)
def test_every_known_source_makes_a_ladder(keys: tuple[str, str]) -> None:
    """Coarse before fine, whatever the source calls them."""
    nodes = tuple(
        GpuNode(node.name, labels={keys[0]: path[0], keys[1]: path[1]})
        for node in RACKS
        for path in [fabric(RACKS).paths[node.name]]
    )

    assert keys == fabric(nodes).tiers


def test_sources_mix_where_they_nest() -> None:
    """A rack label of one source fits below a zone of another."""
    nodes = fleet(
        a={ZONE: "z1", "fabric.topograph.run/tier-0": "r1"},
        b={ZONE: "z1", "fabric.topograph.run/tier-0": "r1"},
        c={ZONE: "z1", "fabric.topograph.run/tier-0": "r2"},
        d={ZONE: "z2", "fabric.topograph.run/tier-0": "r3"},
    )

    assert fabric(nodes).tiers == (ZONE, "fabric.topograph.run/tier-0")


def test_racks_of_one_name_in_two_zones_are_two_racks() -> None:
    """The domain then carries its parent's name."""
    nodes = fleet(
        a={ZONE: "z1", RACK: "r1"},
        b={ZONE: "z1", RACK: "r2"},
        c={ZONE: "z2", RACK: "r1"},
        d={ZONE: "z2", RACK: "r2"},
    )

    assert {"a": ("z1", "z1/r1"), "b": ("z1", "z1/r2"), "c": ("z2", "z2/r1"), "d": ("z2", "z2/r2")} == fabric(
        nodes
    ).paths


def test_a_label_that_does_not_nest_is_left_out_with_a_warning() -> None:
    """Two sources that cut the cluster across each other cannot both be tiers."""
    other = "cloud.google.com/gce-topology-block"
    nodes = fleet(
        a={ZONE: "z1", other: "b1"},
        b={ZONE: "z1", other: "b2"},
        c={ZONE: "z2", other: "b1"},
        d={ZONE: "z2", other: "b3"},
    )
    warnings: list[str] = []
    found = read_fabric(nodes, [], (), warnings)

    assert found.tiers == (ZONE,)
    assert warnings == [f"label {other} does not nest in {ZONE}; it is not used as a tier"]


def test_a_label_that_some_nodes_lack_is_left_out_with_a_warning() -> None:
    """A tier that does not hold every node would put the others nowhere."""
    nodes = fleet(a={ZONE: "z1", RACK: "r1"}, b={ZONE: "z1"}, c={ZONE: "z1", RACK: "r1"})
    warnings: list[str] = []

    assert read_fabric(nodes, [], (), warnings).tiers == (ZONE,)
    assert warnings == [f"label {RACK} is on 2 of 3 nodes; it is not used as a tier"]


@pytest.mark.parametrize("value", ["none", "unknown", "Not-Available", ""])
def test_values_that_mean_none_are_no_domains(value: str) -> None:
    """OCI writes such words where a node is in no block."""
    key = "oci.oraclecloud.com/rdma.local_block_id"

    assert fabric(fleet(a={key: value}, b={key: value})).tiers == ()


def test_a_label_that_names_the_node_is_no_tier() -> None:
    """A host id is different on every node."""
    key = "cloud.google.com/gce-topology-host"

    assert fabric(fleet(a={ZONE: "z", key: "h1"}, b={ZONE: "z", key: "h2"})).tiers == (ZONE,)


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


@pytest.mark.parametrize(
    "api", ["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1alpha1", "kai.scheduler/v1alpha1"]
)
def test_a_topology_object_declares_the_ladder(api: str) -> None:
    """The admin's own keys, coarse to fine; the host itself is no tier."""
    topology = {
        "apiVersion": api,
        "kind": "Topology",
        "metadata": {"name": "default"},
        "spec": {"levels": LEVELS},
    }
    found = fabric(CUSTOM, topology)

    assert found == Fabric(
        ("example.com/row", "example.com/rack"),
        {"a": ("x", "r1"), "b": ("x", "r1"), "c": ("y", "r2")},
        "Topology default",
    )


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


def test_koordinators_layers_are_ordered_by_their_parents() -> None:
    """The node and the cluster are no tiers; of several keys the first that a node has counts."""
    found = fabric(CUSTOM, network_topology(NodeTopologyLayer="rack", rack="row", row="ClusterTopologyLayer"))

    assert found.tiers == ("row", "rack")
    assert found.paths["c"] == ("y", "r2")


def test_layers_in_a_circle_are_left_out_with_a_warning() -> None:
    """The labels then decide."""
    warnings: list[str] = []
    found = read_fabric(CUSTOM, [network_topology(rack="row", row="rack")], (), warnings)

    assert found.tiers == (ZONE,)
    assert warnings[0].startswith(
        "ClusterNetworkTopology default: spec.networkTopologySpec has a circle through"
    )


def test_of_two_objects_the_one_that_holds_more_nodes_counts() -> None:
    """The other one is named."""
    partly = {
        "kind": "Topology",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": {"name": "cpu"},
        "spec": {"levels": [{"nodeLabel": "no"}]},
    }
    whole = {**partly, "metadata": {"name": "gpu"}, "spec": {"levels": LEVELS}}
    warnings: list[str] = []

    assert read_fabric(CUSTOM, [partly, whole], (), warnings).source == "Topology gpu"
    assert warnings == ["the fabric is read from Topology gpu; not used: Topology cpu"]


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


def test_hyper_nodes_make_a_tree() -> None:
    """Lower tiers are closer; members are chosen by name, label or pattern."""
    spine = hyper_node("spine", 2, "HyperNode", {"regexMatch": {"pattern": "^leaf-"}})
    found = fabric(CUSTOM, spine, *LEAVES)

    assert found == Fabric(
        ("tier-2", "leaf"),
        {"a": ("spine", "leaf-1"), "b": ("spine", "leaf-1"), "c": ("spine", "leaf-2")},
        "HyperNodes",
    )


def test_a_node_in_two_hyper_nodes_of_a_tier_is_warned_of() -> None:
    """It counts to the first by name."""
    warnings: list[str] = []
    found = read_fabric(CUSTOM, [*LEAVES, hyper_node("leaf-9", 1, "Node", exact("a"))], (), warnings)

    assert found.paths["a"] == ("leaf-1",)
    assert warnings == ["node a is in HyperNodes leaf-1 and leaf-9 of tier 1; the former counts"]


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ({"regexMatch": {"pattern": "("}}, "regexMatch"),
        ({}, "selects nothing"),
        ({"exactMatch": {}}, "name is missing"),
    ],
)
def test_a_broken_hyper_node_is_left_out_with_a_warning(selector: dict[str, Any], reason: str) -> None:
    """The others still make the tree."""
    warnings: list[str] = []
    found = read_fabric(CUSTOM, [*LEAVES, hyper_node("bad", 1, "Node", selector)], (), warnings)

    assert found.paths["a"] == ("leaf-1",)
    assert len(warnings) == 1
    assert warnings[0].startswith("HyperNode bad: ")
    assert reason in warnings[0]


def test_given_levels_win_over_everything() -> None:
    """A node without one of them is in no domain there."""
    nodes = (*CUSTOM, GpuNode("d", labels={"example.com/row": "y"}))
    found = fabric(nodes, *LEAVES, levels=("example.com/row", "example.com/rack"))

    assert (found.source, found.paths["d"]) == ("--topology-levels", ("y", ""))


def test_a_given_level_that_no_node_has_is_an_error() -> None:
    """A misspelt key must not silently mean: no fabric."""
    with pytest.raises(UsageError, match=r"no node has the label example\.com/rak"):
        read_fabric(CUSTOM, [], ("example.com/rak",), [])
