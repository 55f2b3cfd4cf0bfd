"""NodeResourceTopology zones."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import AlignmentPolicy, AlignmentScope, NumaZones
from arena_topo.topology.objects import read_each
from arena_topo.topology.sources.node_resource_topology import read_zones
from tests.examples import examples
from tests.topology.clusters import PRODUCT, cluster, one
from tests.topology.objects import meta, node, pod

CONTAINER, POD = AlignmentScope.CONTAINER, AlignmentScope.POD


def zone(name: str, gpus: Any, available: str = "1") -> dict[str, Any]:
    """Return a zone as NFD's topology updater writes it: amounts as strings, and costs to all zones."""
    return {
        "name": name,
        "type": "Node",
        "costs": [{"name": "node-0", "value": 10}, {"name": "node-1", "value": 21}],
        "resources": [
            {"name": "cpu", "capacity": "48", "allocatable": "47", "available": "40"},
            {"name": "memory", "capacity": "403Gi", "allocatable": "400Gi", "available": "400Gi"},
            {
                "name": "nvidia.com/gpu",
                "capacity": str(gpus),
                "allocatable": str(gpus),
                "available": available,
            },
            {"name": "rdma/hca", "capacity": "2", "allocatable": "2", "available": "2"},
        ],
    }


def zones(**counts: Any) -> dict[str, Any]:
    """Return a NodeResourceTopology whose zones have *counts* GPUs."""
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": meta("gpu-1"),
        "topologyPolicies": ["SingleNUMANodeContainerLevel"],
        "attributes": [
            {"name": "topologyManagerPolicy", "value": "single-numa-node"},
            {"name": "topologyManagerScope", "value": "container"},
            {"name": "nodeTopologyPodsFingerprint", "value": "pfp0v0013bbb1fbb1dd30d2d"},
        ],
        "zones": [zone(name.replace("_", "-"), count) for name, count in counts.items()],
    }


def found(raw: Mapping[str, Any]) -> NumaZones:
    """Return the NUMA nodes in *raw*."""
    (reading,) = read_zones(raw, "nvidia.com/gpu")
    assert reading.zones is not None
    return reading.zones


def test_zones_give_numa_nodes_in_their_order() -> None:
    """Which GPU is on which of several zones is assumed, and said."""
    (reading,) = read_zones(zones(node_1=2, node_0=2), "nvidia.com/gpu")

    assert [0, 0, 1, 1] == [gpu.numa for gpu in reading.gpus]
    assert reading.assumptions == ("GPUs are numbered in the order of the NUMA nodes",)


def test_one_zone_with_all_gpus_leaves_nothing_to_assume() -> None:
    """Empty zones do not matter."""
    (reading,) = read_zones(zones(node_0=0, node_1=4), "nvidia.com/gpu")

    assert ([1, 1, 1, 1], ()) == ([gpu.numa for gpu in reading.gpus], reading.assumptions)


def test_zones_without_the_resource_still_tell_cpus_and_the_policy() -> None:
    """The device plugin of such GPUs does not tie them to NUMA nodes."""
    (reading,) = read_zones(zones(node_0=4), "amd.com/gpu")

    assert () == reading.gpus
    assert reading.zones == found(zones(node_0=4))


def test_zones_count_what_is_there_and_what_is_free() -> None:
    """Amounts of every resource, cpu in millicores."""
    first, second = found(zones(node_1=4, node_0=2)).zones

    assert (0, 1) == (first.number, second.number)
    assert (48_000, 47_000, 40_000) == tuple(
        amounts["cpu"] for amounts in (first.capacity, first.allocatable, first.available)
    )
    assert (4, 1, 2) == (
        second.capacity["nvidia.com/gpu"],
        second.available["nvidia.com/gpu"],
        second.available["rdma/hca"],
    )


def test_an_amount_that_is_not_there_is_that_of_the_amount_before() -> None:
    """Old publishers know capacity and allocatable alone."""
    raw = zones(node_0=4)
    raw["zones"][0]["resources"] = [{"name": "nvidia.com/gpu", "capacity": "4", "allocatable": "3"}]

    assert {"nvidia.com/gpu": 3} == found(raw).zones[0].available


@pytest.mark.parametrize(
    ("words", "attributes", "expected"),
    [
        (["SingleNUMANodePodLevel"], {}, (AlignmentPolicy.SINGLE_NUMA_NODE, POD)),
        (["Restricted"], {}, (AlignmentPolicy.RESTRICTED, CONTAINER)),
        (["BestEffortPodLevel", "None"], {}, (AlignmentPolicy.BEST_EFFORT, POD)),
        (["None"], {}, (AlignmentPolicy.NONE, CONTAINER)),
        (None, {}, (None, CONTAINER)),
        (["Strict"], {}, (None, CONTAINER)),
        ([["None"]], {}, (None, CONTAINER)),
        (
            ["None"],
            {"topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"},
            (AlignmentPolicy.RESTRICTED, POD),
        ),
        (
            ["RestrictedPodLevel"],
            {"topologyManagerPolicy": "strict", "topologyManagerScope": None},
            (AlignmentPolicy.RESTRICTED, POD),
        ),
    ],
    ids=["pod", "scopeless", "first", "none", "absent", "unknown", "no word", "attributes", "odd attributes"],
)
def test_the_policy_is_read_as_the_scheduler_plugin_reads_it(
    words: Any, attributes: Mapping[str, Any], expected: tuple[AlignmentPolicy | None, AlignmentScope]
) -> None:
    """Attributes before the deprecated words; what it does not know counts for nothing."""
    raw = {**zones(node_0=4), "topologyPolicies": words}
    raw["attributes"] = [{"name": name, "value": value} for name, value in attributes.items()]
    numa = found(raw)

    assert expected == (numa.policy, numa.scope)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (zones(node_0="all"), r"zones node-0 nvidia\.com/gpu: capacity: 'all'"),
        (zones(node_0=-1), r"zones node-0 nvidia\.com/gpu: capacity is -1, expected 0 or more"),
        (zones(node_0=200, node_1=100), r"zones count \[200, 100\]"),
        (zones(node_0=1, node_00=1), "zones name a NUMA node twice"),
        ({**zones(), "zones": [zone(f"node-{i}", 0) for i in range(1025)]}, "zones are 1025"),
        ({**zones(node_0=1), "attributes": "x"}, "attributes must be a list"),
    ],
    ids=["no quantity", "negative", "too many GPUs", "twice", "too many zones", "attributes"],
)
def test_what_is_not_as_the_format_says_is_refused(raw: Mapping[str, Any], reason: str) -> None:
    """Zone, resource and key are named."""
    with pytest.raises(DocumentError, match=reason):
        list(read_zones(raw, "nvidia.com/gpu"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("node-0"),
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(
            st.sampled_from(["name", "type", "resources", "capacity", "available", "value", "x"]),
            below,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["zones", "attributes", "topologyPolicies", "metadata"]), st.integers(0, 2))
@settings(max_examples=examples(300))
def test_whatever_stands_anywhere_is_read_or_named(value: Any, key: str, depth: int) -> None:
    """A field, a zone, or a resource of a zone may be anything."""
    raw = zones(node_0=4, node_1=4)
    if depth == 0 or key != "zones":
        raw[key] = value
    elif depth == 1:
        raw["zones"][1] = value
    else:
        raw["zones"][1]["resources"][2] = value
    warnings: list[str] = []
    for reading in read_each([raw], lambda each: read_zones(each, "nvidia.com/gpu"), warnings):
        assert reading.zones is not None
        assert all(amount >= 0 for each in reading.zones.zones for amount in each.available.values())
    assert len(warnings) <= 1


def test_a_node_carries_its_zones_and_where_they_were_read() -> None:
    """They are counted and not assumed, other than which GPU is on which."""
    gpu_node = one(cluster([node(labels=PRODUCT)], zones=[zones(node_0=4, node_1=4)]))
    facts = {fact.subject: fact for fact in gpu_node.facts}

    assert gpu_node.zones == found(zones(node_0=4, node_1=4))
    assert ("NodeResourceTopology gpu-1 zones", False) == (facts["numa"].source, facts["numa"].assumed)
    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in gpu_node.gpus]


def test_zones_of_another_number_of_gpus_do_not_count() -> None:
    """They are about another state of the node, policy included."""
    snapshot = cluster([node()], [pod("a")], zones=[zones(node_0=4)])

    assert snapshot.nodes[0].zones is None
    assert "NodeResourceTopology gpu-1 zones: lists 4 GPUs, node gpu-1 has 8; skipped" in snapshot.warnings
