"""GPUs and NICs are where the kernel says."""

from pathlib import Path

from arena_topo.agent.hardware import read_hardware
from arena_topo.model.cluster import Nic
from tests.agent.fake_nvml import FakeNvml
from tests.agent.pci_tree import card, device, machine
from tests.topology.formats.test_nvidia_smi import CUBE_MESH


def test_places_and_nics_come_from_sysfs(tmp_path: Path) -> None:
    """NUMA node, PCIe root, and the card below the same switch."""
    hardware = read_hardware(FakeNvml(CUBE_MESH), machine(tmp_path))

    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in hardware.gpus]
    assert ["pci0000:00", "pci0000:10", "pci0000:20", "pci0000:30"] == [
        gpu.pcie_root for gpu in hardware.gpus[::2]
    ]
    assert [(f"mlx5_{index // 2}",) for index in range(8)] == [gpu.nics for gpu in hardware.gpus]
    assert tuple(Nic(f"mlx5_{index}", index // 2, 25.0) for index in range(4)) == hardware.nics


def test_a_card_on_the_same_socket_is_near_where_none_shares_a_root(tmp_path: Path) -> None:
    """The fallback is the NUMA node; a card whose rate cannot be read has none."""
    device(tmp_path, "0000:10:00.0", "pci0000:00", 1)
    card(tmp_path, "mlx5_0", device(tmp_path, "0000:aa:00.0", "pci0000:a0", 1), "?")
    card(tmp_path, "mlx5_1", device(tmp_path, "0000:bb:00.0", "pci0000:b0", 0), "100 Gb/sec (4X EDR)")
    hardware = read_hardware(FakeNvml([["X"]]), str(tmp_path))

    assert hardware.gpus[0].nics == ("mlx5_0",)
    assert [0.0, 12.5] == [nic.rate for nic in hardware.nics]
