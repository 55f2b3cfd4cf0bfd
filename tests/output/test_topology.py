"""The tree of a cluster and the details of a node, as they were looked at, plain and in colour."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import (
    AlignmentPolicy,
    AlignmentScope,
    Fabric,
    GpuNode,
    NumaZone,
    NumaZones,
    ShareMode,
    Snapshot,
    Taint,
)
from arena_topo.output.render import render_topology
from arena_topo.output.topology import MOST_NODES, cluster_domains, cluster_tree, node_view, select_nodes
from tests.output.clusters import machine, small_cluster
from tests.output.golden import golden, too_wide, uncoloured

CLUSTER = small_cluster()
BUSY, _, _, GUESSED, CPU = CLUSTER.nodes


def with_long_name() -> Snapshot:
    """Return the cluster with a node whose name leaves no room."""
    node = replace(CLUSTER.nodes[1], name="a-node-with-a-name-that-nobody-chose-0")
    paths = {**CLUSTER.fabric.paths, node.name: CLUSTER.fabric.paths["h200-0"]}
    nodes = (BUSY, node, *CLUSTER.nodes[2:])
    return replace(CLUSTER, nodes=nodes, fabric=replace(CLUSTER.fabric, paths=paths))


def large() -> Snapshot:
    """Return one node more than are listed."""
    nodes = tuple(replace(machine("v100-0"), name=f"n{index:04}") for index in range(MOST_NODES + 1))
    fabric = replace(CLUSTER.fabric, paths={node.name: ("a", "r1") for node in nodes})
    return replace(CLUSTER, nodes=nodes, fabric=fabric, warnings=())


def spoiled() -> GpuNode:
    """Return a node of assumed links with GPUs that are broken, shared and of unknown use."""
    gpus = (replace(GUESSED.gpus[0], healthy=False), replace(GUESSED.gpus[1], mode=ShareMode.SHARED))
    return replace(GUESSED, gpus=(*gpus, *GUESSED.gpus[2:]))


def with_zones(policy: AlignmentPolicy | None) -> GpuNode:
    """Return a node that tells what is free on its NUMA node, and the *policy* of its kubelet."""
    amounts = {"memory": 2**38, "nvidia.com/gpu": 4, "cpu": 48_000}
    zone = NumaZone(0, amounts, amounts, {**amounts, "cpu": 8000, "nvidia.com/gpu": 1})
    return replace(machine("v100-0"), zones=NumaZones((zone,), policy, AlignmentScope.POD))


VIEWS: dict[str, Callable[[bool], str]] = {
    "tree": lambda colour: cluster_tree(CLUSTER, colour=colour),
    "tree-46": lambda colour: cluster_tree(with_long_name(), colour=colour, width=46),
    "tree-large": lambda colour: cluster_tree(large(), colour=colour),
    "tree-flat": lambda colour: cluster_tree(Snapshot((machine("v100-0"),)), colour=colour),
    "tree-empty": lambda colour: cluster_tree(Snapshot(), colour=colour),
    "node": lambda colour: node_view(machine("v100-0", vgg16=(0, 3)), colour=colour),
    "node-60": lambda colour: node_view(machine("v100-0", vgg16=(0, 3)), colour=colour, width=60),
    "node-h200": lambda colour: node_view(machine("h200-0", "h200", llama=(0, 1)), colour=colour),
    "node-spoiled": lambda colour: node_view(spoiled(), colour=colour),
    "node-cpu": lambda colour: node_view(CPU, colour=colour),
    "node-single-numa": lambda colour: node_view(with_zones(AlignmentPolicy.SINGLE_NUMA_NODE), colour=colour),
    "node-best-effort": lambda colour: node_view(with_zones(AlignmentPolicy.BEST_EFFORT), colour=colour),
    "node-unknown-numa": lambda colour: node_view(with_zones(None), colour=colour),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_as_it_was_looked_at(name: str) -> None:
    """With what is assumed, shared, broken or not known, and the same words in colour."""
    text = VIEWS[name](False)

    assert golden(f"topology/{name}.txt", text) == text
    assert uncoloured(text) == uncoloured(VIEWS[name](True))


def test_narrow_views_fit() -> None:
    """Names lose their middles, columns go and are named, and
    sources continue below themselves; links stay whole.
    """
    node = golden("topology/node-60.txt", VIEWS["node-60"](False))

    assert [] == too_wide(golden("topology/tree-46.txt", VIEWS["tree-46"](False)), 46)
    assert [] == too_wide(node.partition("\nGPU  STATE")[2], 60)


# The tree of domains: its order, its sums, and the choice of nodes.


def test_domains_and_nodes_are_in_the_order_in_which_people_count() -> None:
    """gpu-9 comes before gpu-10."""
    names = [f"gpu-{i}" for i in (10, 9, 2)]
    nodes = tuple(GpuNode(name, allocatable={"nvidia.com/gpu": 8}) for name in names)
    paths = {"gpu-10": ("rack-10",), "gpu-9": ("rack-9",), "gpu-2": ("rack-9",)}
    tree = cluster_domains(Snapshot(nodes, Fabric(("rack",), paths)))

    assert ["rack-9", "rack-10"] == [domain.name for domain in tree.domains]
    assert ["gpu-2", "gpu-9"] == [node.name for node in tree.domains[0].nodes]


def test_a_long_remark_hides_no_machine() -> None:
    """It stands below its node, where the lines without it
    have room; a narrower terminal hides the machines.
    """
    tainted = replace(machine("a0"), taints=(Taint("example.com/" + "x" * 60, "", "NoSchedule"),))
    snapshot = Snapshot((tainted, machine("a1")))
    medium, narrow = (cluster_tree(snapshot, width=width) for width in (60, 30))

    assert 2 == medium.count("8xV100-cubemesh")
    assert "hidden" not in medium
    assert "│   taint example.com/" in medium
    assert (0, True) == (narrow.count("8xV100-cubemesh"), "hidden: machines" in narrow)


def test_nodes_are_chosen_by_name() -> None:
    """In the order given, each once; a name that no node has is an error."""
    snapshot = small_cluster()

    assert ["l40s-0", "v100-0"] == [
        node.name for node in select_nodes(snapshot, ["l40s-0", "v100-0", "l40s-0"]).nodes
    ]
    assert snapshot is select_nodes(snapshot, [])
    with pytest.raises(UsageError, match="there is no node or domain gpu-9"):
        select_nodes(snapshot, ["gpu-9"])


def test_a_domain_stands_for_its_nodes() -> None:
    """A rack is drawn as the cluster is; a node of the same name comes first."""
    nodes = tuple(GpuNode(name, allocatable={"nvidia.com/gpu": 8}) for name in ("a", "b", "c"))
    fabric = Fabric(("rack",), {"a": ("r1",), "b": ("r1",), "c": ("a",)})
    snapshot = Snapshot(nodes, fabric)

    assert ["a", "b"] == [node.name for node in select_nodes(snapshot, ["r1"]).nodes]
    text = render_topology(snapshot, ["r1"])
    assert "rack r1" in text
    assert "c" not in text.split()
    assert "a" == select_nodes(snapshot, ["a"]).nodes[0].name


def test_domains_count_what_is_below_them() -> None:
    """Sums over all nodes, free ones only where pods are taken."""
    root = cluster_domains(small_cluster())

    assert (28, 14) == (root.total, root.free)
    assert [("a", 16), ("b", 12)] == [(domain.name, domain.total) for domain in root.domains]
