"""NCCL's topology XML (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): CPUs, PCIe trees, GPUs, NICs, NVLinks.

Vendors' files list PCIe only and leave NVLink to NCCL, so a file without a single NVLink is filled up from the
product's usual wiring where that is known. Format: ``src/graph/xml.cc`` of NCCL.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Hardware, Nic
from arena_topo.topology.hardware import generations
from arena_topo.topology.hardware.generations import Generation
from arena_topo.topology.hardware.link_graph import build_graph, guess_generation, machine_type
from arena_topo.topology.hardware.products import find_product, memory_of, product_of_pci_device
from arena_topo.topology.hardware.usual_wiring import fill_direct, usual_words

_GPU_CLASSES = ("0x0300", "0x0302")
_NIC_CLASSES = ("0x0200", "0x0207")
_NVSWITCH_CLASS = "0x0680"
_MBIT_PER_GBYTE = 8000.0


@dataclass(frozen=True, slots=True)
class _Place:
    """A PCI device, its NUMA node, and the bus ids of the PCIe switches above it, outermost first."""

    element: ET.Element
    numa: int | None
    above: tuple[str, ...]

    @property
    def bus(self) -> str:
        return self.element.get("busid", "").lower()


def parse_nccl_xml(text: str, source: str = "the topology file", product: str = "") -> Hardware:
    """Return the hardware that a NCCL topology XML shows; see ``parse_matrix`` for the arguments.

    Raises ``DocumentError`` naming the element and the reason.
    """
    places = list(_places(_system(text, source), source))
    found = [place for place in places if _is_gpu(place)]
    if not found:
        raise DocumentError(
            f"{source}: none of its pci elements says that it is a GPU",
            hint="NCCL_TOPO_DUMP_FILE writes a file with the class of every device",
        )
    gpus = _ordered(found, source)
    name = product or product_of_pci_device(gpus[0].element.get("device", ""))
    known = find_product(name) if name else None
    words = [["X" if a is b else _path(a, b) for b in gpus] for a in gpus]
    told = _add_nvlinks(words, gpus, source)
    filled = False if told else fill_direct(words, usual_words(name, len(gpus)))
    generation = known.generation if known else _generation(gpus, words)
    graph = build_graph(words, generation, known, source)
    nics = [place for place in places if _is_nic(place)]
    return Hardware(
        gpus=tuple(_gpu(index, place, name, nics) for index, place in enumerate(gpus)),
        links=graph,
        nics=tuple(_nic(place) for place in nics),
        machine=machine_type(graph, known.name if known else ""),
        assumptions=_assumptions(told=told, filled=filled, known=known is not None, generation=generation),
    )


def _assumptions(*, told: bool, filled: bool, known: bool, generation: Generation) -> tuple[str, ...]:
    made = []
    if not told:
        made.append("NVLinks as usual for the product" if filled else "no NVLinks: the file lists PCIe only")
    if not known:
        made.append(f"link rates of {generation.name} GPUs")
    return tuple(made)


def _system(text: str, source: str) -> ET.Element:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise DocumentError(f"{source}: a topology file has no document type", hint="remove <!DOCTYPE ...>")
    try:
        root = ET.fromstring(text)  # noqa: S314  # no document type, so no entities
    except ET.ParseError as error:
        raise DocumentError(f"{source}: not an XML document: {error}") from error
    if root.tag != "system":
        raise DocumentError(
            f"{source}: its root is <{root.tag}>, expected <system>",
            hint="a graph file (NCCL_GRAPH_FILE) tells rings, not the topology",
        )
    return root


def _places(root: ET.Element, source: str) -> Iterator[_Place]:
    for cpu in root.iter("cpu"):
        written = cpu.get("numaid", "")
        if not written.lstrip("-").isdecimal():
            raise DocumentError(f"{source}: <cpu> has numaid={written!r}, expected a number")
        numa = int(written) if int(written) >= 0 else None
        yield from _below(cpu, numa, ())


def _below(parent: ET.Element, numa: int | None, above: tuple[str, ...]) -> Iterator[_Place]:
    for child in parent:
        if child.tag == "pci":
            place = _Place(child, numa, above)
            yield place
            yield from _below(child, numa, (*above, place.bus))


def _is_gpu(place: _Place) -> bool:
    return place.element.find("gpu") is not None or place.element.get("class", "").startswith(_GPU_CLASSES)


def _is_nic(place: _Place) -> bool:
    return place.element.find("nic") is not None or place.element.get("class", "").startswith(_NIC_CLASSES)


def _ordered(found: list[_Place], source: str) -> list[_Place]:
    """Return the GPUs by their device number where told, else by bus id, which is NVML's order."""
    tags = [place.element.find("gpu") for place in found]
    numbers = [int(tag.get("dev", "")) for tag in tags if tag is not None and tag.get("dev", "").isdecimal()]
    if len(numbers) == len(found):
        if sorted(numbers) != list(range(len(found))):
            raise DocumentError(f"{source}: the device numbers of its GPUs are {sorted(numbers)}")
        return [place for _, place in sorted(zip(numbers, found, strict=True), key=lambda pair: pair[0])]
    return sorted(found, key=lambda place: place.bus)


def _path(a: _Place, b: _Place) -> str:
    """Return the PCIe class between two devices, as NCCL and ``nvidia-smi`` count bridges."""
    if a.numa != b.numa:
        return "SYS"
    if not a.above or not b.above or a.above[0] != b.above[0]:
        return "PHB"
    return "PIX" if a.above == b.above else "PXB"


def _add_nvlinks(words: list[list[str]], gpus: list[_Place], source: str) -> bool:
    """Write the file's NVLinks into *words*; return whether it has any between GPUs or into a switch."""
    at = {place.bus: index for index, place in enumerate(gpus)}
    counts: dict[tuple[int, int], int] = {}
    switch = [0] * len(gpus)
    for index, place in enumerate(gpus):
        for element in place.element.iter("nvlink"):
            count = _count(element, source)
            target = at.get(element.get("target", "").lower())
            if target is not None and target != index:
                counts[index, target] = counts.get((index, target), 0) + count
            elif element.get("tclass", "").startswith(_NVSWITCH_CLASS):
                switch[index] += count
    for a, b in combinations(range(len(gpus)), 2):
        count = counts.get((a, b), counts.get((b, a), 0)) or min(switch[a], switch[b])
        if count:
            words[a][b] = words[b][a] = f"NV{count}"
    return bool(counts) or any(switch)


def _count(element: ET.Element, source: str) -> int:
    written = element.get("count", "")
    if not written.isdecimal():
        raise DocumentError(f"{source}: <nvlink> has count={written!r}, expected a number")
    return int(written)


def _generation(gpus: list[_Place], words: list[list[str]]) -> Generation:
    tag = gpus[0].element.find("gpu")
    capability = tag.get("sm", "") if tag is not None else ""
    known = generations.BY_COMPUTE_CAPABILITY.get(int(capability)) if capability.isdecimal() else None
    return known or guess_generation(words)


def _gpu(index: int, place: _Place, product: str, nics: list[_Place]) -> Gpu:
    near: list[str] = []
    for word in ("PIX", "PXB", "PHB"):
        near = near or [_nic(nic).name for nic in nics if _path(place, nic) == word]
    return Gpu(
        index=index,
        product=product,
        memory=memory_of(product) if product else 0,
        numa=place.numa,
        pcie_root=place.above[0] if place.above else "",
        nics=tuple(near),
    )


def _nic(place: _Place) -> Nic:
    net = place.element.find("nic/net")
    speed = net.get("speed", "") if net is not None else ""
    return Nic(
        name=(net.get("name", "") if net is not None else "") or place.bus,
        numa=place.numa,
        rate=int(speed) / _MBIT_PER_GBYTE if speed.isdecimal() else 0.0,
    )
