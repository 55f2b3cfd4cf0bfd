"""The pods of an imported node: those that hold GPUs, and what all others take there together."""

from collections.abc import Mapping

from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.model.keys import GPU_RESOURCES, NVIDIA_GPU, OPERATOR_JOB_NAME
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.objects import Object
from arena_topo.sandbox.imported.sources import agent_tells_users
from arena_topo.topology.sources.ack import GROUP

_OTHERS = "kube-system"


def gpu_resource(node: GpuNode) -> str:
    """Return the resource by which *node* offers GPUs in the sandbox, where claims are not allocated."""
    return node.gpu_resource if node.gpu_resource in GPU_RESOURCES else NVIDIA_GPU


def quantities(amounts: Resources) -> dict[str, str]:
    """Return *amounts* as the quantities of an object."""
    return {name: f"{value}m" if name == "cpu" else str(value) for name, value in amounts.items()}


def pod_objects(node: GpuNode) -> list[Object]:
    """Return the pods of *node*; what is not GPUs is asked by the first of them, or by one that has none."""
    rest = {
        name: value
        for name, value in node.requested.items()
        if value and name not in (node.gpu_resource, gpu_resource(node), "pods")
    }
    marked = not agent_tells_users(node)
    held = [(holder, {gpu_resource(node): holder.gpus}) for holder in node.holders]
    if not held:
        return [_pod(_OTHERS, f"imported-{node.name}", node, rest)] if rest else []
    return [
        _pod(holder.namespace, holder.pod, node, {**gpus, **(rest if not at else {})}, holder, marked=marked)
        for at, (holder, gpus) in enumerate(held)
    ]


def _pod(
    namespace: str,
    name: str,
    node: GpuNode,
    requests: Mapping[str, int],
    holder: Holder | None = None,
    *,
    marked: bool = False,
) -> Object:
    meta: Object = {"name": name, "namespace": namespace or "default"}
    if holder is not None and holder.job:
        meta["labels"] = {OPERATOR_JOB_NAME: holder.job}
    if holder is not None and holder.indices and marked:
        meta["annotations"] = {GROUP: ",".join(map(str, holder.indices))}
    container = {
        "name": "main",
        "image": "imported",
        "command": ["sleep", "infinity"],
        "resources": {"limits": quantities(requests)},
    }
    spec = {"nodeName": node.name, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
