"""rocm-smi, NCCL's XML, bandwidth matrices and the usual wiring of products."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import LinkClass
from arena_topo.topology.formats.nccl_xml import parse_nccl_xml
from arena_topo.topology.formats.p2p_bandwidth import parse_bandwidths
from arena_topo.topology.formats.parse import parse_topology
from arena_topo.topology.formats.rocm_smi import parse_rocm
from arena_topo.topology.hardware.usual_wiring import usual_hardware
from tests.topology.formats.test_nvidia_smi import CUBE_MESH, REAL, labels, uniform
from tests.topology.texts import rows, saved

MI308X = "mi308x-8gpu-rocm-smi-showtopo.txt"
P2P = "v100-8gpu-p2p-bandwidth-matrix.txt"


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


def test_measured_bandwidths_show_the_links_of_a_known_product() -> None:
    """The published V100 box is a cube mesh with GPU4 and GPU6, GPU5 and GPU7 exchanged."""
    hardware = parse_bandwidths(saved(P2P), P2P, "Tesla V100-SXM2-16GB")
    swapped = [0, 1, 2, 3, 6, 7, 4, 5]
    expected = [[CUBE_MESH[a][b].replace("SYS", "?") for b in swapped] for a in swapped]

    assert "8xV100-cubemesh" == hardware.machine
    assert expected == labels(hardware.links)


def test_of_two_measured_directions_the_slower_one_counts() -> None:
    """1 to 4 was measured at 4.64, 4 to 1 at 16.81 GB/s both ways: 2.3 GB/s in one direction."""
    graph = parse_bandwidths(saved(P2P), P2P).links
    assert graph is not None

    assert (2.3, 2.3) == (graph.between(1, 4).bandwidth, graph.between(4, 1).bandwidth)


def test_measured_bandwidths_of_an_unknown_product_have_no_class() -> None:
    """A figure does not tell NVLink from fast PCIe."""
    graph = parse_bandwidths(saved(P2P), P2P).links
    assert graph is not None

    assert {LinkClass.SELF, LinkClass.UNKNOWN} == {link.kind for row in graph.links for link in row}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gpu_0 1.0 2.0\ngpu_2 2.0 1.0", "line 2 is about GPU 2, expected GPU 1"),
        ("gpu_0 1.0 2.0\ngpu_1 2.0", "GPU 1 has 1 figures, expected 2"),
        ("Bandwidth Matrix:", "no row of bandwidths"),
    ],
)
def test_a_broken_bandwidth_matrix_is_refused(text: str, reason: str) -> None:
    """Line or GPU, and the reason, are named."""
    with pytest.raises(DocumentError, match=reason):
        parse_bandwidths(text)


P4D = "nccl-xml/aws-p4d-24xl-topo.xml"


@pytest.mark.parametrize("name", [P4D, "nccl-xml/aws-p4de-24xl-topo.xml"])
def test_an_xml_with_device_ids_gets_the_links_of_its_product(name: str) -> None:
    """The file names A100 SXM GPUs, which hang on NVSwitches; its PCIe tree stays known."""
    hardware = parse_nccl_xml(saved(name), name)

    assert ("8xA100-nvswitch", 4) == (hardware.machine, len(hardware.nics))
    assert uniform("NV12", 8) == labels(hardware.links)
    assert ("NVLinks as usual for the product",) == hardware.assumptions
    assert 4 == len({gpu.pcie_root for gpu in hardware.gpus})


def test_an_xml_without_nvlinks_says_so() -> None:
    """Azure's file lists PCIe only; without a product that is all there is, and it is said."""
    hardware = parse_nccl_xml(saved("nccl-xml/azure-ndv4-topo.xml"))

    assert "no NVLinks: the file lists PCIe only" in hardware.assumptions
    assert [1, 1, 0, 0, 3, 3, 2, 2] == [gpu.numa for gpu in hardware.gpus]
    assert ["X", "PIX", "SYS", "SYS", "SYS", "SYS", "SYS", "SYS"] == labels(hardware.links)[0]


def test_nics_of_an_xml_have_names_and_rates() -> None:
    """Thirty-two network cards of 100 Gbit/s, four close to each GPU."""
    hardware = parse_nccl_xml(saved("nccl-xml/aws-p5.48xl-topo.xml"), "p5", "NVIDIA-H100-80GB-HBM3")

    assert (32, 12.5) == (len(hardware.nics), hardware.nics[0].rate)
    assert ("rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0") == hardware.gpus[0].nics
    assert "8xH100-nvswitch" == hardware.machine


DUMP = """
<system version="1">
  <cpu numaid="0"><pci busid="0000:1b:00.0" class="0x030200"><gpu dev="1" sm="90">
    <nvlink target="ffff:ff:00.0" count="18" tclass="0x068000"/></gpu></pci></cpu>
  <cpu numaid="1"><pci busid="0000:9b:00.0" class="0x030200"><gpu dev="0" sm="90">
    <nvlink target="ffff:ff:00.0" count="18" tclass="0x068000"/></gpu></pci></cpu>
</system>
"""


def test_a_dump_tells_nvlinks_into_the_switch_and_device_numbers() -> None:
    """What NCCL dumped on the machine is complete: order by device number, links through the switch."""
    hardware = parse_nccl_xml(DUMP)

    assert [1, 0] == [gpu.numa for gpu in hardware.gpus]
    assert [["X", "NV18"], ["NV18", "X"]] == labels(hardware.links)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><system/>", "must not have a document type"),
        ("<system><cpu numaid='0'>", "not an XML document"),
        ("<graphs/>", "its root is <graphs>"),
        ("<system><cpu numaid='x'/></system>", "<cpu> has numaid='x'"),
        ("<system><cpu numaid='0'><pci busid='1'/></cpu></system>", "is marked as a GPU"),
        (DUMP.replace('dev="1"', 'dev="7"'), r"device numbers of its GPUs are \[0, 7\]"),
        (DUMP.replace('count="18"', 'count="x"'), "<nvlink> has count='x'"),
    ],
    ids=["entities", "cut off", "graph file", "NUMA id", "no GPU", "device numbers", "link count"],
)
def test_a_broken_xml_is_refused(text: str, reason: str) -> None:
    """The element and the reason are named, and entities are never expanded."""
    with pytest.raises(DocumentError, match=reason):
        parse_nccl_xml(text)


@pytest.mark.parametrize("name", [*REAL, MI308X, P2P, P4D])
def test_the_kind_of_a_text_is_detected(name: str) -> None:
    """Every real text finds its parser."""
    hardware = parse_topology(saved(name), name)

    assert hardware.links is not None
    assert len(hardware.gpus) == hardware.links.size


def test_a_text_of_no_known_kind_is_refused_with_advice() -> None:
    """The error says what to give instead."""
    with pytest.raises(DocumentError) as caught:
        parse_topology("hello", "notes.txt")

    assert "notes.txt: neither" in caught.value.message
    assert "nvidia-smi topo -m" in caught.value.hint


FOUR_OF_V100 = rows("X NV1 NV1 NV2\nNV1 X NV2 NV1\nNV1 NV2 X NV2\nNV2 NV1 NV2 X")


@pytest.mark.parametrize(
    ("product", "count", "machine", "kind", "expected"),
    [
        ("Tesla-V100-SXM2-16GB", 8, "", "8xV100-cubemesh", CUBE_MESH),
        ("Tesla-V100-SXM2-16GB", 4, "", "4xV100", None),
        ("Tesla-V100-SXM2-16GB", 4, "p3.8xlarge", "4xV100-mesh", FOUR_OF_V100),
        ("Tesla-V100-SXM3-32GB", 16, "DGX-2", "16xV100-SXM3-nvswitch", uniform("NV6", 16)),
        ("NVIDIA-A100-SXM4-80GB", 8, "", "8xA100-nvswitch", uniform("NV12", 8)),
        ("NVIDIA-A100-SXM4-40GB", 4, "", "4xA100-mesh", uniform("NV4", 4)),
        ("NVIDIA-A100-SXM4-40GB", 4, "a2-highgpu-4g", "4xA100-nvswitch", uniform("NV12", 4)),
        ("NVIDIA-A100-80GB-PCIe", 4, "", "4xA100-PCIe-pcie", uniform("SYS", 4)),
        ("NVIDIA-A800-SXM4-80GB", 8, "", "8xA800-nvswitch", uniform("NV8", 8)),
        ("NVIDIA-H100-80GB-HBM3", 8, "", "8xH100-nvswitch", uniform("NV18", 8)),
        ("NVIDIA-H100-80GB-HBM3", 4, "", "4xH100-mesh", uniform("NV6", 4)),
        ("NVIDIA-H800", 8, "", "8xH800-nvswitch", uniform("NV8", 8)),
        ("NVIDIA-H200", 8, "", "8xH200-nvswitch", uniform("NV18", 8)),
        ("NVIDIA-H100-PCIe", 2, "", "2xH100-PCIe-pcie", uniform("SYS", 2)),
        ("NVIDIA-H100-NVL", 2, "", "2xH100-PCIe-pcie", uniform("SYS", 2)),
        ("NVIDIA-B200", 8, "", "8xB200-nvswitch", uniform("NV18", 8)),
        ("NVIDIA-GB200", 4, "", "4xGB200-nvswitch", uniform("NV18", 4)),
        ("NVIDIA-L40S", 4, "", "4xL40S-pcie", uniform("SYS", 4)),
        ("NVIDIA-L4", 1, "", "1xL4-single", uniform("SYS", 1)),
        ("Tesla-T4-SHARED", 4, "", "4xT4-pcie", uniform("SYS", 4)),
        ("NVIDIA-A10G", 4, "", "4xA10-pcie", uniform("SYS", 4)),
        ("NVIDIA-A40", 4, "", "4xA40-pcie", uniform("SYS", 4)),
        ("NVIDIA-RTX-A6000", 4, "", "4xRTX-A6000-pcie", uniform("SYS", 4)),
        ("AMD_Instinct_MI300X_OAM", 8, "", "8xMI300X-xgmi", uniform("XGMI", 8)),
        ("Intel-Max-1550", 8, "", "8xIntel-Max-1550", None),
    ],
)
def test_a_product_has_its_usual_wiring(
    product: str, count: int, machine: str, kind: str, expected: list[list[str]] | None
) -> None:
    """Where machines of a product differ, or the product is not known, no links are claimed."""
    hardware = usual_hardware(product, count, machine)

    assert kind == hardware.machine
    assert expected == (labels(hardware.links) if hardware.links else None)


CUDA_SAMPLE = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, Tesla V100-SXM2-16GB, pciBusID: 1a, pciDeviceID: 0, pciDomainID:0
Device: 1, Tesla V100-SXM2-16GB, pciBusID: 1c, pciDeviceID: 0, pciDomainID:0
P2P Connectivity Matrix
     D\\D     0     1
     0\t     1     1
     1\t     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 740.35   9.72
     1   9.75 741.76
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 742.46  48.33
     1  48.34 743.88
Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 756.04  15.77
     1  15.75 757.14
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 755.31  96.48
     1  96.46 757.51
P2P=Disabled Latency Matrix (us)
   GPU     0      1
     0   1.85  17.58
     1  16.87   1.94
"""


def test_of_cudas_sample_the_matrix_with_peer_access_counts() -> None:
    """It names the product too, so that the links can be counted."""
    hardware = parse_topology(CUDA_SAMPLE, "p2p.txt")
    assert hardware.links is not None

    assert ("2xV100-mesh", ()) == (hardware.machine, hardware.assumptions)
    assert ("NV2", 48.2) == (hardware.links.between(0, 1).label, hardware.links.between(0, 1).bandwidth)


def test_figures_of_one_direction_are_taken_as_they_are() -> None:
    """The title says so."""
    one_way = CUDA_SAMPLE.partition("Bidirectional")[0]
    graph = parse_topology(one_way, "p2p.txt").links
    assert graph is not None

    assert graph.between(0, 1).bandwidth == 48.3
