"""Labels of GPU feature discovery and similar labellers, with the usual wiring of the product that they name.

Everything about links rests on the product table and is marked as assumed. Sources: NVIDIA/k8s-device-plugin,
docs/gpu-feature-discovery; ROCm/k8s-device-plugin, node labeller; the node labels that ACK's and GKE's guides
list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, ShareMode
from arena_topo.topology.hardware import usual_hardware
from arena_topo.topology.objects import MOST_GPUS, NodeFacts, Reading, Trust, digits

_PRODUCT = "nvidia.com/gpu.product"
_COUNT = "nvidia.com/gpu.count"
_MEMORY = "nvidia.com/gpu.memory"
_MACHINE = "nvidia.com/gpu.machine"
_REPLICAS = "nvidia.com/gpu.replicas"
_PRODUCTS = (_PRODUCT, "amd.com/gpu.product-name", "aliyun.accelerator/nvidia_name")
_GKE = "cloud.google.com/gke-accelerator"
_GKE_PRODUCTS = {
    "nvidia-tesla-t4": "Tesla-T4",
    "nvidia-l4": "NVIDIA-L4",
    "nvidia-tesla-v100": "Tesla-V100-SXM2-16GB",
    "nvidia-tesla-a100": "NVIDIA-A100-SXM4-40GB",
    "nvidia-a100-80gb": "NVIDIA-A100-SXM4-80GB",
    "nvidia-h100-80gb": "NVIDIA-H100-80GB-HBM3",
    "nvidia-h100-mega-80gb": "NVIDIA-H100-80GB-HBM3",
    "nvidia-h200-141gb": "NVIDIA-H200",
    "nvidia-b200": "NVIDIA-B200",
    "nvidia-gb200": "NVIDIA-GB200",
}
_COUNTS = (_COUNT, "aliyun.accelerator/nvidia_count")
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def product_of(labels: Mapping[str, str]) -> str:
    """Return the GPU product that a node's labels name, or an empty string."""
    for key in _PRODUCTS:
        if labels.get(key):
            return labels[key]
    # GKE's own label has names of its own.
    return _GKE_PRODUCTS.get(labels.get(_GKE, ""), "")


def read_labels(node: NodeFacts, capacity: int) -> Iterator[Reading]:
    """Yield what a node's labels say of its GPUs; *capacity* counts them where no label does.

    Raises ``DocumentError`` naming the label.
    """
    product = product_of(node.labels)
    replicas = _number(node.labels, (_REPLICAS,), 1)
    # Time-slicing offers each GPU several times, so capacity counts replicas.
    count = _number(node.labels, _COUNTS, capacity // max(replicas, 1))
    if not product or count < 1:
        return
    if count > MOST_GPUS:
        raise DocumentError(f"labels and capacity count {count} GPUs, more than any node has")
    key = next((key for key in _PRODUCTS if key in node.labels), _GKE)
    source = f"Node {node.name} label {key}"
    if "-MIG-" in product:  # parts of GPUs, between which there are no links
        gpus = tuple(Gpu(index=index, product=product, mode=ShareMode.MIG) for index in range(count))
        yield Reading(node=node.name, source=source, trust=Trust.PRODUCT_TABLE, machine="", gpus=gpus)
        return
    usual = usual_hardware(product, count, node.labels.get(_MACHINE) or node.labels.get(_INSTANCE_TYPE, ""))
    memory = _number(node.labels, (_MEMORY,), 0)
    # By its settings the device plugin marks sharing in the product's name, or in the replicas only.
    shared = replicas > 1 or product.endswith("-SHARED")
    gpus = usual.gpus
    if memory or shared:
        mode = ShareMode.SHARED if shared else ShareMode.WHOLE
        gpus = tuple(replace(gpu, memory=memory or gpu.memory, mode=mode) for gpu in gpus)
    yield Reading(
        node=node.name,
        source=source,
        trust=Trust.PRODUCT_TABLE,
        machine=usual.machine,
        gpus=gpus,
        links=usual.links,
        nics=usual.nics,
        assumptions=usual.assumptions,
    )


def _number(labels: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    for key in names:
        if key in labels:
            return digits(labels[key], f"label {key}")
    return default
