"""Domains and nodes stand in the order in which people count."""

from arena_topo.model.cluster.snapshot import Fabric, GpuNode, Snapshot
from arena_topo.model.notation.words import natural_sort_key
from arena_topo.output.topology.domains import cluster_domains


def test_numbers_are_counted_and_not_spelled() -> None:
    """gpu-9 comes before gpu-10, in the order of their words."""
    names = ["gpu-10", "gpu-9", "gpu-1", "a-2-10", "a-2-9", "gpu", ""]

    assert ["", "a-2-9", "a-2-10", "gpu", "gpu-1", "gpu-9", "gpu-10"] == sorted(names, key=natural_sort_key)


def test_the_tree_is_in_that_order() -> None:
    """Domains and the nodes in them."""
    names = [f"gpu-{at}" for at in (10, 9, 2)]
    nodes = tuple(GpuNode(name, allocatable={"nvidia.com/gpu": 8}) for name in names)
    paths = {"gpu-10": ("rack-10",), "gpu-9": ("rack-9",), "gpu-2": ("rack-9",)}
    tree = cluster_domains(Snapshot(nodes, Fabric(("rack",), paths)))

    assert ["rack-9", "rack-10"] == [domain.name for domain in tree.domains]
    assert ["gpu-2", "gpu-9"] == [node.name for node in tree.domains[0].nodes]
