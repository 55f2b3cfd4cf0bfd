"""PCI devices in the kernel's ``/sys``: their NUMA nodes and PCIe roots, and which NICs are near which GPUs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from arena_topo.model.cluster.hardware import Nic

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


def pci_device(sysfs: str, bus: str) -> PciDevice:
    """Return the device with the bus id *bus*."""
    # NVML writes the domain with eight digits, the kernel with four.
    short = bus[4:] if re.match(r"[0-9a-f]{8}:", bus) else bus
    return _read_device(Path(sysfs, "bus/pci/devices", short))


def network_cards(sysfs: str) -> list[NetworkCard]:
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


def near_nics(gpu: PciDevice, cards: Sequence[NetworkCard]) -> list[str]:
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
    """Return the rate of a port in GB/s, from a text such as ``100 Gb/sec (4X EDR)``; 0 where it cannot be read."""
    try:
        match = _RATE.match(port.read_text(encoding="ascii"))
    except OSError:
        return 0.0
    return float(match.group(1)) / _BITS if match else 0.0


def _common_depth(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the number of leading steps that two paths have in common."""
    same = (one == other for one, other in zip(a, b, strict=False))
    return sum(1 for _ in takewhile(bool, same))
