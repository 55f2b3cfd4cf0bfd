"""Matrices of rocm-smi."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.topology.formats.rocm_smi import parse_rocm
from tests.topology.formats.test_nvidia_smi import labels, uniform
from tests.topology.texts import saved

MI308X = "mi308x-8gpu-rocm-smi-showtopo.txt"


def test_an_xgmi_mesh_is_read_whole() -> None:
    """Every pair is XGMI, and the NUMA node of each GPU is known."""
    hardware = parse_rocm(saved(MI308X), MI308X, "AMD Instinct MI308X")

    assert "8xMI308X-xgmi" == hardware.machine
    assert uniform("XGMI", 8) == labels(hardware.links)
    assert [0, 0, 0, 0, 1, 1, 1, 1] == [gpu.numa for gpu in hardware.gpus]


@pytest.mark.parametrize(
    ("hops", "numa", "expected"), [(1, 0, "PIX"), (2, 0, "PHB"), (2, 1, "SYS"), (3, 0, "SYS")]
)
def test_pcie_pairs_of_amd_gpus_are_classed_by_their_hops(hops: int, numa: int, expected: str) -> None:
    """One hop is a switch, two pass the CPU, more or another NUMA node pass the sockets."""
    text = f"""
====== Hops between two GPUs ======
       GPU0 GPU1
GPU0   0    {hops}
GPU1   {hops}    0
====== Link Type between two GPUs ======
       GPU0 GPU1
GPU0   0    PCIE
GPU1   PCIE 0
====== Numa Nodes ======
GPU[0] : (Topology) Numa Node: 0
GPU[1] : (Topology) Numa Node: {numa}
"""

    assert [["X", expected], [expected, "X"]] == labels(parse_rocm(text).links)


def test_a_rocm_text_without_link_types_is_refused() -> None:
    """The section that is missing is named."""
    with pytest.raises(DocumentError, match="'Link Type between two GPUs' is missing"):
        parse_rocm("====== Hops between two GPUs ======\n GPU0\nGPU0 0", "amd.txt")


@pytest.mark.parametrize(
    ("title", "near", "far"), [("Hops", "1", "2"), ("Weight", "15", "30")], ids=["hops", "weight"]
)
def test_gpus_several_hops_apart_have_no_link_of_their_own(title: str, near: str, far: str) -> None:
    """They reach each other over others: on a ring of four each has two links."""
    cells = [[{0: "0", 2: far}.get((a - b) % 4, near) for b in range(4)] for a in range(4)]
    rows = "\n".join(f"GPU{a}   {'  '.join(cells[a])}" for a in range(4))
    types = "\n".join(f"GPU{a}   {'  '.join('0' if a == b else 'XGMI' for b in range(4))}" for a in range(4))
    header = "       GPU0 GPU1 GPU2 GPU3"
    text = f"""
====== {title} between two GPUs ======
{header}
{rows}
====== Link Type between two GPUs ======
{header}
{types}
"""
    names = labels(parse_rocm(text, "text", "AMD Instinct MI250X").links)
    assert ["X", "XGMI", "PHB", "XGMI"] == names[0]
