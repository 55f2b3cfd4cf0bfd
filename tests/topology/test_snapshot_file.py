"""A snapshot written as a document reads back the same; a broken document is refused by place."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Fabric, Fact, GpuNode, Snapshot
from arena_topo.topology.files import read_snapshot, snapshot_document
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from tests.topology.clusters import ACK, PRODUCT, cluster
from tests.topology.machines import Machine, machines, written
from tests.topology.objects import config_map, node, pod
from tests.topology.sources.test_node_resource_topology import zones


def rich_snapshot(*, with_zones: bool = False) -> Snapshot:
    """Return a snapshot that has something of everything,
    NUMA nodes apart, which an import does not publish.
    """
    rack = {"fabric.topograph.run/tier-0": "r1"}
    nodes = [
        node("gpu-1", resource="aliyun.com/gpu", labels={**PRODUCT, **ACK, **rack}),
        node("gpu-2", labels={**PRODUCT, **rack, "node.kubernetes.io/instance-type": "p3dn.24xlarge"}),
        node("cpu-1", gpus=0),
    ]
    nodes[1]["spec"] |= {
        "unschedulable": True,
        "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    }
    nodes[2]["status"]["conditions"] = []
    holder_pod = pod("a", 2, "aliyun.com/gpu", annotations={"topology.kubernetes.io/gpu-group": "0,3"})
    return cluster(
        nodes,
        [holder_pod, pod("b", 1, node_name="gpu-2")],
        config_maps=[config_map(), config_map("gone")],
        zones=[{**zones(node_0=4, node_1=4), "metadata": {"name": "gpu-2"}}] if with_zones else [],
    )


def test_a_snapshot_reads_back_the_same() -> None:
    """Through JSON, with everything that a node can have."""
    snapshot = rich_snapshot(with_zones=True)

    assert snapshot == read_snapshot(json.loads(json.dumps(snapshot_document(snapshot))))


@given(machine=machines())
def test_any_machine_reads_back_the_same(machine: Machine) -> None:
    """Links, GPUs and NICs of any shape."""
    devices = [*machine.gpus, *machine.nics]
    hardware = parse_matrix("\n".join(written(machine, devices, devices, "\t")))
    only = GpuNode(
        "a", gpus=hardware.gpus, links=hardware.links, nics=hardware.nics, facts=(Fact("links", "x", 1.5),)
    )
    snapshot = Snapshot((only,), Fabric(("rack",), {"a": ("",)}), "c")

    assert snapshot == read_snapshot(json.loads(json.dumps(snapshot_document(snapshot))))


def test_what_nodes_share_is_written_once() -> None:
    """A thousand nodes of one type cost one link graph and one list of GPUs."""
    document = snapshot_document(cluster([node(f"gpu-{index}", labels=PRODUCT) for index in range(1000)]))

    assert (1, 1, 1000) == (len(document["linkGraphs"]), len(document["gpuSets"]), len(document["nodes"]))
    assert len(json.dumps(document)) < 700 * 1000


def test_annotations_never_get_into_the_document() -> None:
    """They may hold secrets."""
    raw = node(labels=PRODUCT, annotations={"hami.io/node-nvidia-score": "s3cr3t", "password": "s3cr3t"})

    assert "s3cr3t" not in json.dumps(
        snapshot_document(cluster([raw], [pod("a", annotations={"token": "s3cr3t"})]))
    )


def broken(change: Any) -> dict[str, Any]:
    """Return the document of the rich snapshot after *change*."""
    document = deepcopy(snapshot_document(rich_snapshot(with_zones=True)))
    change(document)
    return document


def put(*path: Any) -> Any:
    """Return a change that puts the last element of *path* at the place that the others name."""

    def change(document: Any) -> None:
        for step in path[:-2]:
            document = document[step]
        document[path[-2]] = path[-1]

    return change


BROKEN = {
    "another version": (
        put("apiVersion", "v9"),
        "cluster.json is Snapshot of v9, expected Snapshot of arena-topo.dev/",
    ),
    "a key misspelt": (put("nodez", []), "cluster.json.nodez is an unknown key"),
    "a node's key misspelt": (
        put("nodes", 0, "redy", False),
        r"cluster.json.nodes\[0\].redy is an unknown key",
    ),
    "an amount no number": (
        put("nodes", 1, "allocatable", "cpu", "4"),
        r"nodes\[1\].allocatable.cpu is '4', expected a whole number",
    ),
    "a name missing": (put("nodes", 1, "name", None), r"nodes\[1\].name is missing, expected a string"),
    "a name empty": (put("nodes", 1, "name", ""), r"nodes\[1\].name is empty"),
    "nodes no list": (put("nodes", {}), "cluster.json.nodes must be a list"),
    "a node no mapping": (put("nodes", 0, "gpu-1"), r"nodes\[0\] must be a mapping"),
    "a graph that is not there": (put("nodes", 1, "links", 7), r"nodes\[1\].links refers to number 7 of 2"),
    "a node twice": (put("nodes", 1, "name", "gpu-2"), "nodes names a node twice"),
    "a path too long": (put("nodes", 1, "path", ["a", "b"]), "path has 2 domains, the fabric has 1 tiers"),
    "a used GPU that is not there": (
        put("nodes", 1, "used", [8]),
        r"nodes\[1\].used names GPU 8, the node lists 8",
    ),
    "a link class unknown": (put("linkGraphs", 0, "links", 1, "class", "WAT"), "class is 'WAT'"),
    "a matrix ragged": (put("linkGraphs", 0, "matrix", 0, "0 1"), "matrix must be a square"),
    "a matrix that contradicts itself": (
        put("linkGraphs", 0, "matrix", 0, "0 2 2 2 2 2 2 2"),
        "matrix contradicts itself between GPU0 and GPU1",
    ),
    "a mode unknown": (
        put("gpuSets", 0, 0, "mode", "rented"),
        "mode is 'rented', expected whole, mig or shared",
    ),
    "a NUMA node twice": (
        put("nodes", 2, "numa", "zones", 1, "number", 0),
        r"nodes\[2\].numa.zones are \[0, 0\], expected rising numbers",
    ),
    "less than nothing on a NUMA node": (
        put("nodes", 2, "numa", "zones", 1, "available", "cpu", -1),
        r"nodes\[2\].numa.zones counts less than 0 on NUMA node 1",
    ),
    "a policy unknown": (
        put("nodes", 2, "numa", "policy", "strict"),
        "numa.policy is 'strict', expected none",
    ),
    "warnings no strings": (put("warnings", [1]), r"warnings\[0\] is 1, expected a string"),
}


@pytest.mark.parametrize(("change", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_document_is_refused_by_place(change: Any, reason: str) -> None:
    """Whatever is wrong, the error says where."""
    with pytest.raises(DocumentError, match=reason):
        read_snapshot(broken(change), "cluster.json")


@pytest.mark.parametrize("document", [None, [], "text", {}], ids=repr)
def test_a_document_of_another_kind_is_refused(document: object) -> None:
    """A manifest or an empty file is no snapshot."""
    with pytest.raises(DocumentError, match=r"cluster\.json"):
        read_snapshot(document, "cluster.json")
