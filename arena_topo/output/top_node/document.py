"""``top node -o json|yaml``: the document that Arena prints, with every list in a fixed order.

Keys: kubeflow/arena, pkg/apis/types/gpunode.go.
"""

from collections.abc import Sequence
from typing import Any

from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.output.top_node.text import (
    NodeMode,
    allocated,
    description,
    link_words,
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
    """Return the nodes by kind; GPU-share nodes are not known here, so their list is empty."""
    found: dict[str, Any] = {
        "gpuExclusiveNodes": [],
        "gpuShareNodes": [],
        "gpuTopologyNodes": [],
        "normalNodes": [],
    }
    for node in sorted(nodes, key=lambda node: node.name):
        found[_KEYS[mode_of(node)]].append(_entry(node))
    return found


def _entry(node: GpuNode) -> dict[str, Any]:
    mode = mode_of(node)
    common = {
        "name": node.name,
        "description": description(mode),
        "ip": node.address or "N/A",
        "status": status_of(node),
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
        for holder in sorted(node.holders, key=lambda each: (each.namespace, each.pod))
    ]
    links = {
        "gpuTopology": {
            "linkMatrix": link_words(node),
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
    shown = mode is NodeMode.TOPOLOGY
    return {
        **common,
        **counted,
        "instances": instances,
        **(links if shown else {}),
        **(devices if shown else {}),
    }


def _instance(holder: Holder, node: GpuNode) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": holder.pod,
        "namespace": holder.namespace,
        "status": holder.phase,
        "requestGPUs": holder.gpus,
    }
    if mode_of(node) is NodeMode.TOPOLOGY:
        mates = [each for each in node.holders if each is holder or (holder.job and each.job == holder.job)]
        entry["allocation"] = [str(index) for index in holder.indices or ()]
        entry["visibleGPUs"] = [
            str(index) for index in sorted({at for each in mates for at in each.indices or ()})
        ]
    return entry
