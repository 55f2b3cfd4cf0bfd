"""Labels of GPU feature discovery and of labellers like it."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import ShareMode
from arena_topo.topology.objects import NodeFacts, Reading, Trust
from arena_topo.topology.sources.gfd import product_of, read_labels
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels

V100 = {
    "nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "16160",
}


def read(given: dict[str, str], capacity: int = 8) -> Reading:
    """Return the reading of a node with the labels *given*."""
    (reading,) = read_labels(NodeFacts("gpu-1", labels=given), capacity)
    return reading


def test_a_product_label_brings_its_usual_links_as_assumed() -> None:
    """It is the least exact source of all."""
    reading = read(V100)

    assert CUBE_MESH == labels(reading.links)
    assert reading.trust is Trust.PRODUCT_TABLE
    assert reading.assumptions == ("links as usual for the product",)
    assert {16160} == {gpu.memory for gpu in reading.gpus}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (V100, "Tesla-V100-SXM2-16GB"),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "AMD_Instinct_MI300X_OAM"),
        ({"aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-16GB"}, "Tesla-V100-SXM2-16GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "NVIDIA-H100-80GB-HBM3"),
        ({"cloud.google.com/gke-accelerator": "something-new"}, ""),
        ({}, ""),
    ],
)
def test_every_labeller_names_the_product(given: dict[str, str], expected: str) -> None:
    """An unknown name of a cloud is no product."""
    assert expected == product_of(given)


def test_without_a_count_label_the_capacity_counts() -> None:
    """GKE and AMD publish no count."""
    assert 4 == len(read({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, 4).gpus)


def test_the_machine_name_decides_where_boards_differ() -> None:
    """Four A100 of a Google machine hang on NVSwitches, on other boards they are joined directly."""
    product = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "4"}

    assert read(product).machine == "4xA100-mesh"
    assert read({**product, "nvidia.com/gpu.machine": "Google-Compute-Engine"}).machine == "4xA100-nvswitch"


def test_instance_types_name_the_nics() -> None:
    """A p5.48xlarge has 32 network cards of 100 Gbit/s."""
    reading = read({**V100, "node.kubernetes.io/instance-type": "p5.48xlarge"})

    assert (32, 12.5) == (len(reading.nics), reading.nics[0].rate)


def test_shared_gpus_are_marked() -> None:
    """Time-slicing appends -SHARED and multiplies the capacity by the replicas."""
    reading = read({"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}, 16)

    assert [ShareMode.SHARED] * 4 == [gpu.mode for gpu in reading.gpus]


def test_mig_slices_have_no_links() -> None:
    """Parts of GPUs are not joined by NVLink."""
    reading = read({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, 7)

    assert ([ShareMode.MIG] * 7, None) == ([gpu.mode for gpu in reading.gpus], reading.links)


def test_a_count_that_is_no_number_is_refused_by_label() -> None:
    """The label is named."""
    with pytest.raises(DocumentError, match=r"label nvidia.com/gpu.count is 'eight'"):
        read({**V100, "nvidia.com/gpu.count": "eight"})
