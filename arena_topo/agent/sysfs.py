"""What the kernel's ``/sys`` tells of PCI devices: NUMA nodes, PCIe roots, and which NICs are near which GPUs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
    """An RDMA network card and its place."""

    nic: Nic
    place: PciDevice


def pci_device(sysfs: str, bus: str) -> PciDevice:
    """Return the place of the device with the bus id *bus*, which may have a domain of eight digits as NVML writes it."""
    short = bus[4:] if re.match(r"[0-9a-f]{8}:", bus) else bus
    return _place(Path(sysfs, "bus/pci/devices", short))


def network_cards(sysfs: str) -> list[NetworkCard]:
    """Return the RDMA network cards, in the order of their names; rates in GB/s of their fastest port."""
    folder = Path(sysfs, "class/infiniband")
    names = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    cards = []
    for name in sorted(names, key=lambda name: (len(name), name)):
        place = _place(folder / name / "device")
        rates = [_rate(port) for port in (folder / name / "ports").glob("*/rate")]
        cards.append(NetworkCard(Nic(name, place.numa, max(rates, default=0.0)), place))
    return cards


def near_nics(gpu: PciDevice, cards: Sequence[NetworkCard]) -> list[str]:
    """Return the names of the cards nearest to *gpu*: below the deepest common bridge, else on its NUMA node."""
    depth = {card.nic.name: _common(gpu.path, card.place.path) for card in cards}
    deepest = max(depth.values(), default=0)
    if deepest:
        return [name for name, common in depth.items() if common == deepest]
    return [card.nic.name for card in cards if gpu.numa is not None and card.nic.numa == gpu.numa]


def _place(device: Path) -> PciDevice:
    parts = device.resolve().parts
    at = next((at for at, part in enumerate(parts) if _ROOT.fullmatch(part)), len(parts))
    try:
        numa = int((device / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        numa = -1
    return PciDevice(numa if numa >= 0 else None, parts[at:])


def _rate(port: Path) -> float:
    try:
        match = _RATE.match(port.read_text(encoding="ascii"))
    except OSError:
        return 0.0
    return float(match.group(1)) / _BITS if match else 0.0


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count
