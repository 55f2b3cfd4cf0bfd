"""From words to links: switches, bundles, bridges and their bandwidths."""

from itertools import combinations

import pytest

from arena_topo.model.cluster import LinkClass
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from tests.topology.texts import saved


@pytest.mark.parametrize(
    ("name", "product", "expected"),
    [
        ("dgx-a100-mlx5.txt", "", LinkClass.NVSWITCH),
        ("a100-4gpu-nv4-slurm-empty-cpu-affinity.txt", "", LinkClass.NVLINK),
        ("a100-pcie-4gpu-nvlink-bridge-pairs.txt", "", LinkClass.BRIDGE),
        ("v100-sxm2-8gpu-driver580.txt", "", LinkClass.NVLINK),
        ("gb200-nvl72-compute-tray.txt", "", LinkClass.NVSWITCH),
    ],
)
def test_nv_words_tell_switch_from_bundle(name: str, product: str, expected: LinkClass) -> None:
    """More NVLinks to all others than a GPU has mean a switch; pairs within a larger box a bridge."""
    graph = parse_matrix(saved(name), name, product).links
    assert graph is not None
    pairs = combinations(range(graph.size), 2)

    assert {expected} == {graph.between(a, b).kind for a, b in pairs if graph.between(a, b).kind.is_direct}


@pytest.mark.parametrize(
    ("product", "expected"),
    [("", 450.0), ("NVIDIA-B300-SXM6-AC", 900.0)],
    ids=["assumed to be Hopper", "known to be Blackwell"],
)
def test_the_product_decides_the_bandwidth(product: str, expected: float) -> None:
    """NV18 is 450 GB/s on Hopper and 900 GB/s on Blackwell; without a product the lower one is assumed."""
    hardware = parse_matrix(saved("b300-8gpu-9nic-ansi-header-driver590.txt"), "b300", product)
    assert hardware.links is not None

    assert expected == hardware.links.between(0, 7).bandwidth
    assert bool(product) == (not hardware.assumptions)


def test_a_gpu_pair_of_a_switched_box_is_known_by_its_product() -> None:
    """Two visible GPUs of an H200 box still talk through the switch."""
    graph = parse_matrix("GPU0 GPU1\nGPU0 X NV18\nGPU1 NV18 X", "pair", "NVIDIA H200").links
    assert graph is not None

    assert LinkClass.NVSWITCH == graph.between(0, 1).kind
