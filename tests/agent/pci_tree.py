"""PCI devices and network cards as the kernel's /sys has them."""

from pathlib import Path


def device(sysfs: Path, bus: str, path: str, numa: int) -> Path:
    """Make a PCI device at *path* below its root, and return its folder."""
    folder = sysfs / "devices" / path / bus
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text(f"{numa}\n")
    link = sysfs / "bus/pci/devices" / bus
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)
    return folder


def card(sysfs: Path, name: str, folder: Path, rate: str) -> None:
    """Make an RDMA card out of a PCI device."""
    port = sysfs / "class/infiniband" / name / "ports/1"
    port.mkdir(parents=True)
    (port / "rate").write_text(rate)
    (sysfs / "class/infiniband" / name / "device").symlink_to(folder)


def machine(sysfs: Path) -> str:
    """Make eight GPUs, two to a PCIe switch with a card of 200 Gbit/s, four to a socket."""
    for index in range(8):
        path = f"pci0000:{index // 2}0/0000:{index // 2}0:01.0"
        device(sysfs, f"0000:{index + 16:02x}:00.0", path, index // 4)
        if index % 2 == 0:
            nic = device(sysfs, f"0000:{index + 96:02x}:00.0", path, index // 4)
            card(sysfs, f"mlx5_{index // 2}", nic, "200 Gb/sec (4X HDR)\n")
    return str(sysfs)
