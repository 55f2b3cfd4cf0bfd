"""What is on the machines of a layout: the facts that agents of vendors publish, and pods that hold GPUs.

Formats: the Kubernetes device plugin's gpu-feature-discovery README; kubeflow/arena 0.15.5 pkg/topnode;
HAMi 2.8 docs/develop/protocol.md and pkg/device/nvidia/calculate_score.go.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.hardware import Hardware, Link, LinkClass, ShareMode
from arena_topo.model.keys import HAMI_REGISTER, HAMI_SCORE
from arena_topo.model.objects import Object

# Annotation and label keys that only the sandbox knows.

LOST = "sandbox.arena-topo.dev/lost"
"""Annotation of a node whose kubelet has stopped reporting; its pods stay, as at first."""
TIER_PREFIX = "sandbox.arena-topo.dev/"
"""Prefix of the labels that stand for a tier whose own label key a snapshot does not have."""
RUNS = "sandbox.arena-topo.dev/runs"
"""Annotation of a pod: what its first container runs, in place of its own command: ``sleep 60; exit 3``."""
AS_PUBLISHED = "sandbox.arena-topo.dev/as-published"
"""Annotation of a layout's pods: they hold the GPUs that the layout publishes, if any."""

_FAMILIES = {
    "V100": ("volta", "7", "0"),
    "A100": ("ampere", "8", "0"),
    "H100": ("hopper", "9", "0"),
    "H200": ("hopper", "9", "0"),
    "L40S": ("ada-lovelace", "8", "9"),
}
_PCIE_SCORES = {
    LinkClass.SYS: 10,
    LinkClass.NODE: 20,
    LinkClass.PHB: 30,
    LinkClass.PXB: 40,
    LinkClass.PIX: 50,
}
_NVLINK_SCORE = 100  # per NVLink between the two GPUs
_PCIE_RATE = 16.0  # GB/s in one direction
_SYS_RATE = 8.0  # GB/s in one direction, across the processors


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a layout; ``memory`` is that of one GPU, in MiB."""

    name: str
    hardware: Hardware
    product: str
    memory: int

    @property
    def size(self) -> int:
        """How many GPUs it has."""
        return len(self.hardware.gpus)

    def uuids(self) -> list[str]:
        """Return its GPUs' UUIDs: their own, or ones derived from the machine's name."""
        return [
            gpu.uuid or f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{self.name}/{index}')}"
            for index, gpu in enumerate(self.hardware.gpus)
        ]

    def link(self, a: int, b: int) -> Link:
        """Return the link of two GPUs."""
        links = self.hardware.links
        return links.between(a, b) if links is not None else Link(LinkClass.UNKNOWN)

    def labels(self) -> dict[str, str]:
        """Return the labels of GPU feature discovery."""
        family = next((value for key, value in _FAMILIES.items() if key in self.product), None)
        labels = {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.count": str(self.size),
            "nvidia.com/gpu.product": self.product,
            "nvidia.com/gpu.memory": str(self.memory),
            "nvidia.com/gpu.replicas": "1",
        }
        if family is not None:
            labels["nvidia.com/gpu.family"] = family[0]
            labels |= {"nvidia.com/gpu.compute.major": family[1], "nvidia.com/gpu.compute.minor": family[2]}
        return labels


def topology_config_map(machine: Machine, measured: Sequence[Sequence[float]] = ()) -> Object:
    """Return ACK's ConfigMap of a machine's links; *measured* by a p2p test, in GB/s both ways."""
    size = range(machine.size)
    words = [["X" if a == b else machine.link(a, b).label for b in size] for a in size]
    rates = [[0.0 if a == b else _rate(machine.link(a, b)) for b in size] for a in size]
    labels = {"ack.node.gpu.schedule": "topology", "nodename": machine.name}
    data = {
        "devices": json.dumps(
            {str(gpu.index): "Healthy" if gpu.healthy else "Unhealthy" for gpu in machine.hardware.gpus}
        ),
        "linkType": json.dumps(words),
        "bandwidth": json.dumps([list(row) for row in measured] or rates),
    }
    meta = {"name": f"{machine.name}-gpu-topology", "namespace": "kube-system", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _rate(link: Link) -> float:
    """Return what a p2p test of both directions shows, in GB/s."""
    if link.bandwidth and link.kind.is_direct:
        return 2 * link.bandwidth
    return 2 * (_SYS_RATE if link.kind is LinkClass.SYS else _PCIE_RATE)


def hami_annotations(machine: Machine, at: str, shares: int = 10) -> dict[str, str]:
    """Return HAMi's register and link scores of a machine whose GPUs have *shares* parts each."""
    uuids, size = machine.uuids(), range(machine.size)
    register = [
        {
            "id": uuids[index],
            "index": index,
            "count": shares,
            "devmem": gpu.memory or machine.memory,
            "devcore": 100,  # percent
            "type": f"NVIDIA-{machine.product.removeprefix('NVIDIA-')}",
            "numa": gpu.numa or 0,
            "mode": "mig" if gpu.mode is ShareMode.MIG else "hami-core",
            "health": gpu.healthy,
        }
        for index, gpu in enumerate(machine.hardware.gpus)
    ]
    scores = [
        {"uuid": uuids[a], "score": {uuids[b]: link_score(machine.link(a, b)) for b in size if a != b}}
        for a in size
    ]
    return {
        HAMI_REGISTER: json.dumps(register, separators=(",", ":")),
        HAMI_SCORE: json.dumps(scores, separators=(",", ":")),
        "hami.io/node-handshake": f"Reported_{at}",
    }


def link_score(link: Link) -> int:
    """Return the score of a link, by whose sum HAMi and NVIDIA's allocator compare sets of GPUs."""
    if link.kind.is_direct:
        return _NVLINK_SCORE * max(link.count, 1)
    return _PCIE_SCORES.get(link.kind, 0)


def sleeping_pod(name: str, namespace: str, node: str, limits: Mapping[str, str]) -> Object:
    """Return a pod on *node* that occupies *limits* and does nothing."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "infinity"]}
    spec = {
        "nodeName": node,
        "containers": [container | {"resources": {"limits": dict(limits)}}],
        "tolerations": [{"operator": "Exists"}],
    }
    meta = {"name": name, "namespace": namespace, "annotations": {AS_PUBLISHED: "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
