"""Which pods hold which devices, by the kubelet's pod-resources socket.

The API is gRPC, ``v1.PodResourcesLister/List``. Four fields of its messages are needed, so that they are read
by hand here instead of by generated code and the protobuf package. Source:
k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from arena_topo.errors import ArenaTopoError
from arena_topo.model.cluster import Gpu, Hardware, Nic, ShareMode
from arena_topo.topology.hardware import wiring
from arena_topo.topology.objects import PodKey

# PCI devices in the kernel's ``/sys``: their NUMA nodes and PCIe roots, and which NICs are near which GPUs.

_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec")
_BITS = 8
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A PCI device: its NUMA node, and the path from its PCIe root down to it."""

    numa: int | None = None
    path: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The name of its PCIe root, for example ``pci0000:3a``."""
        return self.path[0] if self.path else ""


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """An RDMA network card and its PCI device."""

    nic: Nic
    pci: PciDevice


def _pci_device(sysfs: str, bus: str) -> PciDevice:
    """Return the device with the bus id *bus*."""
    # NVML writes the domain with eight digits, the kernel with four.
    short = bus[4:] if re.match(r"[0-9a-f]{8}:", bus) else bus
    return _read_device(Path(sysfs, "bus/pci/devices", short))


def _network_cards(sysfs: str) -> list[NetworkCard]:
    """Return the RDMA network cards, in the order of their names; rates in GB/s of their fastest port."""
    folder = Path(sysfs, "class/infiniband")
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    cards = []
    # mlx5_10 comes after mlx5_9.
    for name in sorted(names, key=lambda name: (len(name), name)):
        pci = _read_device(folder / name / "device")
        rates = [_rate(port) for port in (folder / name / "ports").glob("*/rate")]
        cards.append(NetworkCard(Nic(name, pci.numa, max(rates, default=0.0)), pci))
    return cards


def _near_nics(gpu: PciDevice, cards: Sequence[NetworkCard]) -> list[str]:
    """Return the names of the cards nearest to *gpu*: below the deepest common bridge, else on its NUMA node.

    A GPU at ``pci0000:3a/3a:00.0/3b:00.0/3c:00.0`` has two bridges above it in common with a card at
    ``pci0000:3a/3a:00.0/3d:00.0``, and none with one at ``pci0000:5d``.
    """
    depth = {card.nic.name: _common_depth(gpu.path, card.pci.path) for card in cards}
    deepest = max(depth.values(), default=0)
    if deepest:
        return [name for name, common in depth.items() if common == deepest]
    return [card.nic.name for card in cards if gpu.numa is not None and card.nic.numa == gpu.numa]


def _read_device(device: Path) -> PciDevice:
    # The links of /sys lead into /sys/devices, where the path to a device names every bridge above it.
    parts = device.resolve().parts
    root = next((index for index, part in enumerate(parts) if _ROOT.fullmatch(part)), len(parts))
    try:
        numa = int((device / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        numa = -1  # as the kernel writes it for a device without a NUMA node
    return PciDevice(numa if numa >= 0 else None, parts[root:])


def _rate(port: Path) -> float:
    """Return the rate of a port in GB/s, from a text such as ``100 Gb/sec (4X EDR)``, 0 if unreadable."""
    try:
        match = _RATE.match(port.read_text(encoding="ascii"))
    except OSError:
        return 0.0
    return float(match.group(1)) / _BITS if match else 0.0


def _common_depth(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the number of leading steps that two paths have in common."""
    same = (one == other for one, other in zip(a, b, strict=False))
    return sum(1 for _ in takewhile(bool, same))


# GPUs and their links as NVML reports them, on machines where the NVIDIA driver runs.
#
# The library is passed in (``nvidia-ml-py``, imported as ``pynvml``), so that nothing here needs a GPU to be
# tested.

_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""The words of ``nvidia-smi topo -m`` for NVML's levels of a common ancestor (``nvmlGpuTopologyLevel_t``)."""

_TO_GPU = 0
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class _Device:
    """A GPU: its handle, its PCI bus id in lower case, and the number of its NVLinks to each bus id.

    Links into switches, and those whose end NVML does not report, count under the empty text.
    """

    handle: Any
    bus: str
    links: dict[str, int]


def read_hardware(nvml: Any, sysfs: str = "/sys") -> Hardware:
    """Return the hardware of this machine.

    *sysfs* is where the kernel's ``/sys`` is mounted; NUMA nodes, PCIe roots and NICs are read there. Raises
    ``ArenaTopoError`` when the driver does not answer, or has no GPU.
    """
    try:
        # NVML only counts further initializations, so every reading may begin with one.
        nvml.nvmlInit()
        devices = [_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        gpus = [_gpu(nvml, index, device) for index, device in enumerate(devices)]
        words = [[_link_word(nvml, a, b) for b in devices] for a in devices]
    except nvml.NVMLError as error:
        raise ArenaTopoError(
            f"the NVIDIA driver does not answer: {error}",
            hint="run the agent with the NVIDIA container runtime and NVIDIA_VISIBLE_DEVICES=all",
        ) from error
    if not gpus:
        raise ArenaTopoError("this machine has no NVIDIA GPU", hint="run the agent on nodes with GPUs only")
    pci_devices = [_pci_device(sysfs, device.bus) for device in devices]
    cards = _network_cards(sysfs)
    # Readers of the annotation find the same rates, and say what is assumed of them.
    graph, machine, _ = wiring(words, gpus[0].product, "NVML")
    return Hardware(
        gpus=tuple(
            _with_location(gpu, pci, _near_nics(pci, cards))
            for gpu, pci in zip(gpus, pci_devices, strict=True)
        ),
        links=graph,
        nics=tuple(card.nic for card in cards),
        machine=machine,
    )


def _device(nvml: Any, index: int) -> _Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    links: dict[str, int] = {}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(handle, link):
                continue
            target = _target(nvml, handle, link)
        except nvml.NVMLError:
            # NVML refuses the first link that the GPU does not have, and every link of a GPU without NVLink.
            break
        links[target] = links.get(target, 0) + 1
    # The kernel writes bus ids in lower case, NVML in upper case.
    return _Device(handle, _text(nvml.nvmlDeviceGetPciInfo(handle).busId).lower(), links)


def _target(nvml: Any, handle: Any, link: int) -> str:
    """Return the bus id of the GPU that a link leads to; an empty text for switches and unknown ends."""
    try:
        if nvml.nvmlDeviceGetNvLinkRemoteDeviceType(handle, link) != _TO_GPU:
            return ""
        return _text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link).busId).lower()
    except nvml.NVMLError:
        return ""


def _link_word(nvml: Any, a: _Device, b: _Device) -> str:
    """Return the word of ``nvidia-smi topo -m`` for the link between two GPUs."""
    if a is b:
        return "X"
    # Two GPUs with links into NVSwitches reach each other over as many links as the one that has fewer.
    count = a.links.get(b.bus, 0) or min(a.links.get("", 0), b.links.get("", 0))
    if count:
        return f"NV{count}"
    return _LEVELS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(a.handle, b.handle), "?")


def _gpu(nvml: Any, index: int, device: _Device) -> Gpu:
    return Gpu(
        index=index,
        uuid=_text(nvml.nvmlDeviceGetUUID(device.handle)),
        product=_text(nvml.nvmlDeviceGetName(device.handle)),
        memory=nvml.nvmlDeviceGetMemoryInfo(device.handle).total // _MIB,
        mode=_mode(nvml, device.handle),
    )


def _mode(nvml: Any, handle: Any) -> ShareMode:
    # GPUs before Ampere do not have MIG, and NVML refuses the question.
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return ShareMode.WHOLE
    return ShareMode.MIG if current else ShareMode.WHOLE


def _with_location(gpu: Gpu, pci: PciDevice, nics: Sequence[str]) -> Gpu:
    return replace(gpu, numa=pci.numa, pcie_root=pci.root, nics=tuple(nics))


def _text(value: str | bytes) -> str:
    """Return a text of NVML, which older bindings give as bytes."""
    return value.decode() if isinstance(value, bytes) else value


SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"
_REPLICA = "::"
"""Separates a GPU's UUID from the number of its replica, where NVIDIA's device plugin shares the GPU."""

_TIMEOUT = 10.0
"""Seconds for an answer of the kubelet on the same node."""

_LARGEST = 64 * 2**20
"""Bytes of an answer; gRPC's own limit of 4 MiB is too small for a node with many pods and devices."""


def list_pod_resources(grpc: Any, socket: str = SOCKET) -> bytes:
    """Return the kubelet's answer to List; *grpc* is the package ``grpc``. Raises ``ArenaTopoError``."""
    options = [("grpc.max_receive_message_length", _LARGEST)]
    # The kubelet serves plain gRPC on this socket, which the permissions of its folder protect.
    with grpc.insecure_channel(f"unix://{socket}", options=options) as channel:
        try:
            answer: bytes = channel.unary_unary(METHOD)(b"", timeout=_TIMEOUT)
        except grpc.RpcError as error:
            raise ArenaTopoError(
                f"the kubelet does not answer on {socket}: {error.details()}",
                hint="mount /var/lib/kubelet/pod-resources of the host into the agent's pod",
            ) from error
    return answer


def gpu_users(answer: bytes, uuids: Sequence[str], resources: Sequence[str]) -> dict[PodKey, tuple[int, ...]]:
    """Return the GPUs that each pod holds by one of *resources*; *uuids* gives the GPUs' order.

    Replicas of shared GPUs (``UUID::n``) count as their GPU; ids of other devices are skipped. Raises
    ``ArenaTopoError`` when *answer* is not such a message.
    """
    indices = {uuid: index for index, uuid in enumerate(uuids)}
    users: dict[PodKey, tuple[int, ...]] = {}
    for pod in _messages(answer, 1):
        # Slices of a GPU have UUIDs of their own (MIG-...), which are in no list of whole GPUs and drop out.
        devices = (device.partition(_REPLICA)[0] for device in _devices(pod, resources))
        gpus = {indices[device] for device in devices if device in indices}
        if gpus:
            namespace, name = _first_text(pod, 2), _first_text(pod, 1)
            users[namespace, name] = tuple(sorted(gpus))
    return users


def _devices(pod: bytes, resources: Sequence[str]) -> Iterator[str]:
    """Yield the device ids of all containers of a pod: PodResources.containers.devices.device_ids."""
    for container in _messages(pod, 3):
        for devices in _messages(container, 2):
            if _first_text(devices, 1) in resources:
                yield from (device.decode() for device in _messages(devices, 2))


def _first_text(message: bytes, number: int) -> str:
    """Return the first field *number* as text, empty if there is none."""
    return next((text.decode() for text in _messages(message, number)), "")


def _messages(message: bytes, number: int) -> Iterator[bytes]:
    """Yield the length-delimited fields *number* of a protobuf message.

    A key holds a field's number above its wire type: ``0a 02 68 69`` is field 1 of type 2, two bytes long,
    ``hi``. Source: protobuf.dev/programming-guides/encoding.
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        wire_type = key & 7
        # Fields of no interest are skipped by their size, so that newer kubelets may add fields.
        if wire_type == 0:
            _, position = _varint(message, position)
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        elif wire_type == 2:
            size, position = _varint(message, position)
            if position + size > len(message):
                raise ArenaTopoError("the kubelet's list of pod resources is cut off")
            if key >> 3 == number:
                yield message[position : position + size]
            position += size
        else:
            raise ArenaTopoError(f"the kubelet's list of pod resources has a field of type {wire_type}")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the number at *position*, seven bits per byte, lowest first, and the position behind it."""
    value = shift = 0
    while position < len(message):
        byte = message[position]
        value |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return value, position
        shift += 7
    raise ArenaTopoError("the kubelet's list of pod resources is cut off")
