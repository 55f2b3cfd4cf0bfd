"""The cluster's tree and a node's details, plain and in colour."""

import re
from dataclasses import replace

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster.hardware import ShareMode
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.output.topology.domains import choose, cluster_domains
from arena_topo.output.topology.node import node_view
from arena_topo.output.topology.tree import MOST_NODES, cluster_tree
from tests.output.clusters import machine, small_cluster

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_the_tree_shows_domains_and_nodes_with_their_free_gpus() -> None:
    """Counts of domains leave out nodes that take no pods now; a node in no rack is in none."""
    expected = """\
prod  4 nodes, 14 of 28 GPUs free  (Topology default)
├── zone a           5/16 free  2 nodes
│   ├── rack r1      5/8 free  1 node
│   │   └── v100-0   5/8 free  ■□□■□■□□  8xV100-cubemesh
│   └── rack r2      0/8 free  1 node
│       └── h200-0   8/8 free  □□□□□□□□  8xH200-nvswitch  (cordoned)
└── zone b           9/12 free  2 nodes
    ├── in no rack   5/8 free  1 node
    │   └── guess-0  5/8 free  ■■■□□□□□  8xV100-cubemesh  (links assumed, used GPUs not known)
    └── rack r9      4/4 free  1 node
        └── l40s-0   4/4 free  □□□□  4xL40S-pcie  (taint maintenance)

■ used  □ free
warning: Node x: broken; skipped
"""

    assert expected == cluster_tree(small_cluster())


def test_colour_changes_nothing_but_the_colour() -> None:
    """Without its codes the coloured tree is the plain one."""
    coloured = cluster_tree(small_cluster(), colour=True)

    assert "\x1b[" in coloured
    assert cluster_tree(small_cluster()) == _ANSI.sub("", coloured)


def test_a_large_cluster_is_shown_down_to_its_domains() -> None:
    """Thousands of lines help nobody."""
    node = machine("v100-0")
    nodes = tuple(replace(node, name=f"n{index:04}") for index in range(MOST_NODES + 1))
    small = small_cluster()
    fabric = replace(small.fabric, paths={each.name: ("a", "r1") for each in nodes})

    assert cluster_tree(replace(small, nodes=nodes, fabric=fabric, warnings=())).splitlines()[1:3] == [
        "└── zone a       1608/1608 free  201 nodes",
        "    └── rack r1  1608/1608 free  201 nodes",
    ]


def test_a_cluster_without_a_fabric_is_a_list_of_nodes() -> None:
    """What is not published is said."""
    tree = cluster_tree(Snapshot((machine("v100-0"),)))

    assert tree.startswith("cluster  1 nodes, 8 of 8 GPUs free  (no fabric is published)\n└── v100-0")


def test_an_empty_cluster_has_a_tree_too() -> None:
    """One line says that there is nothing."""
    assert cluster_tree(Snapshot()) == "cluster  0 nodes, 0 of 0 GPUs free  (no fabric is published)\n"


def test_a_node_shows_links_gpus_nics_and_sources() -> None:
    """The matrix, what the classes mean, who holds which GPU."""
    view = node_view(machine("v100-0", vgg16=(0, 3)))

    assert view.startswith("v100-0  8xV100-cubemesh, 6 of 8 GPUs free\n\nLINKS\n      GPU0  GPU1")
    assert "\nGPU5  SYS   NV2   SYS   SYS   NV1   X     NV2   NV1\n" in view
    assert "\nNV2  NVLinks between the two GPUs  50 GB/s\n" in view
    assert "\n3    used   team-a/vgg16-worker-0 (vgg16)  0     mlx5_2  16 GiB  Tesla V100-SXM2-16GB\n" in view
    assert "\nNIC     NUMA  GB/S\nmlx5_2  0\n" in view
    assert "links  30s  Node v100-0 annotation arena-topo.dev/gpu-topology\n" in view


def test_what_is_not_known_is_said() -> None:
    """Assumed links, pods whose GPUs nobody tells, unhealthy and shared GPUs."""
    guessed = small_cluster().nodes[3]
    gpus = (
        replace(guessed.gpus[0], healthy=False),
        replace(guessed.gpus[1], mode=ShareMode.SHARED),
        *guessed.gpus[2:],
    )
    view = node_view(replace(guessed, gpus=gpus))

    assert "(links assumed, used GPUs not known)" in view.splitlines()[0]
    assert "label nvidia.com/gpu.product, assumed" in view
    assert "default/other holds 3, which ones is not known" in view
    assert "\n0    unhealthy" in view
    assert "\n1    shared" in view
    assert "\n2    ?" in view


def test_a_node_in_colour_says_the_same() -> None:
    """Only codes and trailing spaces differ."""
    node = machine("h200-0", "h200", llama=(0, 1))
    stripped = [line.rstrip() for line in _ANSI.sub("", node_view(node, colour=True)).splitlines()]

    assert node_view(node).splitlines() == stripped


def test_a_node_without_gpus_has_one_line() -> None:
    """There is nothing to show."""
    assert (
        node_view(small_cluster().nodes[4]) == "cpu-0  no GPUs known, 0 of 0 GPUs free  (links not known)\n"
    )


def test_nodes_are_chosen_by_name() -> None:
    """In the order given, each once; a name that no node has is an error."""
    snapshot = small_cluster()

    assert ["l40s-0", "v100-0"] == [
        node.name for node in choose(snapshot, ["l40s-0", "v100-0", "l40s-0"]).nodes
    ]
    assert snapshot is choose(snapshot, [])
    with pytest.raises(UsageError, match="there is no node gpu-9"):
        choose(snapshot, ["gpu-9"])


def test_domains_count_what_is_below_them() -> None:
    """Sums over all nodes, free ones only where pods are taken."""
    root = cluster_domains(small_cluster())

    assert (28, 14) == (root.total, root.free)
    assert [("a", 16), ("b", 12)] == [(domain.name, domain.total) for domain in root.domains]
