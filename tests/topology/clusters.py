"""Snapshots assembled from the objects of small clusters."""

from typing import Any

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.topology.assemble import ClusterObjects, assemble
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from arena_topo.topology.objects import node_facts, pod_facts
from arena_topo.topology.sources.annotation import encode
from tests.topology.objects import (
    NOW,
    WRITTEN,
)
from tests.topology.texts import saved

PRODUCT = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB", "nvidia.com/gpu.count": "8"}
ACK = {"ack.node.gpu.schedule": "topology"}


def cluster(nodes: list[dict[str, Any]], pods: list[dict[str, Any]] | None = None, **lists: Any) -> Snapshot:
    """Return the snapshot of a cluster of raw objects."""
    objects = ClusterObjects(
        [node_facts(raw) for raw in nodes], [pod_facts(raw) for raw in pods or []], **lists
    )
    return assemble(objects, cluster="test", taken=NOW)


def one(snapshot: Snapshot) -> GpuNode:
    """Return the only node of *snapshot*, which must have no warnings."""
    assert snapshot.warnings == ()
    (only,) = snapshot.nodes
    return only


def agent_value(name: str = "v100-sxm2-8gpu-driver580.txt", **users: list[int]) -> str:
    """Return our agent's annotation of a real machine, with pods of the default namespace as users."""
    hardware = parse_matrix(saved(name), name, "Tesla V100-SXM2-16GB")
    return encode(hardware, {("default", pod): gpus for pod, gpus in users.items()}, WRITTEN)
