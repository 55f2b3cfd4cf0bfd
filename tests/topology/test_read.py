"""The fabric: given levels first, then topology objects, then labels."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Fabric, GpuNode
from arena_topo.topology.fabric import read_fabric
from tests.topology.fabrics import CUSTOM, LEAVES, LEVELS, ZONE, fabric, network_topology


@pytest.mark.parametrize(
    "api", ["kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1alpha1", "kai.scheduler/v1alpha1"]
)
def test_a_topology_object_declares_the_tiers(api: str) -> None:
    """The admin's own keys, coarse to fine; the host itself is no tier."""
    topology = {
        "apiVersion": api,
        "kind": "Topology",
        "metadata": {"name": "default"},
        "spec": {"levels": LEVELS},
    }
    result = fabric(CUSTOM, topology)

    assert result == Fabric(
        ("example.com/row", "example.com/rack"),
        {"a": ("x", "r1"), "b": ("x", "r1"), "c": ("y", "r2")},
        "Topology default",
    )


def test_koordinators_layers_are_ordered_by_their_parents() -> None:
    """The node and the cluster are no tiers; of several keys the first that a node has counts."""
    result = fabric(
        CUSTOM, network_topology(NodeTopologyLayer="rack", rack="row", row="ClusterTopologyLayer")
    )

    assert result.tiers == ("row", "rack")
    assert result.paths["c"] == ("y", "r2")


def test_layers_in_a_circle_are_left_out_with_a_warning() -> None:
    """The labels then decide."""
    warnings: list[str] = []
    result = read_fabric(CUSTOM, [network_topology(rack="row", row="rack")], (), warnings)

    assert result.tiers == (ZONE,)
    assert warnings[0].startswith(
        "ClusterNetworkTopology default: spec.networkTopologySpec has a cycle through"
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


def test_given_levels_win_over_everything() -> None:
    """A node without one of them is in no domain there."""
    nodes = (*CUSTOM, GpuNode("d", labels={"example.com/row": "y"}))
    result = fabric(nodes, *LEAVES, levels=("example.com/row", "example.com/rack"))

    assert (result.source, result.paths["d"]) == ("--topology-levels", ("y", ""))


def test_a_given_level_that_no_node_has_is_an_error() -> None:
    """A misspelt key must not silently mean: no fabric."""
    with pytest.raises(UsageError, match=r"no node has the label example\.com/rak"):
        read_fabric(CUSTOM, [], ("example.com/rak",), [])
