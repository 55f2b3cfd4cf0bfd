"""The cluster's tree, plain and in colour."""

import re
from dataclasses import replace

from arena_topo.model.cluster.snapshot import Snapshot
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


def test_a_narrow_terminal_has_the_names_and_the_marks() -> None:
    """Machines go, remarks stand below their nodes, and names are shortened in their middle."""
    cluster = small_cluster()
    renamed = replace(cluster.nodes[1], name="a-node-with-a-name-that-nobody-chose-0")
    paths = {**cluster.fabric.paths, renamed.name: cluster.fabric.paths[cluster.nodes[1].name]}
    nodes = (cluster.nodes[0], renamed, *cluster.nodes[2:])
    tree = cluster_tree(replace(cluster, nodes=nodes, fabric=replace(cluster.fabric, paths=paths)), width=46)

    assert [] == [line for line in tree.splitlines()[:-2] if len(line) > 46]
    assert "fabric: Topology default\n├── zone a" in tree
    assert "links assumed, used GPUs not known" in [line.strip(" │") for line in tree.splitlines()]
    assert "cubemesh" not in tree
    assert tree.splitlines()[-2] == "hidden: machines, counts of nodes; a wider terminal shows them"


def test_a_large_cluster_is_shown_down_to_its_domains() -> None:
    """Thousands of lines help nobody."""
    node = machine("v100-0")
    nodes = tuple(replace(node, name=f"n{index:04}") for index in range(MOST_NODES + 1))
    small = small_cluster()
    fabric = replace(small.fabric, paths={node.name: ("a", "r1") for node in nodes})

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
