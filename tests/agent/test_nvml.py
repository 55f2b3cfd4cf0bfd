"""The agent reads from NVML and /sys what ``nvidia-smi topo -m`` shows."""

from pathlib import Path

import pytest

from arena_topo.agent.nvml import read_hardware
from arena_topo.errors import ArenaTopoError
from arena_topo.model.cluster.hardware import LinkClass, Nic, ShareMode
from tests.agent.fake_nvml import FakeNvml
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform


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


@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "bytes of older bindings"])
def test_point_to_point_links_are_counted(tmp_path: Path, as_bytes: bool) -> None:
    """Links are told one by one, with the GPU at their far end."""
    hardware = read_hardware(FakeNvml(CUBE_MESH, as_bytes=as_bytes), machine(tmp_path))

    assert CUBE_MESH == labels(hardware.links)
    assert hardware.machine == "8xV100-cubemesh"
    assert [f"GPU-{index}" for index in range(8)] == [gpu.uuid for gpu in hardware.gpus]
    assert {("Tesla V100-SXM2-16GB", 16384)} == {(gpu.product, gpu.memory) for gpu in hardware.gpus}


@pytest.mark.parametrize("silent", [False, True], ids=["told", "far ends untold"])
def test_links_into_switches_join_all_gpus(silent: bool) -> None:
    """Drivers tell a switch at the far end, or nothing."""
    hardware = read_hardware(
        FakeNvml(uniform("SYS", 8), "NVIDIA H200", switched=18, silent=silent), "/nowhere"
    )
    assert hardware.links is not None

    assert uniform("NV18", 8) == labels(hardware.links)
    assert LinkClass.NVSWITCH is hardware.links.between(0, 7).kind


@pytest.mark.parametrize("word", ["PIX", "PXB", "PHB", "NODE", "SYS"])
def test_pcie_levels_have_the_words_of_nvidia_smi(word: str) -> None:
    """GPUs without NVLinks are joined as their common ancestor tells."""
    hardware = read_hardware(FakeNvml(uniform(word, 4), "Tesla T4"), "/nowhere")

    assert uniform(word, 4) == labels(hardware.links)


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
    """The fallback is the NUMA node; a card whose rate is not told has none."""
    device(tmp_path, "0000:10:00.0", "pci0000:00", 1)
    card(tmp_path, "mlx5_0", device(tmp_path, "0000:aa:00.0", "pci0000:a0", 1), "?")
    card(tmp_path, "mlx5_1", device(tmp_path, "0000:bb:00.0", "pci0000:b0", 0), "100 Gb/sec (4X EDR)")
    hardware = read_hardware(FakeNvml([["X"]]), str(tmp_path))

    assert hardware.gpus[0].nics == ("mlx5_0",)
    assert [0.0, 12.5] == [nic.rate for nic in hardware.nics]


def test_without_sysfs_places_are_not_known() -> None:
    """Links still are."""
    gpu = read_hardware(FakeNvml(CUBE_MESH), "/nowhere").gpus[0]

    assert (None, "", ()) == (gpu.numa, gpu.pcie_root, gpu.nics)


def test_gpus_in_mig_mode_are_marked() -> None:
    """They are not handed out whole."""
    hardware = read_hardware(
        FakeNvml(uniform("NV12", 8), "NVIDIA A100-SXM4-40GB", switched=12, mig=(1,)), "/nowhere"
    )

    assert [1] == [gpu.index for gpu in hardware.gpus if gpu.mode is ShareMode.MIG]


@pytest.mark.parametrize(
    ("nvml", "reason"),
    [(FakeNvml([], broken=True), "does not answer: Driver Not Loaded"), (FakeNvml([]), "has no NVIDIA GPU")],
    ids=["no driver", "no GPU"],
)
def test_a_machine_without_gpus_is_an_error(nvml: FakeNvml, reason: str) -> None:
    """It says what to do."""
    with pytest.raises(ArenaTopoError, match=reason) as caught:
        read_hardware(nvml, "/nowhere")

    assert caught.value.hint
