"""``top node`` prints what Arena prints, byte for byte, and more where more is known."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from arena_topo.model.cluster import Gpu, GpuNode, Holder, Link, LinkClass, LinkGraph
from arena_topo.output.top_node import (
    fitted_nodes,
    node_details,
    shortest_float32,
    top_nodes,
    top_nodes_document,
)
from tests.output.golden import golden

SELF, NV2 = Link(LinkClass.SELF), Link(LinkClass.NVLINK, 2, 48.1)
PAIR = LinkGraph(((SELF, NV2), (NV2, SELF)))

TOPOLOGY = GpuNode(
    "cn-shanghai.192.168.7.186",
    address="192.168.7.186",
    labels={"node-role.kubernetes.io/": ""},
    allocatable={"aliyun.com/gpu": 2},
    requested={"aliyun.com/gpu": 2},
    gpu_resource="aliyun.com/gpu",
    gpus=(Gpu(0), Gpu(1)),
    links=PAIR,
    measured=((738.42, 96.44), (96.26, 744.05)),
    used=frozenset({0}),
    holders=(Holder("default", "pytorch-topo-4-vgg16-worker-0", "pytorch-topo-4-vgg16", 1, (0,), "Running"),),
)
EXCLUSIVE = GpuNode(
    "gpu-1",
    address="192.168.8.3",
    allocatable={"nvidia.com/gpu": 8},
    requested={"nvidia.com/gpu": 1},
    holders=(Holder("default", "serving-0", "", 1, None, "Running"),),
)
NORMAL = GpuNode("master-1", address="192.168.7.178", labels={"node-role.kubernetes.io/master": ""})
NEIGHBOUR = replace(
    TOPOLOGY, name="cn-shanghai.192.168.7.187", address="192.168.7.187", requested={}, holders=()
)
SICK = replace(EXCLUSIVE, ready=False, unhealthy=1)
LINKED = replace(EXCLUSIVE, links=PAIR, gpus=(Gpu(0), Gpu(1, healthy=False)), used=frozenset({1}))

VIEWS: dict[str, Callable[[], str]] = {
    "one-mode.txt": lambda: top_nodes([NEIGHBOUR, TOPOLOGY]),
    "several-modes.txt": lambda: top_nodes([TOPOLOGY, SICK, NORMAL]),
    "exclusive-and-normal.txt": lambda: top_nodes([EXCLUSIVE, replace(NORMAL, unschedulable=True)]),
    "normal.txt": lambda: top_nodes([replace(NORMAL, address="")]),
    "chosen-of-several-modes.txt": lambda: top_nodes([EXCLUSIVE, NORMAL], chosen=True),
    "chosen-of-one-mode.txt": lambda: top_nodes([EXCLUSIVE], chosen=True),
    "details-topology.txt": lambda: node_details([TOPOLOGY]),
    "details-exclusive.txt": lambda: node_details([EXCLUSIVE]),
    "details-linked.txt": lambda: node_details([LINKED]),
    "details-normal.txt": lambda: node_details([NORMAL]),
    "nodes.json": lambda: json.dumps(top_nodes_document([TOPOLOGY, NORMAL, EXCLUSIVE]), indent=2) + "\n",
}


@pytest.mark.parametrize("name", VIEWS)
def test_nodes_are_printed_as_arena_prints_them(name: str) -> None:
    """With the mode and the footer of the nodes that are shown, and the links of any source in the details.

    Without measurements their figures are those of `topology`, in one direction.
    """
    text = VIEWS[name]()

    assert golden(f"top_node/{name}", text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [(738.42, "738.42"), (50.0, "50"), (96.44, "96.44"), (0.1, "0.1"), (100.0, "100"), (0, "0")],
)
def test_figures_are_written_as_go_writes_32_bit_floats(value: float, expected: str) -> None:
    """Shortest digits that read back the same, never with an exponent here."""
    assert expected == shortest_float32(value)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("", ["master-1", "gpu-1", "gpu-10", "gpu-2"]),
        ("name", ["gpu-1", "gpu-2", "gpu-10", "master-1"]),
        ("total", ["gpu-2", "gpu-1", "gpu-10", "master-1"]),
        ("allocated", ["gpu-2", "gpu-10", "gpu-1", "master-1"]),
        ("free", ["gpu-1", "gpu-2", "gpu-10", "master-1"]),
    ],
)
def test_nodes_are_sorted_as_users_ask(by: str, expected: list[str]) -> None:
    """By name as people count, or those first that have most; otherwise in Arena's order."""

    def node(name: str, total: int, allocated: int) -> GpuNode:
        return GpuNode(name, allocatable={"nvidia.com/gpu": total}, requested={"nvidia.com/gpu": allocated})

    nodes = [node("gpu-10", 8, 7), NORMAL, node("gpu-2", 16, 9), node("gpu-1", 8, 1)]

    assert expected == [row[0] for row in fitted_nodes(nodes, None, by=by).rows[1:]]
