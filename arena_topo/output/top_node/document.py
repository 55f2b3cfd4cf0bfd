"""``top node -o json|yaml``: the document that Arena prints, with every list in a fixed order.

Its keys and values are what scripts read, and stay as they are in Arena. Source: kubeflow/arena 0.15.5,
pkg/apis/types/gpunode.go.
"""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.output.top_node.text import (
    NodeMode,
    allocated,
    description,
    link_types,
    mode_of,
    role_of,
    status_of,
    total,
)

_KEYS = {
    NodeMode.EXCLUSIVE: "gpuExclusiveNodes",
    NodeMode.TOPOLOGY: "gpuTopologyNodes",
    NodeMode.NORMAL: "normalNodes",
}


def top_nodes_document(nodes: Sequence[GpuNode]) -> dict[str, Any]:
    """Return the nodes by mode; arena-topo does not know GPU-share nodes, so their list is always empty."""
    by_mode: dict[str, Any] = {
        "gpuExclusiveNodes": [],
        "gpuShareNodes": [],
        "gpuTopologyNodes": [],
        "normalNodes": [],
    }
    for node in sorted(nodes, key=lambda node: node.name):
        by_mode[_KEYS[mode_of(node)]].append(_entry(node))
    return by_mode


def _entry(node: GpuNode) -> dict[str, Any]:
    mode = mode_of(node)
    common = {
        "name": node.name,
        "description": description(mode),
        "ip": node.address or "N/A",
        "status": status_of(node),
        # Arena never fills in the role of a node with GPUs.
        "role": role_of(node) if mode is NodeMode.NORMAL else "",
        "type": mode.value[1],
    }
    if mode is NodeMode.NORMAL:
        return common
    counted = {
        "totalGPUs": total(node),
        "allocatedGPUs": allocated(node),
        "unhealthyGPUs": node.unhealthy,
        "gpuMetrics": [],
    }
    instances = [
        _instance(holder, node)
        for holder in sorted(node.holders, key=lambda holder: (holder.namespace, holder.pod))
    ]
    links = {
        "gpuTopology": {
            "linkMatrix": link_types(node),
            "bandwidthMatrix": [list(row) for row in node.measured],
        }
    }
    devices = {
        "devices": [
            {
                "id": str(gpu.index),
                "healthy": gpu.healthy,
                "status": "using" if node.used is not None and gpu.index in node.used else "idle",
            }
            for gpu in node.gpus
        ]
    }
    counts = {**common, **counted, "instances": instances}
    return {**counts, **links, **devices} if mode is NodeMode.TOPOLOGY else counts


def _instance(holder: Holder, node: GpuNode) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": holder.pod,
        "namespace": holder.namespace,
        "status": holder.phase,
        "requestGPUs": holder.gpus,
    }
    if mode_of(node) is NodeMode.TOPOLOGY:
        # In topology mode the pods of a job on one node see each other's GPUs.
        pods = [
            other for other in node.holders if other is holder or (holder.job and other.job == holder.job)
        ]
        entry["allocation"] = [str(index) for index in holder.indices or ()]
        entry["visibleGPUs"] = [
            str(index) for index in sorted({index for pod in pods for index in pod.indices or ()})
        ]
    return entry
