"""ResourceSlices of every driver and API version, and claims."""

from typing import Any

import pytest

from arena_topo.model.text.quantity import parse_instant
from arena_topo.topology.objects import Reading
from arena_topo.topology.sources.dra import read_dra
from tests.topology.formats.test_nvidia_smi import labels, uniform
from tests.topology.objects import NOW, UUIDS, meta

H100 = "NVIDIA H100 80GB HBM3"


def attributes(version: str, index: int) -> dict[str, Any]:
    """Return the attributes that *version* of the driver gives GPU *index*."""
    common: dict[str, Any] = {
        "uuid": {"string": UUIDS[index]},
        "type": {"string": "gpu"},
        "productName": {"string": H100},
        "driverVersion": {"version": "570.86.15"},
    }
    match version:
        case "25.3":
            common |= {
                "index": {"int": index},
                "minor": {"int": index},
                "pcieBusID": {"string": "0000:0f:00.0"},
            }
        case "25.8":
            common |= {
                "pcieBusID": {"string": "0000:0f:00.0"},
                "resource.kubernetes.io/pcieRoot": {"string": f"pci{index // 2}"},
            }
        case _:
            common |= {
                "resource.kubernetes.io/pciBusID": {"string": "0000:0f:00.0"},
                "resource.kubernetes.io/pcieRoot": {"string": f"pci{index // 2}"},
                "resource.kubernetes.io/numaNode": {"int": index // 4},
                "addressingMode": {"string": "HMM"},
            }
    return common


def gpu_slice(version: str = "25.12", api: str = "v1", generation: int = 1, count: int = 8) -> dict[str, Any]:
    """Return the slice of node gpu-1 with *count* GPUs, not in order."""
    devices = []
    for index in reversed(range(count)):
        body = {"attributes": attributes(version, index), "capacity": {"memory": {"value": "81559Mi"}}}
        devices.append({"name": f"gpu-{index}", **({"basic": body} if api == "v1beta1" else body)})
    return {
        "apiVersion": f"resource.k8s.io/{api}",
        "kind": "ResourceSlice",
        "metadata": meta(f"gpu-1-gpu.nvidia.com-{generation}"),
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "gpu-1",
            "pool": {"name": "gpu-1", "generation": generation, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def claim(name: str, devices: list[str], pod: str = "", **result: Any) -> dict[str, Any]:
    """Return a claim to which *devices* of node gpu-1 are allocated, reserved for *pod*."""
    results = [
        {"request": "gpus", "driver": "gpu.nvidia.com", "pool": "gpu-1", "device": device, **result}
        for device in devices
    ]
    status: dict[str, Any] = {"allocation": {"devices": {"results": results}}}
    if pod:
        status["reservedFor"] = [{"resource": "pods", "name": pod, "uid": "u"}]
    return {"kind": "ResourceClaim", "metadata": meta(name, namespace="team-a"), "status": status}


def read(slices: list[dict[str, Any]], claims: list[dict[str, Any]] | None = None) -> Reading:
    """Return the one reading of *slices*, which must leave no warning."""
    warnings: list[str] = []
    (reading,) = read_dra(slices, claims or [], warnings, parse_instant(NOW))
    assert warnings == []
    return reading


@pytest.mark.parametrize("version", ["25.3", "25.8", "25.12"])
@pytest.mark.parametrize("api", ["v1beta1", "v1beta2", "v1"])
def test_slices_of_every_version_tell_the_gpus(version: str, api: str) -> None:
    """Order by index or name, UUID, product and memory; NVLinks are usual for the product and assumed."""
    reading = read([gpu_slice(version, api)])

    assert UUIDS == [gpu.uuid for gpu in reading.gpus]
    assert {(H100, 81559)} == {(gpu.product, gpu.memory) for gpu in reading.gpus}
    assert uniform("NV18", 8) == labels(reading.links)
    assert reading.machine == "8xH100-nvswitch"
    assert reading.assumptions == ("NVLinks as usual for the product",)
    assert reading.age == 30.0


def test_pcie_roots_and_numa_nodes_are_kept() -> None:
    """They are standard attributes of newer drivers."""
    gpus = read([gpu_slice()]).gpus

    assert ["pci0", "pci0", "pci1", "pci1", "pci2", "pci2", "pci3", "pci3"] == [gpu.pcie_root for gpu in gpus]
    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in gpus]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    """While a driver publishes again, slices of two generations are next to each other."""
    assert 4 == len(read([gpu_slice(generation=1), gpu_slice(generation=2, count=4)]).gpus)


def test_nics_of_dranet_are_near_the_gpus_of_their_pcie_root() -> None:
    """The network driver publishes the same standard attribute."""
    nic = {
        "kind": "ResourceSlice",
        "metadata": meta("gpu-1-dra.net"),
        "spec": {
            "driver": "dra.net",
            "nodeName": "gpu-1",
            "pool": {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "normalized-mlx5",
                    "attributes": {
                        "dra.net/ifName": {"string": "rdma0"},
                        "dra.net/rdma": {"bool": True},
                        "dra.net/numaNode": {"int": 0},
                        "resource.kubernetes.io/pcieRoot": {"string": "pci1"},
                    },
                }
            ],
        },
    }
    reading = read([gpu_slice(), nic])

    assert [("rdma0", 0)] == [(nic.name, nic.numa) for nic in reading.nics]
    assert [2, 3] == [gpu.index for gpu in reading.gpus if gpu.nics == ("rdma0",)]


def test_claims_tell_which_pod_holds_which_gpu() -> None:
    """Admin access takes nothing, and a claim without a pod still holds its devices."""
    claims = [
        claim("a", ["gpu-0", "gpu-3"], "worker-0"),
        claim("b", ["gpu-4"]),
        claim("c", ["gpu-7"], "monitor", adminAccess=True),
    ]

    assert {("team-a", "worker-0"): (0, 3), ("", ""): (4,)} == read([gpu_slice()], claims).users


def test_migs_and_other_drivers_are_no_whole_gpus() -> None:
    """Devices of another type, and slices of other drivers, are left out."""
    mixed = gpu_slice(count=2)
    mixed["spec"]["devices"][0]["attributes"]["type"] = {"string": "mig"}
    other = gpu_slice()
    other["spec"]["driver"] = "tpu.google.com"

    assert 1 == len(read([mixed, other]).gpus)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "card-a", "attributes": {}}, "card-a has neither index nor minor"),
        ({"name": ""}, "name is empty"),
        ({"attributes": {"uuid": "GPU-a"}}, "attribute uuid is 'GPU-a'"),
        ({"capacity": {"memory": {"value": "much"}}}, "capacity memory: value: 'much'"),
    ],
)
def test_a_broken_slice_becomes_a_warning(change: dict[str, Any], reason: str) -> None:
    """The object is named, and nothing of it is used."""
    broken = gpu_slice(count=1)
    broken["spec"]["devices"][0] |= change
    warnings: list[str] = []

    assert [] == list(read_dra([broken], [], warnings))
    assert warnings[0].startswith("ResourceSlice gpu-1-gpu.nvidia.com-1: ")
    assert reason in warnings[0]
