"""The agent reads from NVML and /sys what ``nvidia-smi topo -m`` shows."""

from pathlib import Path

import pytest

from arena_topo.agent.hardware import read_hardware
from arena_topo.errors import ArenaTopoError
from arena_topo.model.cluster import LinkClass, ShareMode
from tests.agent.fake_nvml import FakeNvml
from tests.agent.pci_tree import machine
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, labels, uniform


@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "bytes of older bindings"])
def test_point_to_point_links_are_counted(tmp_path: Path, as_bytes: bool) -> None:
    """Links are reported one by one, with the GPU at their far end."""
    hardware = read_hardware(FakeNvml(CUBE_MESH, as_bytes=as_bytes), machine(tmp_path))

    assert CUBE_MESH == labels(hardware.links)
    assert hardware.machine == "8xV100-cubemesh"
    assert [f"GPU-{index}" for index in range(8)] == [gpu.uuid for gpu in hardware.gpus]
    assert {("Tesla V100-SXM2-16GB", 16384)} == {(gpu.product, gpu.memory) for gpu in hardware.gpus}


@pytest.mark.parametrize("silent", [False, True], ids=["far ends known", "far ends unknown"])
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
