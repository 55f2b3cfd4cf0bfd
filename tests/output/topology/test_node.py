"""A node's details, plain and in colour."""

import re
from dataclasses import replace

import pytest

from arena_topo.model.cluster.hardware import ShareMode
from arena_topo.model.cluster.numa import AlignmentPolicy, AlignmentScope, NumaZone, NumaZones
from arena_topo.output.topology.node import node_view
from tests.output.clusters import machine, small_cluster

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_a_node_shows_links_gpus_nics_and_sources() -> None:
    """The matrix, what the classes mean, who holds which GPU."""
    view = node_view(machine("v100-0", vgg16=(0, 3)))

    assert view.startswith("v100-0  8xV100-cubemesh, 6 of 8 GPUs free\n\nLINKS\n      GPU0  GPU1")
    assert "\nGPU5  SYS   NV2   SYS   SYS   NV1   X     NV2   NV1\n" in view
    assert "\nNV2  NVLinks between the two GPUs  50 GB/s\n" in view
    assert "\n3    used   team-a/vgg16-worker-0 (vgg16)  0     mlx5_2  16 GiB  Tesla V100-SXM2-16GB\n" in view
    assert "\nNIC     NUMA  GB/S\nmlx5_2  0\n" in view
    assert "links  30s  Node v100-0 annotation arena-topo.dev/gpu-topology\n" in view


def test_a_narrow_terminal_has_the_columns_that_decide() -> None:
    """What has no room is named, sources go on below themselves, and no row of the GPUs is too wide."""
    lines = node_view(machine("v100-0", vgg16=(0, 3)), width=60).splitlines()

    start = next(place for place, line in enumerate(lines) if line.startswith("GPU  STATE"))
    assert ["GPU", "STATE", "USER", "NUMA", "NICS"] == lines[start].split()
    assert "hidden: MEMORY, PRODUCT; a wider terminal shows them" in lines
    facts = lines[next(place for place, line in enumerate(lines) if line.startswith("FACT")) :]
    assert all(len(line) <= 60 for line in (*lines[start : start + 9], *facts))


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


@pytest.mark.parametrize(
    ("policy", "told", "remark"),
    [
        (AlignmentPolicy.SINGLE_NUMA_NODE, "single-numa-node, for each pod", "single-numa-node for each pod"),
        (AlignmentPolicy.BEST_EFFORT, "best-effort, for each pod", ""),
        (None, "not known", ""),
    ],
    ids=["refuses", "best effort", "not told"],
)
def test_a_node_shows_what_is_free_on_its_numa_nodes(
    policy: AlignmentPolicy | None, told: str, remark: str
) -> None:
    """With the policy of its kubelet, which is a remark where it keeps pods off."""
    amounts = {"memory": 2**38, "nvidia.com/gpu": 4, "cpu": 48_000}
    zone = NumaZone(0, amounts, amounts, {**amounts, "cpu": 8000, "nvidia.com/gpu": 1})
    node = replace(machine("v100-0"), zones=NumaZones((zone,), policy, AlignmentScope.POD))
    view = node_view(node)

    assert "\nNUMA  FREE nvidia.com/gpu  FREE cpu  FREE memory\n" in view
    assert "\n0     1 of 4               8 of 48   256 GiB of 256 GiB\n" in view
    assert f"\ntopology manager policy of the kubelet: {told}\n" in view
    assert bool(remark) == (f"({remark})" in view.splitlines()[0])
