"""Dynamic Resource Allocation: ResourceSlices of NVIDIA's and DraNet's drivers, and allocated ResourceClaims.

Attributes differ by driver version: 25.3 has ``index``, ``minor`` and ``pcieBusID``; 25.8 drops the numbers and
adds ``resource.kubernetes.io/pcieRoot``; 25.12 calls the bus id ``resource.kubernetes.io/pciBusID``. No version
tells NVLinks. Sources: k8s.io/api/resource v1beta1, v1beta2, v1; k8s-dra-driver-gpu, deviceinfo.go.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from arena_topo.model.cluster.hardware import Gpu, Nic
from arena_topo.topology.hardware.link_graph import build_graph, guess_generation, machine_type, pcie_word
from arena_topo.topology.hardware.products import find_product
from arena_topo.topology.hardware.usual_wiring import fill_direct, usual_words
from arena_topo.topology.raw_objects import (
    Malformed,
    RawObject,
    age,
    each_readable,
    identity,
    items,
    mapping,
    optional,
    quantity,
    text,
    whole,
)
from arena_topo.topology.reading import PodKey, Reading, Trust

GPU_DRIVER = "gpu.nvidia.com"
NIC_DRIVER = "dra.net"
_SLICE = "ResourceSlice"
_STANDARD = "resource.kubernetes.io/"
_MIB = 2**20
_NUMBERED = re.compile(r"gpu-(\d+)")

DeviceKey = tuple[str, str, str]
"""A device by driver, pool and name."""


@dataclass(frozen=True, slots=True)
class _Device:
    """A device of a slice with its attributes as plain values."""

    key: DeviceKey
    source: str
    age: float | None
    values: Mapping[str, Any]
    memory: int


@dataclass(frozen=True, slots=True)
class DraReadings:
    """What the slices and claims of a cluster tell: readings of nodes, and the device names of their GPUs."""

    readings: tuple[Reading, ...]
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_dra(
    slices: Iterable[RawObject], claims: Iterable[RawObject], warnings: list[str], now: datetime | None = None
) -> DraReadings:
    """Return the readings of all nodes that publish GPUs as slices; unreadable objects become *warnings*."""
    gpus: dict[str, list[_Device]] = {}
    nics: dict[str, list[_Device]] = {}
    for node, device in each_readable(
        _newest(slices, warnings), lambda raw: _devices(raw, now), warnings, _SLICE
    ):
        if device.key[0] == NIC_DRIVER:
            nics.setdefault(node, []).append(device)
        elif device.values.get("type", "gpu") == "gpu":
            gpus.setdefault(node, []).append(device)
    holders = dict(each_readable(claims, _held, warnings, "ResourceClaim"))
    readings, names = [], {}
    for node, devices in sorted(gpus.items()):
        try:
            ordered = sorted(devices, key=_number)
            readings.append(_reading(node, ordered, nics.get(node, []), holders))
            names[node] = tuple(device.key[2] for device in ordered)
        except Malformed as error:
            warnings.append(f"{devices[0].source}: {error}; skipped")
    return DraReadings(tuple(readings), names)


def _pool(raw: RawObject) -> Iterator[tuple[str, str, int, RawObject]]:
    spec = mapping(raw, "spec")
    pool = mapping(spec, "pool")
    yield optional(spec, "driver"), optional(pool, "name"), whole(pool, "generation", 0), raw


def _newest(slices: Iterable[RawObject], warnings: list[str]) -> list[RawObject]:
    """Return the slices of the newest generation of each pool; older ones are being replaced."""
    newest: dict[tuple[str, str], tuple[int, list[RawObject]]] = {}
    for driver, pool, generation, each in each_readable(slices, _pool, warnings, _SLICE):
        key = (driver, pool)
        best = newest.get(key, (-1, []))
        if generation > best[0]:
            newest[key] = (generation, [each])
        elif generation == best[0]:
            best[1].append(each)
    return [each for _, group in newest.values() for each in group]


def _devices(raw: RawObject, now: datetime | None) -> Iterator[tuple[str, _Device]]:
    spec = mapping(raw, "spec")
    driver, node = optional(spec, "driver"), optional(spec, "nodeName")
    if driver not in (GPU_DRIVER, NIC_DRIVER) or not node:
        return
    pool, written = text(mapping(spec, "pool"), "name"), age(raw, now)
    for each in items(spec, "devices"):
        body = mapping(each, "basic") or each
        values = {
            key.removeprefix(f"{driver}/"): _plain(value, key)
            for key, value in mapping(body, "attributes").items()
        }
        key = (driver, pool, text(each, "name"))
        yield node, _Device(key, identity(raw, _SLICE), written, values, _memory(mapping(body, "capacity")))


def _plain(value: object, key: str) -> Any:
    """Return the one value of an attribute such as ``{"string": "GPU-..."}``."""
    if not isinstance(value, Mapping) or len(value) != 1:
        raise Malformed(f"attribute {key} is {value!r}, expected one typed value")
    return next(iter(value.values()))


def _memory(capacity: RawObject) -> int:
    nested = isinstance(capacity.get("memory"), Mapping)
    holder, key = (mapping(capacity, "memory"), "value") if nested else (capacity, "memory")
    try:
        return (quantity(holder, key, "memory") or 0) // _MIB
    except Malformed as error:
        raise Malformed(f"capacity memory: {error}") from error


def _number(device: _Device) -> int:
    """Return the index of a GPU: as told, else by its name, which holds its minor number."""
    for key in ("index", "minor"):
        if key in device.values:
            return whole(device.values, key)
    numbered = _NUMBERED.fullmatch(device.key[2])
    if numbered is None:
        raise Malformed(f"device {device.key[2]} has neither index nor minor number")
    return int(numbered.group(1))


def _reading(
    node: str, devices: list[_Device], nics: list[_Device], holders: Mapping[DeviceKey, PodKey | None]
) -> Reading:
    gpus = tuple(_gpu(index, device, nics) for index, device in enumerate(devices))
    words = [["X" if a is b else pcie_word(a, b) for b in gpus] for a in gpus]
    product = gpus[0].product
    known = find_product(product) if product else None
    filled = fill_direct(words, usual_words(product, len(gpus)))
    graph = build_graph(
        words, known.generation if known else guess_generation(words), known, devices[0].source
    )
    users: dict[PodKey, tuple[int, ...]] = {}
    for index, device in enumerate(devices):
        pod = holders.get(device.key)
        if device.key in holders:
            users[pod or ("", "")] = (*users.get(pod or ("", ""), ()), index)
    return Reading(
        node=node,
        source=f"{devices[0].source} spec.devices",
        trust=Trust.DRA,
        age=devices[0].age,
        machine=machine_type(graph, known.name if known else ""),
        gpus=gpus,
        links=graph,
        nics=tuple(_nic(device) for device in nics),
        users=users,
        assumptions=("NVLinks as usual for the product",) if filled else (),
    )


def _gpu(index: int, device: _Device, nics: list[_Device]) -> Gpu:
    values = device.values
    root = values.get(f"{_STANDARD}pcieRoot", "")
    near = [_nic(nic).name for nic in nics if root and nic.values.get(f"{_STANDARD}pcieRoot") == root]
    numa = values.get(f"{_STANDARD}numaNode", values.get("numa"))
    return Gpu(
        index=index,
        uuid=str(values.get("uuid", "")),
        product=str(values.get("productName", "")),
        memory=device.memory,
        numa=numa if isinstance(numa, int) and numa >= 0 else None,
        pcie_root=str(root),
        nics=tuple(near),
    )


def _nic(device: _Device) -> Nic:
    numa = device.values.get(f"{_STANDARD}numaNode", device.values.get("numaNode"))
    return Nic(
        str(device.values.get("ifName") or device.key[2]),
        numa if isinstance(numa, int) and numa >= 0 else None,
    )


def holders_of(raw: RawObject) -> Iterator[PodKey]:
    """Yield the pods that hold a claim; raises ``Malformed``."""
    namespace = optional(mapping(raw, "metadata"), "namespace")
    for each in items(mapping(raw, "status"), "reservedFor"):
        if each.get("resource") == "pods":
            yield namespace, text(each, "name")


def _held(raw: RawObject) -> Iterator[tuple[DeviceKey, PodKey | None]]:
    """Yield the devices of an allocated claim and the pod that holds it; None while no pod does."""
    status = mapping(raw, "status")
    holder = next(iter(holders_of(raw)), None)
    for result in items(mapping(mapping(status, "allocation"), "devices"), "results"):
        if result.get("adminAccess") is not True:
            yield (text(result, "driver"), text(result, "pool"), text(result, "device")), holder
