"""The tree of domains: its order, its sums, and the choice of nodes."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Fabric, GpuNode, Snapshot
from arena_topo.output.topology import cluster_domains, select_nodes
from tests.output.clusters import small_cluster


def test_domains_and_nodes_are_in_the_order_in_which_people_count() -> None:
    """gpu-9 comes before gpu-10."""
    names = [f"gpu-{i}" for i in (10, 9, 2)]
    nodes = tuple(GpuNode(name, allocatable={"nvidia.com/gpu": 8}) for name in names)
    paths = {"gpu-10": ("rack-10",), "gpu-9": ("rack-9",), "gpu-2": ("rack-9",)}
    tree = cluster_domains(Snapshot(nodes, Fabric(("rack",), paths)))

    assert ["rack-9", "rack-10"] == [domain.name for domain in tree.domains]
    assert ["gpu-2", "gpu-9"] == [node.name for node in tree.domains[0].nodes]


def test_nodes_are_chosen_by_name() -> None:
    """In the order given, each once; a name that no node has is an error."""
    snapshot = small_cluster()

    assert ["l40s-0", "v100-0"] == [
        node.name for node in select_nodes(snapshot, ["l40s-0", "v100-0", "l40s-0"]).nodes
    ]
    assert snapshot is select_nodes(snapshot, [])
    with pytest.raises(UsageError, match="there is no node gpu-9"):
        select_nodes(snapshot, ["gpu-9"])


def test_domains_count_what_is_below_them() -> None:
    """Sums over all nodes, free ones only where pods are taken."""
    root = cluster_domains(small_cluster())

    assert (28, 14) == (root.total, root.free)
    assert [("a", 16), ("b", 12)] == [(domain.name, domain.total) for domain in root.domains]
