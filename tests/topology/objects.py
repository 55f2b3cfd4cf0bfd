"""Objects as the API server gives them, for the tests of the readers."""

import json
from typing import Any

from tests.topology.formats.test_nvidia_smi import CUBE_MESH

NOW = "2026-11-21T08:00:00Z"
WRITTEN = "2026-11-21T07:59:30Z"


def node(
    name: str = "gpu-1",
    gpus: int = 8,
    resource: str = "nvidia.com/gpu",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return a Node with *gpus* devices of *resource*."""
    amounts = {"cpu": "96", "memory": "768Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    if gpus:
        amounts[resource] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", **(annotations or {})},
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "192.168.7.186"},
                {"type": "Hostname", "address": name},
            ],
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": "95500m"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    gpus: int = 1,
    resource: str = "nvidia.com/gpu",
    *,
    node_name: str = "gpu-1",
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return a running Pod that asks for *gpus* devices of *resource*."""
    asked = {"cpu": "4", "memory": "16Gi", **({resource: str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels or {},
            "annotations": {"kubernetes.io/config.seen": "x", **(annotations or {})},
        },
        "spec": {"nodeName": node_name, "containers": [{"name": "mpi", "resources": {"requests": asked}}]},
        "status": {"phase": "Running"},
    }


def meta(name: str, **more: Any) -> dict[str, Any]:
    """Return the metadata of an object that was last written at ``WRITTEN``."""
    return {"name": name, "managedFields": [{"manager": "x", "time": WRITTEN}], **more}


ACK_LINKS = [["N-A" if word == "X" else word for word in row] for row in CUBE_MESH]
_RATES = {"N-A": 750.48, "NV2": 96.44, "NV1": 48.39, "SYS": 15.77}


def config_map(name: str = "gpu-1", **data: str) -> dict[str, Any]:
    """Return ACK's topology ConfigMap of a V100 cube mesh; *data* takes the place of its keys."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(
            f"{name}-gputopo-report",
            namespace="kube-system",
            labels={"ack.node.gpu.schedule": "topology", "nodename": name},
        ),
        "data": {
            "nodeName": name,
            "devices": json.dumps({str(index): "Healthy" for index in range(8)}),
            "linkType": json.dumps(ACK_LINKS),
            "bandwidth": json.dumps([[_RATES[word] for word in row] for row in ACK_LINKS]),
            **data,
        },
    }


UUIDS = [f"GPU-0000000{index}-1111-2222-3333-444444444444" for index in range(8)]


def hami_register(numa_of: tuple[int, ...] = (0, 0, 0, 0, 1, 1, 1, 1), count: int = 10) -> str:
    """Return HAMi's register annotation; like HAMi's own it leaves out what is zero."""
    entries = []
    for index, numa in enumerate(numa_of):
        entry = {"id": UUIDS[index], "index": index, "count": count, "devmem": 16384, "devcore": 100}
        entry |= {"type": "NVIDIA-Tesla V100-SXM2-16GB", "numa": numa, "mode": "hami-core", "health": True}
        entries.append({key: value for key, value in entry.items() if value != 0})
    return json.dumps(entries)


def hami_scores(words: list[list[str]] = CUBE_MESH, pcie: int = 10) -> str:
    """Return HAMi's score annotation; NVLinks add to the score of the PCIe path below them."""
    scores = [
        {"uuid": UUIDS[a], "score": {UUIDS[b]: _score(word, pcie) for b, word in enumerate(row) if a != b}}
        for a, row in enumerate(words)
    ]
    return json.dumps(scores)


def _score(word: str, pcie: int) -> int:
    return pcie + (100 * int(word[2:]) if word.startswith("NV") else 0)


def koordinator_device(name: str = "gpu-1", **more: Any) -> dict[str, Any]:
    """Return Koordinator's Device of a node with eight GPUs, two to a PCIe switch, and one NIC."""
    gpus = [
        {
            "type": "gpu",
            "id": UUIDS[index],
            "minor": index,
            "health": True,
            "resources": {
                "koordinator.sh/gpu-core": "100",
                "koordinator.sh/gpu-memory": "80Gi",
                "koordinator.sh/gpu-memory-ratio": "100",
            },
            "topology": {
                "socketID": index // 4,
                "nodeID": index // 4,
                "pcieID": f"pci0000:{index // 2}0",
                "busID": f"0000:0{index}:00.0",
            },
        }
        for index in range(8)
    ]
    nic = {
        "type": "rdma",
        "id": "0000:1f:00.0",
        "minor": 0,
        "health": True,
        "topology": {"socketID": 0, "nodeID": 0, "pcieID": "pci0000:00", "busID": "0000:1f:00.0"},
    }
    labels = {
        "node.koordinator.sh/gpu-model": "NVIDIA-H100-80GB-HBM3",
        "node.koordinator.sh/gpu-vendor": "nvidia",
    }
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": meta(name, labels=labels),
        "spec": {"devices": [*gpus, nic]},
        **more,
    }
