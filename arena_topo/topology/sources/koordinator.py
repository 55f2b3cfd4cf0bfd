"""Koordinator: a Device object for each node, and pod annotations of GPUs in use.

It tells NUMA and PCIe ids of every GPU but no NVLinks; those are filled in as usual for the product.
Sources: Koordinator 1.8, apis/scheduling/v1alpha1/device_types.go, apis/extension/device_share.go.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from arena_topo.model.cluster.hardware import Gpu, Nic
from arena_topo.topology.hardware.link_graph import build_graph, guess_generation, machine_type, pcie_word
from arena_topo.topology.hardware.products import find_product
from arena_topo.topology.hardware.usual_wiring import fill_direct, usual_words
from arena_topo.topology.raw_objects import (
    Malformed,
    RawObject,
    age,
    annotations,
    document,
    identity,
    items,
    labels,
    mapping,
    name,
    optional,
    quantity,
    text,
    whole,
    whole_list,
)
from arena_topo.topology.reading import PodKey, Reading, Trust

PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
ALLOCATED = "scheduling.koordinator.sh/device-allocated"
MODEL = "node.koordinator.sh/gpu-model"
_MEMORY = "koordinator.sh/gpu-memory"
_MIB = 2**20


def read_device(raw: RawObject, now: datetime | None = None, product: str = "") -> Iterator[Reading]:
    """Yield the reading of a Device object; *product* is the node's GPU where its labels name it.

    Raises ``Malformed`` naming the key.
    """
    model = product or labels(raw).get(MODEL, "")
    devices = items(mapping(raw, "spec"), "devices")
    gpus = sorted(
        (_gpu(each, model) for each in devices if each.get("type") == "gpu"), key=lambda gpu: gpu.index
    )
    if not gpus:
        return
    if [gpu.index for gpu in gpus] != list(range(len(gpus))):
        raise Malformed(f"spec.devices numbers its GPUs {[gpu.index for gpu in gpus]}")
    words = [["X" if a is b else pcie_word(a, b) for b in gpus] for a in gpus]
    known = find_product(model) if model else None
    linked = _linked_pairs(raw, len(gpus))
    filled = (linked is None or bool(linked)) and fill_direct(words, usual_words(model, len(gpus)))
    if linked and not filled:
        for a, b in linked:
            words[a][b] = words[b][a] = "?"
    graph = build_graph(words, known.generation if known else guess_generation(words), known, "spec.devices")
    yield Reading(
        node=name(raw),
        source=f"{identity(raw)} spec.devices",
        trust=Trust.KOORDINATOR,
        age=age(raw, now),
        machine=machine_type(graph, known.name if known else ""),
        gpus=tuple(gpus),
        links=graph,
        nics=tuple(_nic(each) for each in devices if each.get("type") == "rdma"),
        users=dict(_allocations(raw)),
        assumptions=("NVLinks as usual for the product",) if filled else (),
    )


def pod_gpus(written: Mapping[str, str]) -> tuple[int, ...] | None:
    """Return the GPUs that Koordinator gave a pod, or None; raises ``Malformed``."""
    if ALLOCATED not in written:
        return None
    value = document(written, ALLOCATED)
    if not isinstance(value, dict):
        raise Malformed(f"{ALLOCATED} is no object")
    return tuple(sorted(whole(each, "minor") for each in items(value, "gpu"))) or None


def _gpu(raw: RawObject, product: str) -> Gpu:
    place = mapping(raw, "topology")
    mebibytes = (quantity(mapping(raw, "resources"), _MEMORY, _MEMORY) or 0) // _MIB
    node = whole(place, "nodeID", -1)
    return Gpu(
        index=whole(raw, "minor"),
        uuid=text(raw, "id"),
        product=product,
        memory=mebibytes,
        numa=node if node >= 0 else None,
        pcie_root=str(place.get("pcieID", "")),
        healthy=raw.get("health") is True,
    )


def _nic(raw: RawObject) -> Nic:
    place = mapping(raw, "topology")
    node = whole(place, "nodeID", -1)
    return Nic(str(place.get("busID") or raw.get("id") or ""), node if node >= 0 else None)


def _linked_pairs(raw: RawObject, size: int) -> list[tuple[int, int]] | None:
    """Return the pairs of GPUs that the partition table calls NVLink partitions, None where there is no table."""
    if PARTITIONS not in annotations(raw):
        return None
    table = document(annotations(raw), PARTITIONS)
    if not isinstance(table, dict):
        raise Malformed(f"{PARTITIONS} is no object")
    pairs = set()
    for key in table:
        for each in items(table, key):
            minors = whole_list(each.get("minors"), f"{PARTITIONS} minors")
            if any(minor not in range(size) for minor in minors):
                raise Malformed(f"{PARTITIONS} names GPUs {list(minors)} of {size}")
            if str(each.get("gpuLinkType", "")).startswith("NV"):
                pairs |= {(a, b) for a in minors for b in minors if a < b}
    return sorted(pairs)


def _allocations(raw: RawObject) -> Iterator[tuple[PodKey, tuple[int, ...]]]:
    for group in items(mapping(raw, "status"), "allocations"):
        if group.get("type") != "gpu":
            continue
        for entry in items(group, "entries"):
            minors = whole_list(entry.get("minors"), "status.allocations entries.minors")
            yield (optional(entry, "namespace"), text(entry, "name")), tuple(sorted(minors))
