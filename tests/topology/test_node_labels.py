"""Tiers found in node labels by how they nest."""

import pytest

from arena_topo.model.cluster import GpuNode
from arena_topo.model.keys import CLIQUE
from arena_topo.topology.fabric import read_fabric
from tests.topology.fabrics import RACK, ZONE, fabric, fleet


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
    result = fabric(RACKS)

    assert result.tiers == ("fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0")
    assert result.paths["c"] == ("s1", "r2")
    assert result.source == "node labels (topograph)"


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
def test_every_known_source_makes_tiers(keys: tuple[str, str]) -> None:
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
    result = read_fabric(nodes, [], (), warnings)

    assert result.tiers == (ZONE,)
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


def test_nodes_outside_of_nvlink_racks_are_in_no_clique() -> None:
    """A cluster of NVL72 racks and of other machines: the
    clique is a tier, and no two of the others share one.
    """
    nodes = fleet(
        a={ZONE: "z", CLIQUE: "c.1"},
        b={ZONE: "z", CLIQUE: "c.1"},
        c={ZONE: "z"},
        d={ZONE: "y"},
        e={ZONE: "y"},
    )
    warnings: list[str] = []
    found = read_fabric(nodes, [], (), warnings)

    assert (ZONE, CLIQUE) == found.tiers
    assert (("z", "c.1"), ("z", "")) == (found.paths["b"], found.paths["c"])
    assert not warnings
