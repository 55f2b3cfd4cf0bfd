"""NodeResourceTopology zones."""

from typing import Any

import pytest

from arena_topo.topology.raw_objects import Malformed
from arena_topo.topology.sources.node_resource_topology import read_zones
from tests.topology.objects import meta


def zones(**counts: Any) -> dict[str, Any]:
    """Return a NodeResourceTopology whose zones have *counts* GPUs."""
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": meta("gpu-1"),
        "topologyPolicies": ["SingleNUMANodeContainerLevel"],
        "zones": [
            {
                "name": name.replace("_", "-"),
                "type": "Node",
                "resources": [
                    {"name": "cpu", "capacity": "48", "allocatable": "47", "available": "40"},
                    {
                        "name": "nvidia.com/gpu",
                        "capacity": str(count),
                        "allocatable": str(count),
                        "available": "1",
                    },
                ],
            }
            for name, count in counts.items()
        ],
    }


def test_zones_give_numa_nodes_in_their_order() -> None:
    """Which GPU is on which of several zones is assumed, and said."""
    (reading,) = read_zones(zones(node_1=2, node_0=2), "nvidia.com/gpu")

    assert [0, 0, 1, 1] == [gpu.numa for gpu in reading.gpus]
    assert reading.assumptions == ("GPUs are numbered in the order of the NUMA nodes",)


def test_one_zone_with_all_gpus_leaves_nothing_to_assume() -> None:
    """Empty zones do not matter."""
    (reading,) = read_zones(zones(node_0=0, node_1=4), "nvidia.com/gpu")

    assert ([1, 1, 1, 1], ()) == ([gpu.numa for gpu in reading.gpus], reading.assumptions)


def test_zones_without_the_resource_tell_nothing() -> None:
    """A node without such GPUs has no reading."""
    assert [] == list(read_zones(zones(node_0=4), "amd.com/gpu"))


def test_a_capacity_that_is_no_quantity_is_refused() -> None:
    """Zone and resource are named."""
    with pytest.raises(Malformed, match=r"zones node-0 nvidia\.com/gpu: capacity: 'all'"):
        list(read_zones(zones(node_0="all"), "nvidia.com/gpu"))
