"""NCCL's topology XML (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): CPUs, PCIe trees, GPUs, NICs, NVLinks.

The elements nest as the devices do, and from that follows the PCIe class of two GPUs::

    <system>
      <cpu numaid="0">
        <pci busid="0000:10:00.0">            <!-- a PCIe switch -->
          <pci busid="0000:1b:00.0">
            <gpu dev="0" sm="80"><nvlink target="..." count="12" tclass="0x068000"/></gpu>
          </pci>
          <pci busid="0000:1c:00.0"><gpu dev="1" sm="80"/></pci>
        </pci>
      </cpu>
    </system>

Here GPU0 and GPU1 have the same switch above them: PIX. Vendors' files list PCIe only and leave NVLink to
NCCL, so a file without a single NVLink is completed from the product's usual wiring where that is known.
Format: NCCL's ``src/graph/xml.cc``.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Hardware, Nic
from arena_topo.topology import hardware
from arena_topo.topology.hardware import (
    Generation,
    build_graph,
    check_count,
    fill_gpu_links,
    find_product,
    guess_generation,
    machine_type,
    memory_of,
    product_of_pci_device,
    rates_of,
)

_GPU_CLASSES = ("0x0300", "0x0302")
_NIC_CLASSES = ("0x0200", "0x0207")
_NVSWITCH_CLASS = "0x0680"
"""PCI classes: display controllers, network controllers, and the bridge that an NVSwitch appears as."""
_MBIT_PER_GBYTE = 8000.0


@dataclass(frozen=True, slots=True)
class _PciDevice:
    """A PCI device, its NUMA node, and the bus ids of the PCIe bridges above it, outermost first."""

    element: ET.Element
    numa: int | None
    above: tuple[str, ...]

    @property
    def bus(self) -> str:
        # Files differ in the case of bus ids, and links name their targets by them.
        return self.element.get("busid", "").lower()


def parse_nccl_xml(text: str, source: str = "the topology file", product: str = "") -> Hardware:
    """Return the hardware that a NCCL topology XML shows; see ``parse_matrix`` for the arguments.

    Raises ``DocumentError`` naming the element and the reason.
    """
    devices = list(_devices(_system(text, source), source))
    unordered = [device for device in devices if _is_gpu(device)]
    if not unordered:
        raise DocumentError(
            f"{source}: none of its pci elements is marked as a GPU",
            hint="NCCL_TOPO_DUMP_FILE writes a file with the class of every device",
        )
    check_count(len(unordered), source)
    gpus = _in_order(unordered, source)
    name = product or product_of_pci_device(gpus[0].element.get("device", ""))
    spec = find_product(name)
    words = [["X" if a is b else _pcie_class(a, b) for b in gpus] for a in gpus]
    assumptions: tuple[str, ...] = ()
    if not _add_nvlinks(words, gpus, source):
        assumptions = fill_gpu_links(words, name) or ("no NVLinks: the file lists PCIe only",)
    generation = spec.generation if spec else _generation(gpus, words)
    if spec is None:
        assumptions += (rates_of(generation),)
    graph = build_graph(words, generation, spec, source)
    nics = [device for device in devices if _is_nic(device)]
    return Hardware(
        gpus=tuple(_gpu(index, device, name, nics) for index, device in enumerate(gpus)),
        links=graph,
        nics=tuple(_nic(device) for device in nics),
        machine=machine_type(graph, spec.name if spec else ""),
        assumptions=assumptions,
    )


def _system(text: str, source: str) -> ET.Element:
    # Entities can make a small document huge (billion laughs); without a document type there are none.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DocumentError(
            f"{source}: a topology file must not have a document type", hint="remove <!DOCTYPE ...>"
        )
    try:
        root = ET.fromstring(text)  # noqa: S314  # no document type, so no entities
    except ET.ParseError as error:
        raise DocumentError(f"{source}: not an XML document: {error}") from error
    if root.tag != "system":
        raise DocumentError(
            f"{source}: its root is <{root.tag}>, expected <system>",
            hint="a graph file (NCCL_GRAPH_FILE) has rings, not the topology",
        )
    return root


def _devices(root: ET.Element, source: str) -> Iterator[_PciDevice]:
    for cpu in root.iter("cpu"):
        text = cpu.get("numaid", "")
        if not text.lstrip("-").isdecimal():
            raise DocumentError(f"{source}: <cpu> has numaid={text!r}, expected a number")
        numa = int(text) if int(text) >= 0 else None  # the kernel says -1 where there is one node only
        yield from _below(cpu, numa, ())


def _below(parent: ET.Element, numa: int | None, above: tuple[str, ...]) -> Iterator[_PciDevice]:
    for child in parent:
        if child.tag == "pci":
            device = _PciDevice(child, numa, above)
            yield device
            yield from _below(child, numa, (*above, device.bus))


def _is_gpu(device: _PciDevice) -> bool:
    element = device.element
    return element.find("gpu") is not None or element.get("class", "").startswith(_GPU_CLASSES)


def _is_nic(device: _PciDevice) -> bool:
    element = device.element
    return element.find("nic") is not None or element.get("class", "").startswith(_NIC_CLASSES)


def _in_order(gpus: list[_PciDevice], source: str) -> list[_PciDevice]:
    """Return the GPUs by their device numbers where all have one, else by bus id, which is NVML's order."""
    tags = [gpu.element.find("gpu") for gpu in gpus]
    numbers = [int(tag.get("dev", "")) for tag in tags if tag is not None and tag.get("dev", "").isdecimal()]
    if len(numbers) < len(gpus):
        return sorted(gpus, key=lambda gpu: gpu.bus)
    if sorted(numbers) != list(range(len(gpus))):
        raise DocumentError(f"{source}: the device numbers of its GPUs are {sorted(numbers)}")
    return [gpu for _, gpu in sorted(zip(numbers, gpus, strict=True), key=lambda pair: pair[0])]


def _pcie_class(a: _PciDevice, b: _PciDevice) -> str:
    """Return the PCIe class between two devices, as NCCL and ``nvidia-smi`` count bridges.

    SYS crosses NUMA nodes, PHB the host bridge of one CPU, PXB several switches below one port, PIX one
    switch.
    """
    if a.numa != b.numa:
        return "SYS"
    if not a.above or not b.above or a.above[0] != b.above[0]:
        return "PHB"
    return "PIX" if a.above == b.above else "PXB"


def _add_nvlinks(words: list[list[str]], gpus: list[_PciDevice], source: str) -> bool:
    """Write the file's NVLinks into *words*; return whether it has any between GPUs or into a switch."""
    by_bus = {gpu.bus: index for index, gpu in enumerate(gpus)}
    between: dict[tuple[int, int], int] = {}
    into_switch = [0] * len(gpus)
    for index, gpu in enumerate(gpus):
        for element in gpu.element.iter("nvlink"):
            count = _count(element, source)
            target = by_bus.get(element.get("target", "").lower())
            if target is not None and target != index:
                between[index, target] = between.get((index, target), 0) + count
            elif element.get("tclass", "").startswith(_NVSWITCH_CLASS):
                into_switch[index] += count
    for a, b in combinations(range(len(gpus)), 2):
        # A file may list a link at one of its ends only; GPUs on one switch reach each other by what both
        # have.
        count = between.get((a, b), between.get((b, a), 0)) or min(into_switch[a], into_switch[b])
        if count:
            words[a][b] = words[b][a] = f"NV{count}"
    return bool(between) or any(into_switch)


def _count(element: ET.Element, source: str) -> int:
    text = element.get("count", "")
    if not text.isdecimal():
        raise DocumentError(f"{source}: <nvlink> has count={text!r}, expected a number")
    return int(text)


def _generation(gpus: list[_PciDevice], words: list[list[str]]) -> Generation:
    tag = gpus[0].element.find("gpu")
    # NCCL writes the compute capability (times ten) of each GPU into its dumps; vendors' files leave it out.
    capability = tag.get("sm", "") if tag is not None else ""
    spec = hardware.BY_COMPUTE_CAPABILITY.get(int(capability)) if capability.isdecimal() else None
    return spec or guess_generation(words)


def _gpu(index: int, device: _PciDevice, product: str, nics: list[_PciDevice]) -> Gpu:
    nearest: list[str] = []
    for word in ("PIX", "PXB", "PHB"):
        nearest = nearest or [_nic(nic).name for nic in nics if _pcie_class(device, nic) == word]
    return Gpu(
        index=index,
        product=product,
        memory=memory_of(product),
        numa=device.numa,
        pcie_root=device.above[0] if device.above else "",
        nics=tuple(nearest),
    )


def _nic(device: _PciDevice) -> Nic:
    net = device.element.find("nic/net")
    speed = net.get("speed", "") if net is not None else ""
    return Nic(
        name=(net.get("name", "") if net is not None else "") or device.bus,
        numa=device.numa,
        rate=int(speed) / _MBIT_PER_GBYTE if speed.isdecimal() else 0.0,
    )
