"""Dynamic Resource Allocation: ResourceSlices of NVIDIA's and DraNet's drivers, and allocated ResourceClaims.

Attributes differ by driver version: 25.3 has ``index``, ``minor`` and ``pcieBusID``; 25.8 drops the numbers
and adds ``resource.kubernetes.io/pcieRoot``; 25.12 calls the bus id ``resource.kubernetes.io/pciBusID``. No
version publishes NVLinks. Sources: k8s.io/api/resource v1beta1, v1beta2 and v1; NVIDIA/k8s-dra-driver-gpu,
cmd/gpu-kubelet-plugin/deviceinfo.go; google/dranet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Nic
from arena_topo.model.keys import DRA_GPU
from arena_topo.model.text.documents import items, mapping, take
from arena_topo.model.text.json import MOST_NUMBER, shown
from arena_topo.topology.hardware import fill_gpu_links, pcie_word, wiring
from arena_topo.topology.objects import (
    MOST_GPUS,
    PodKey,
    RawObject,
    Reading,
    Trust,
    age,
    digits,
    identity,
    quantity,
    read_each,
    skipped,
)

_NIC_DRIVER = "dra.net"
_SLICE = "ResourceSlice"
_STANDARD = "resource.kubernetes.io/"
_MIB = 2**20
_NUMBERED = re.compile(r"gpu-(\d+)")

_DeviceKey = tuple[str, str, str]
"""A device by driver, pool and name."""


@dataclass(frozen=True, slots=True)
class _Device:
    """A device of a slice with its attributes as plain values."""

    key: _DeviceKey
    source: str
    age: float | None
    values: Mapping[str, Any]
    memory: int


def read_dra(
    slices: Iterable[RawObject], claims: Iterable[RawObject], warnings: list[str], now: datetime | None = None
) -> Iterator[Reading]:
    """Yield the readings of all nodes that publish GPUs as slices; unreadable objects become *warnings*."""
    gpus: dict[str, list[_Device]] = {}
    nics: dict[str, list[_Device]] = {}
    for node, device in read_each(
        _of_newest_generation(slices, warnings), lambda raw: _devices(raw, now), warnings, _SLICE
    ):
        if device.key[0] == _NIC_DRIVER:
            nics.setdefault(node, []).append(device)
        # The driver publishes MIG slices and devices for virtual machines too; they are not whole GPUs.
        elif device.values.get("type", "gpu") == "gpu":
            gpus.setdefault(node, []).append(device)
    holders = dict(read_each(claims, _allocated, warnings, "ResourceClaim"))
    for node, devices in sorted(gpus.items()):
        try:
            yield _reading(node, sorted(devices, key=_index), nics.get(node, []), holders)
        except DocumentError as error:
            warnings.append(skipped(devices[0].source, error))


def _pool(raw: RawObject) -> Iterator[tuple[str, str, int, RawObject]]:
    spec = mapping(raw, "spec")
    pool = mapping(spec, "pool")
    yield (
        take(spec, "driver", str, ""),
        take(pool, "name", str, ""),
        take(pool, "generation", int, 0),
        raw,
    )


def _of_newest_generation(slices: Iterable[RawObject], warnings: list[str]) -> list[RawObject]:
    """Return the slices of the newest generation of each pool; a driver is about to delete the older ones."""
    pools: dict[tuple[str, str], dict[int, list[RawObject]]] = {}
    for driver, pool, generation, raw in read_each(slices, _pool, warnings, _SLICE):
        pools.setdefault((driver, pool), {}).setdefault(generation, []).append(raw)
    return [raw for generations in pools.values() for raw in generations[max(generations)]]


def _devices(raw: RawObject, now: datetime | None) -> Iterator[tuple[str, _Device]]:
    spec = mapping(raw, "spec")
    driver, node = take(spec, "driver", str, ""), take(spec, "nodeName", str, "")
    # Slices without a node are those of devices that several nodes can reach.
    if driver not in (DRA_GPU, _NIC_DRIVER) or not node:
        return
    pool, seconds = take(mapping(spec, "pool"), "name", str), age(raw, now)
    for entry in items(spec, "devices"):
        body = mapping(entry, "basic") or entry  # v1beta1 has another level
        # A driver may leave its own domain out of the names of its attributes; both spellings mean the same.
        values = {
            key.removeprefix(f"{driver}/"): _plain(value, key)
            for key, value in mapping(body, "attributes").items()
        }
        key = (driver, pool, take(entry, "name", str))
        yield node, _Device(key, identity(raw, _SLICE), seconds, values, _memory(mapping(body, "capacity")))


def _plain(value: object, key: str) -> Any:
    """Return the one value of an attribute such as ``{"string": "GPU-..."}``."""
    if not isinstance(value, Mapping) or len(value) != 1:
        raise DocumentError(f"attribute {key} is {shown(value)}, expected one typed value")
    return next(iter(value.values()))


def _memory(capacity: RawObject) -> int:
    nested = isinstance(capacity.get("memory"), Mapping)  # since v1beta1; before, the quantity itself
    obj, key = (mapping(capacity, "memory"), "value") if nested else (capacity, "memory")
    try:
        return (quantity(obj, key, "memory") or 0) // _MIB
    except DocumentError as error:
        raise DocumentError(f"capacity memory: {error}") from error


def _index(device: _Device) -> int:
    """Return the index of a GPU: its attribute, or else the minor number that its name holds."""
    # Names are an implementation detail of the driver, so they come last.
    for key in ("index", "minor"):
        if key in device.values:
            return take(device.values, key, int)
    numbered = _NUMBERED.fullmatch(device.key[2])
    if numbered is None:
        raise DocumentError(f"device {device.key[2]} has neither index nor minor number")
    return digits(numbered.group(1), "device")


def _reading(
    node: str, devices: list[_Device], nics: list[_Device], holders: Mapping[_DeviceKey, PodKey | None]
) -> Reading:
    if len(devices) > MOST_GPUS:
        raise DocumentError(f"{len(devices)} GPUs on node {node}, more than any node has")
    gpus = tuple(_gpu(index, device, nics) for index, device in enumerate(devices))
    words = [["X" if a is b else pcie_word(a, b) for b in gpus] for a in gpus]
    product = gpus[0].product
    assumptions = fill_gpu_links(words, product)
    graph, machine, assumed_rates = wiring(words, product, devices[0].source)
    users: dict[PodKey, tuple[int, ...]] = {}
    for index, device in enumerate(devices):
        if device.key in holders:
            # A claim can be allocated before, and after, a pod holds it; its devices are taken anyway.
            pod = holders[device.key] or ("", "")
            users[pod] = (*users.get(pod, ()), index)
    return Reading(
        node=node,
        source=f"{devices[0].source} spec.devices",
        trust=Trust.DRA,
        age=devices[0].age,
        machine=machine,
        gpus=gpus,
        links=graph,
        nics=tuple(_nic(device) for device in nics),
        users=users,
        assumptions=assumptions,
        assumed_rates=assumed_rates,
    )


def _gpu(index: int, device: _Device, nics: list[_Device]) -> Gpu:
    values = device.values
    root = _text(values, f"{_STANDARD}pcieRoot")
    nearest = [_nic(nic).name for nic in nics if root and nic.values.get(f"{_STANDARD}pcieRoot") == root]
    numa = values.get(f"{_STANDARD}numaNode", values.get("numa"))
    return Gpu(
        index=index,
        uuid=_text(values, "uuid"),
        product=_text(values, "productName"),
        memory=device.memory,
        numa=_numa_node(numa),
        pcie_root=root,
        nics=tuple(nearest),
    )


def _nic(device: _Device) -> Nic:
    numa = device.values.get(f"{_STANDARD}numaNode", device.values.get("numaNode"))
    return Nic(_text(device.values, "ifName") or device.key[2], _numa_node(numa))


def _text(values: Mapping[str, Any], key: str) -> str:
    # Attributes are typed by their drivers; one of another type says nothing that could be shown.
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _numa_node(value: object) -> int | None:
    # The kernel says -1 where it knows no NUMA node, and the standard attribute may also be a list.
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= MOST_NUMBER else None  # type: ignore[operator,return-value]  # a number


def holders_of(raw: RawObject) -> Iterator[PodKey]:
    """Yield the pods that hold a claim; raises ``DocumentError``."""
    namespace = take(mapping(raw, "metadata"), "namespace", str, "")
    for consumer in items(mapping(raw, "status"), "reservedFor"):
        if consumer.get("resource") == "pods":
            yield namespace, take(consumer, "name", str)


def _allocated(raw: RawObject) -> Iterator[tuple[_DeviceKey, PodKey | None]]:
    """Yield the devices of an allocated claim and the pod that holds it; None while no pod does."""
    status = mapping(raw, "status")
    holder = next(iter(holders_of(raw)), None)
    for result in items(mapping(mapping(status, "allocation"), "devices"), "results"):
        if result.get("adminAccess") is not True:  # monitoring, which takes nothing away
            yield (
                (take(result, "driver", str), take(result, "pool", str), take(result, "device", str)),
                holder,
            )
