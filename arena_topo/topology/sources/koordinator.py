"""Koordinator: a Device object for each node, and annotations of the pods that hold GPUs.

A Device has NUMA node and PCIe root of every GPU but no NVLinks; those are taken as usual for the product,
unless the partition table of an NVLink machine says which GPUs are linked. Sources:
koordinator-sh/koordinator 1.8, apis/scheduling/v1alpha1/device_types.go and apis/extension/device_share.go.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Nic
from arena_topo.model.keys import KOORDINATOR_DEVICES
from arena_topo.model.text.documents import items, mapping, take
from arena_topo.model.text.json import shown
from arena_topo.topology.hardware import fill_gpu_links, pcie_word, wiring
from arena_topo.topology.objects import (
    MOST_GPUS,
    PodKey,
    RawObject,
    Reading,
    Trust,
    age,
    annotations,
    gpu_indices,
    identity,
    json_mapping,
    labels,
    name,
    quantity,
    whole_numbers,
)

PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
_MODEL = "node.koordinator.sh/gpu-model"
_MEMORY = "koordinator.sh/gpu-memory"
_MIB = 2**20


def read_device(raw: RawObject, now: datetime | None = None, product: str = "") -> Iterator[Reading]:
    """Yield the reading of a Device object; *product* is the node's GPU product where its labels name it.

    Raises ``DocumentError`` naming the key.
    """
    model = product or labels(raw).get(_MODEL, "")
    devices = items(mapping(raw, "spec"), "devices")
    gpus = sorted(
        (_gpu(device, model) for device in devices if device.get("type") == "gpu"),
        key=lambda gpu: gpu.index,
    )
    if not gpus:
        return
    if len(gpus) > MOST_GPUS or [gpu.index for gpu in gpus] != list(range(len(gpus))):
        raise DocumentError(
            f"spec.devices numbers its GPUs {shown([gpu.index for gpu in gpus])}, expected 0, 1, ..."
        )
    words = [["X" if a is b else pcie_word(a, b) for b in gpus] for a in gpus]
    linked = _linked_pairs(raw, len(gpus))
    # A table without a single NVLink partition is a machine without NVLinks, whatever its product usually
    # has.
    assumptions = fill_gpu_links(words, model) if linked is None or linked else ()
    if linked and not assumptions:
        for a, b in linked:  # linked by an unknown number of NVLinks
            words[a][b] = words[b][a] = "?"
    graph, machine, assumed_rates = wiring(words, model, "spec.devices")
    yield Reading(
        node=name(raw),
        source=f"{identity(raw)} spec.devices",
        trust=Trust.KOORDINATOR,
        age=age(raw, now),
        machine=machine,
        gpus=tuple(gpus),
        links=graph,
        nics=tuple(_nic(device) for device in devices if device.get("type") == "rdma"),
        users=dict(_allocations(raw)),
        assumptions=assumptions,
        assumed_rates=assumed_rates,
    )


def pod_gpus(annotations: Mapping[str, str]) -> tuple[int, ...] | None:
    """Return the GPUs that Koordinator gave a pod, or None; raises ``DocumentError``."""
    if KOORDINATOR_DEVICES not in annotations:
        return None
    value = json_mapping(annotations, KOORDINATOR_DEVICES)
    # The annotation lists NICs too; a pod that has only those holds no GPUs.
    minors = (take(gpu, "minor", int) for gpu in items(value, "gpu"))
    return gpu_indices(minors, f"{KOORDINATOR_DEVICES} gpu minor") or None


def _gpu(raw: RawObject, product: str) -> Gpu:
    place = mapping(raw, "topology")
    mebibytes = (quantity(mapping(raw, "resources"), _MEMORY, _MEMORY) or 0) // _MIB
    node, socket = take(place, "nodeID", int, -1), take(place, "socketID", int, -1)
    return Gpu(
        index=take(raw, "minor", int),
        uuid=take(raw, "id", str),
        product=product,
        memory=mebibytes,
        numa=node if node >= 0 else None,
        pcie_root=take(place, "pcieID", str, ""),
        healthy=raw.get("health") is True,
        socket=socket if node < 0 <= socket else None,
    )


def _nic(raw: RawObject) -> Nic:
    place = mapping(raw, "topology")
    node = take(place, "nodeID", int, -1)
    name = take(place, "busID", str, "") or take(raw, "id", str, "")
    return Nic(name, node if node >= 0 else None)


def _linked_pairs(raw: RawObject, size: int) -> list[tuple[int, int]] | None:
    """Return the pairs of GPUs within NVLink partitions of the partition table, or None if there is no table.

    The table lists partitions by their size: ``{"2": [{"minors": [0, 1], "gpuLinkType": "NVLink"}]}``.
    """
    if PARTITIONS not in annotations(raw):
        return None
    table = json_mapping(annotations(raw), PARTITIONS)
    pairs = set()
    for key in table:
        for partition in items(table, key):
            minors = whole_numbers(partition.get("minors"), f"{PARTITIONS} minors")
            if any(minor not in range(size) for minor in minors):
                raise DocumentError(f"{PARTITIONS} names GPUs {shown(list(minors))} of {size}")
            if str(partition.get("gpuLinkType", "")).startswith("NV"):
                pairs |= {(a, b) for a in minors for b in minors if a < b}
    return sorted(pairs)


def _allocations(raw: RawObject) -> Iterator[tuple[PodKey, tuple[int, ...]]]:
    for group in items(mapping(raw, "status"), "allocations"):
        if group.get("type") != "gpu":
            continue
        for entry in items(group, "entries"):
            minors = whole_numbers(entry.get("minors"), "status.allocations entries.minors")
            pod = take(entry, "namespace", str, ""), take(entry, "name", str)
            yield pod, gpu_indices(minors, "status.allocations entries.minors")
