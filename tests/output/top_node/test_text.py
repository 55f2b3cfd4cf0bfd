"""``top node`` prints what Arena prints, byte for byte, and more where more is known."""

from dataclasses import replace

import pytest

from arena_topo.model.cluster.hardware import Gpu, Link, LinkClass, LinkGraph
from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.output.top_node.text import node_details, shortest_float32, top_nodes

SELF, NV2 = Link(LinkClass.SELF), Link(LinkClass.NVLINK, 2, 48.1)
PAIR = LinkGraph(((SELF, NV2), (NV2, SELF)))
RULE = "-" * 99

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


def test_nodes_of_one_mode_have_the_footer_of_their_resource() -> None:
    """The guides' table."""
    expected = f"""\
NAME                       IPADDRESS      ROLE    STATUS  GPU(Total)  GPU(Allocated)
cn-shanghai.192.168.7.186  192.168.7.186  <none>  Ready   2           2
cn-shanghai.192.168.7.187  192.168.7.187  <none>  Ready   2           0
{RULE}
Allocated/Total GPUs of nodes which own resource aliyun.com/gpu In Cluster:
2/4 (50.0%)
"""
    other = replace(
        TOPOLOGY, name="cn-shanghai.192.168.7.187", address="192.168.7.187", requested={}, holders=()
    )

    assert expected == top_nodes([other, TOPOLOGY])


def test_nodes_of_several_modes_show_the_mode() -> None:
    """Nodes without GPUs first, then exclusive ones, then those in topology mode."""
    expected = f"""\
NAME                       IPADDRESS      ROLE    STATUS    GPU(Total)  GPU(Allocated)  GPU(Mode)  UNHEALTHY
master-1                   192.168.7.178  master  Ready     0           0               none       0
gpu-1                      192.168.8.3    <none>  NotReady  9           1               exclusive  1
cn-shanghai.192.168.7.186  192.168.7.186  <none>  Ready     2           2               topology   0
{RULE}
Allocated/Total GPUs In Cluster:
3/11 (27.3%)
Unhealthy/Total GPUs In Cluster:
1/11 (9.1%)
"""

    assert expected == top_nodes([TOPOLOGY, replace(EXCLUSIVE, ready=False, unhealthy=1), NORMAL])


def test_nodes_without_gpus_beside_one_mode_have_the_footer_of_the_cluster() -> None:
    """Arena shows the mode only where there are two with GPUs."""
    expected = f"""\
NAME      IPADDRESS      ROLE    STATUS                    GPU(Total)  GPU(Allocated)
master-1  192.168.7.178  master  Ready,SchedulingDisabled  0           0
gpu-1     192.168.8.3    <none>  Ready                     8           1
{RULE}
Allocated/Total GPUs In Cluster:
1/8 (12.5%)
"""

    assert expected == top_nodes([EXCLUSIVE, replace(NORMAL, unschedulable=True)])


def test_chosen_nodes_of_several_kinds_have_no_footer() -> None:
    """Arena sums up the cluster, not a choice."""
    assert RULE not in top_nodes([EXCLUSIVE, NORMAL], chosen=True)
    assert RULE in top_nodes([EXCLUSIVE], chosen=True)


def test_nodes_without_gpus_alone_have_no_footer() -> None:
    """There is nothing to sum up."""
    assert top_nodes([replace(NORMAL, address="")]).splitlines()[1:] == [
        "master-1  N/A        master  Ready   0           0"
    ]


def test_details_in_topology_mode_are_those_of_arena() -> None:
    """Instances, both matrices, the GPUs in a fixed order, the summary."""
    expected = """
Name:    cn-shanghai.192.168.7.186
Status:  Ready
Role:    <none>
Type:    GPUTopology
Address: 192.168.7.186
Description:
  1.This node is enabled gpu topology mode.
  2.Pods can request resource 'aliyun.com/gpu' to use gpu topology feature on this node
Instances:
  NAMESPACE  NAME                           GPU(Requested)  GPU(Allocated)
  ---------  ----                           --------------  --------------
  default    pytorch-topo-4-vgg16-worker-0  1               0
LinkTypeMatrix:
        GPU0  GPU1
  GPU0  N-A   NV2
  GPU1  NV2   N-A
BandwidthMatrix:
        GPU0    GPU1
  GPU0  738.42  96.44
  GPU1  96.26   744.05
GPUs:
  INDEX  STATUS  HEALTHY
  ----   ------  -------
  GPU0   using   true
  GPU1   idle    true
GPU Summary:
  Total GPUs: 2
  Allocated GPUs: 2
  Unhealthy GPUs: 0

"""

    assert expected == node_details([TOPOLOGY])


def test_details_of_an_exclusive_node_are_those_of_arena() -> None:
    """Without links there is nothing to add."""
    expected = """
Name:    gpu-1
Status:  Ready
Role:    <none>
Type:    GPUExclusive
Address: 192.168.8.3
Description:
  1.This node is enabled gpu exclusive mode.
  2.Pods can request resource 'nvidia.com/gpu' to use gpu exclusive feature on this node
Instances:
  NAMESPACE  NAME       STATUS   GPU(Requested)
  ---------  ----       ------   --------------
  default    serving-0  Running  1
GPU Summary:
  Total GPUs:     8
  Allocated GPUs: 1
  Unhealthy GPUs: 0

"""

    assert expected == node_details([EXCLUSIVE])


def test_links_of_any_source_are_shown() -> None:
    """Without measurements the figures are those of `topology`, one direction; memory bandwidth is not known."""
    details = node_details(
        [replace(EXCLUSIVE, links=PAIR, gpus=(Gpu(0), Gpu(1, healthy=False)), used=frozenset({1}))]
    )

    assert "LinkTypeMatrix:\n        GPU0  GPU1\n  GPU0  N-A   NV2\n" in details
    assert "BandwidthMatrix (GB/s in one direction):\n        GPU0  GPU1\n  GPU0  N-A   48.1\n" in details
    assert "  GPU1   using   false\n" in details


def test_details_of_a_node_without_gpus() -> None:
    """Its role is the one of its labels."""
    assert node_details([NORMAL]).endswith(
        "Role:    master\nType:    Normal\nAddress: 192.168.7.178\nDescription:\n  This node has none gpu devices\n\n"
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [(738.42, "738.42"), (50.0, "50"), (96.44, "96.44"), (0.1, "0.1"), (100.0, "100"), (0, "0")],
)
def test_figures_are_written_as_go_writes_32_bit_floats(value: float, expected: str) -> None:
    """Shortest digits that read back the same, never with an exponent here."""
    assert expected == shortest_float32(value)
