"""Koordinator's Device object and pod annotation."""

import json

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.keys import KOORDINATOR_DEVICES
from arena_topo.topology.objects import Reading
from arena_topo.topology.sources.koordinator import PARTITIONS, pod_gpus, read_device
from tests.topology.formats.test_nvidia_smi import labels, uniform
from tests.topology.objects import koordinator_device

PCIE = [
    [
        "X" if a == b else "PXB" if a // 2 == b // 2 else "NODE" if a // 4 == b // 4 else "SYS"
        for b in range(8)
    ]
    for a in range(8)
]


def read(model: str = "NVIDIA-H100-80GB-HBM3", partitions: object = None) -> Reading:
    """Return the reading of a Device whose GPUs are of *model*."""
    raw = koordinator_device()
    raw["metadata"]["labels"]["node.koordinator.sh/gpu-model"] = model
    if partitions is not None:
        raw["metadata"]["annotations"] = {PARTITIONS: json.dumps(partitions)}
    (reading,) = read_device(raw)
    return reading


def test_a_device_tells_numa_and_pcie_and_the_product_its_nvlinks() -> None:
    """NVLinks are not published; an H100 board's are known and marked as assumed."""
    reading = read()

    assert uniform("NV18", 8) == labels(reading.links)
    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in reading.gpus]
    assert {81920} == {gpu.memory for gpu in reading.gpus}
    assert reading.assumptions == ("NVLinks as usual for the product",)
    assert ["0000:1f:00.0"] == [nic.name for nic in reading.nics]


def test_cards_are_joined_by_pcie_as_the_ids_tell() -> None:
    """One PCIe id, one NUMA node, or across the sockets."""
    reading = read("NVIDIA-L40S")

    assert PCIE == labels(reading.links)
    assert reading.assumptions == ()


def test_partitions_that_deny_nvlink_win_over_the_product() -> None:
    """A partition table without NVLink partitions says that the GPUs have none, whatever is usual."""
    table = {
        "2": [{"minors": [0, 1], "gpuLinkType": "PCIe", "ringBusBandwidth": "10Gi", "allocationScore": 1}]
    }

    assert PCIE == labels(read(partitions=table).links)


def test_nvlink_partitions_of_an_unknown_product_stay_without_class() -> None:
    """That they are linked is known, by how many links is not."""
    table = {"2": [{"minors": [0, 1], "gpuLinkType": "NVLink", "allocationScore": 1}]}
    graph = read("Future-GPU", table).links
    assert graph is not None

    assert ("?", "NODE") == (graph.between(0, 1).label, graph.between(0, 2).label)


def test_allocations_of_the_status_name_the_pods() -> None:
    """Each entry is a pod and its minors."""
    entry = {"name": "train-worker-0", "namespace": "team-a", "uuid": "u", "minors": [3, 2]}
    status = {"allocations": [{"type": "gpu", "entries": [entry]}, {"type": "rdma", "entries": [entry]}]}
    (reading,) = read_device(koordinator_device(status=status))

    assert {("team-a", "train-worker-0"): (2, 3)} == reading.users


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"minor": 9}, r"numbers its GPUs \[1, 2, 3, 4, 5, 6, 7, 9\]"),
        ({"minor": "0"}, "minor is '0', expected a whole number"),
        ({"id": ""}, "id is empty"),
        ({"topology": "far"}, "topology must be a mapping"),
        ({"resources": {"koordinator.sh/gpu-memory": "much"}}, "'much' is not a quantity"),
    ],
)
def test_a_broken_device_is_refused_by_key(change: dict[str, object], reason: str) -> None:
    """Nothing of it is used."""
    raw = koordinator_device()
    raw["spec"]["devices"][0] |= change

    with pytest.raises(DocumentError, match=reason):
        list(read_device(raw))


def test_a_broken_partition_table_is_refused() -> None:
    """GPUs that the node does not have are named."""
    with pytest.raises(DocumentError, match=r"names GPUs \[0, 8\] of 8"):
        read(partitions={"2": [{"minors": [0, 8], "gpuLinkType": "NVLink"}]})


def test_the_pod_annotation_tells_the_minors() -> None:
    """Other device types next to the GPUs do not matter."""
    value = (
        '{"gpu":[{"minor":5,"resources":{"koordinator.sh/gpu-core":"100"}},{"minor":4}],"rdma":[{"minor":0}]}'
    )

    assert pod_gpus({KOORDINATOR_DEVICES: value}) == (4, 5)
    assert pod_gpus({KOORDINATOR_DEVICES: '{"rdma":[{"minor":0}]}'}) is None
    assert pod_gpus({}) is None


@pytest.mark.parametrize("value", ["{", "[]", '{"gpu":[{}]}'])
def test_a_broken_pod_annotation_is_refused(value: str) -> None:
    """It is not guessed at."""
    with pytest.raises(DocumentError):
        pod_gpus({KOORDINATOR_DEVICES: value})
