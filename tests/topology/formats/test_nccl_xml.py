"""NCCL's topology XML: vendors' files and dumps."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.topology.formats.nccl_xml import parse_nccl_xml
from tests.topology.formats.test_nvidia_smi import labels, uniform
from tests.topology.texts import saved

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
    """Azure's file lists PCIe only; without a product that is all there is, and a note says so."""
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
