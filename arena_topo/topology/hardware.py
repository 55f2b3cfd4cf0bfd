"""How machines are usually wired, by GPU product, number of GPUs and machine name.

Where a cluster publishes no links, its labels leave no more than this guess, and whatever rests on it is
marked as assumed. A product whose wiring varies from machine to machine has no entry here. Sources: NVIDIA's
DGX and HGX data sheets and user guides, AMD's Instinct platform data sheets, the instance pages of AWS,
Azure, Google Cloud and Oracle.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Hardware, Link, LinkClass, LinkGraph, Nic
from arena_topo.topology.objects import MOST_GPUS

# GPU generations and the bandwidths of their links, in GB/s, one direction.
#
# NVLink and XGMI rates are the vendors' nominal ones (NVIDIA's and AMD's data sheets); PCIe rates are what
# x16 slots of that time deliver in practice. Traffic through a CPU loses a sixth (``INTEL_P2P_OVERHEAD`` in
# NCCL's ``src/graph/topo.h``), and between sockets the link of the CPUs limits it.

_CPU_OVERHEAD = 6 / 5
_C2C_RATE = 450.0
"""NVLink-C2C of Grace Hopper and Grace Blackwell, one direction (NVIDIA's data sheet of GH200)."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The link rates of a generation of GPUs.

    ``link_rate`` is one NVLink (or the XGMI link of a pair), ``max_links`` how many a GPU has, ``pcie_rate``
    an x16 slot, ``socket_rate`` the link between CPU sockets.
    """

    name: str
    link_rate: float
    max_links: int
    pcie_rate: float
    socket_rate: float

    def link(self, kind: LinkClass, count: int) -> Link:
        """Return the link of class *kind* with *count* bundled links between GPUs of this generation."""
        return Link(kind, count, round(self._bandwidth(kind, count), 1))

    def _bandwidth(self, kind: LinkClass, count: int) -> float:
        match kind:
            case LinkClass.NVLINK | LinkClass.NVSWITCH | LinkClass.BRIDGE | LinkClass.XGMI:
                return count * self.link_rate
            case LinkClass.C2C:
                return _C2C_RATE
            case LinkClass.PIX | LinkClass.PXB:
                return self.pcie_rate
            case LinkClass.PHB | LinkClass.NODE:
                return self.pcie_rate / _CPU_OVERHEAD
            case LinkClass.SYS:
                return min(self.pcie_rate, self.socket_rate) / _CPU_OVERHEAD
            case LinkClass.SELF | LinkClass.UNKNOWN:
                return 0.0


_KEPLER = Generation("Kepler", 0.0, 0, 10.0, 6.0)
_PASCAL = Generation("Pascal", 20.0, 4, 12.0, 6.0)
_VOLTA = Generation("Volta", 25.0, 6, 12.0, 10.0)
_TURING = Generation("Turing", 25.0, 2, 12.0, 10.0)
_AMPERE = Generation("Ampere", 25.0, 12, 24.0, 16.0)
_AMPERE_WORKSTATION = Generation("Ampere workstation", 14.0, 4, 24.0, 16.0)
_ADA = Generation("Ada", 0.0, 0, 24.0, 16.0)
HOPPER = Generation("Hopper", 25.0, 18, 48.0, 22.0)
BLACKWELL = Generation("Blackwell", 50.0, 18, 48.0, 22.0)
# Eight RTX 5090 at two Xeon 8480+ reach 28 GB/s, four at one of them 35 (NVIDIA/nccl issue 1639): between
# hosts of this age there is more than the 22 that NCCL's ``src/graph/topo.h`` has for Sapphire Rapids.
_BLACKWELL_WORKSTATION = Generation("Blackwell workstation", 0.0, 0, 48.0, 35.0)
_VEGA20 = Generation("Vega 20", 46.0, 2, 24.0, 16.0)
_CDNA1 = Generation("CDNA", 46.0, 3, 24.0, 16.0)
_CDNA2 = Generation("CDNA2", 50.0, 8, 24.0, 16.0)
CDNA3 = Generation("CDNA3", 64.0, 7, 48.0, 22.0)
_CDNA4 = Generation("CDNA4", 76.8, 7, 48.0, 22.0)

BY_COMPUTE_CAPABILITY = {
    60: _PASCAL,
    70: _VOLTA,
    75: _TURING,
    80: _AMPERE,
    86: _AMPERE_WORKSTATION,
    89: _ADA,
    90: HOPPER,
    100: BLACKWELL,
    103: BLACKWELL,
    120: _BLACKWELL_WORKSTATION,
}
"""Generations by CUDA compute capability times ten (CUDA C++ Programming Guide, compute capabilities)."""


# GPU products by name: their generation, form, memory and NVLinks.
#
# Names come from GPU feature discovery (``NVIDIA-A100-SXM4-80GB``), NVML (``Tesla V100-SXM2-16GB``) or AMD's
# labeller (``AMD_Instinct_MI300X_OAM``); spaces, dashes and underscores count as the same. The figures are
# those of the vendors' data sheets.


class FormFactor(Enum):
    """How a GPU is built into a machine, which decides what its NVLinks can be."""

    MODULE = "module"
    BRIDGED_CARD = "card with an NVLink connector"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class Product:
    """A GPU product: its short name, generation and form.

    ``memory`` is in GiB, 0 where the name covers several sizes; ``switch_links`` the NVLinks that each GPU
    has into the switches of an eight-GPU board, 0 where it has none.
    """

    name: str
    generation: Generation
    form: FormFactor
    memory: int = 0
    switch_links: int = 0


_MODULE, _BRIDGED, _CARD = FormFactor.MODULE, FormFactor.BRIDGED_CARD, FormFactor.CARD

_PRODUCTS: tuple[tuple[str, Product], ...] = (
    # The more exact pattern of a product stands first: what it leaves to the next one is the other form.
    (r"\bP100 SXM2", Product("P100", _PASCAL, _MODULE, 16)),
    (r"\bP100", Product("P100-PCIe", _PASCAL, _CARD, 16)),
    (r"\bP40\b", Product("P40", _PASCAL, _CARD, 24)),
    (r"\bP4\b", Product("P4", _PASCAL, _CARD, 8)),
    (r"\bK80\b", Product("K80", _KEPLER, _CARD, 12)),
    (r"\bV100 SXM3", Product("V100-SXM3", _VOLTA, _MODULE, 32, 6)),
    (r"\bV100 (SXM2|DGXS)", Product("V100", _VOLTA, _MODULE)),
    (r"\bV100", Product("V100-PCIe", _VOLTA, _CARD)),
    (r"\bT4\b", Product("T4", _TURING, _CARD, 16)),
    (r"\bQUADRO RTX \d", Product("Quadro-RTX", _TURING, _BRIDGED)),
    (r"\bA100X?\b.*\bSXM", Product("A100", _AMPERE, _MODULE, 0, 12)),
    (r"\bA100", Product("A100-PCIe", _AMPERE, _BRIDGED)),
    (r"\bA800\b.*\bSXM", Product("A800", _AMPERE, _MODULE, 80, 8)),
    (r"\bA800", Product("A800-PCIe", _AMPERE, _BRIDGED)),
    (r"\bA30\b", Product("A30", _AMPERE, _BRIDGED, 24)),
    (r"\bA10G?\b", Product("A10", _AMPERE_WORKSTATION, _CARD, 24)),
    (r"\bA16\b", Product("A16", _AMPERE_WORKSTATION, _CARD, 16)),
    (r"\bA2\b", Product("A2", _AMPERE_WORKSTATION, _CARD, 16)),
    (r"\bA40\b", Product("A40", _AMPERE_WORKSTATION, _BRIDGED, 48)),
    (r"\bRTX A[456]\d00\b", Product("RTX-A6000", _AMPERE_WORKSTATION, _BRIDGED)),
    (r"\bRTX 3090", Product("RTX-3090", _AMPERE_WORKSTATION, _BRIDGED, 24)),
    (r"\bL40S\b", Product("L40S", _ADA, _CARD, 48)),
    (r"\bL40\b", Product("L40", _ADA, _CARD, 48)),
    (r"\bL20\b", Product("L20", _ADA, _CARD, 48)),
    (r"\bL4\b", Product("L4", _ADA, _CARD, 24)),
    (r"\bRTX (4090|4080|[456]000 ADA)", Product("RTX-Ada", _ADA, _CARD)),
    (r"\bH100\b.*\b(PCIE|NVL)", Product("H100-PCIe", HOPPER, _BRIDGED)),
    (r"\bH200\b.*\bNVL", Product("H200-NVL", HOPPER, _BRIDGED, 141)),
    (r"\bH800\b.*\bPCIE", Product("H800-PCIe", HOPPER, _BRIDGED, 80)),
    (r"\bGH200\b", Product("GH200", HOPPER, _MODULE)),
    (r"\bH100\b", Product("H100", HOPPER, _MODULE, 80, 18)),
    (r"\bH200\b", Product("H200", HOPPER, _MODULE, 141, 18)),
    (r"\bH800\b", Product("H800", HOPPER, _MODULE, 80, 8)),
    (r"\bH20\b", Product("H20", HOPPER, _MODULE, 96, 18)),
    (r"\bGB300\b", Product("GB300", BLACKWELL, _MODULE, 288, 18)),
    (r"\bGB200\b", Product("GB200", BLACKWELL, _MODULE, 192, 18)),
    (r"\bB300\b", Product("B300", BLACKWELL, _MODULE, 288, 18)),
    (r"\bB200\b", Product("B200", BLACKWELL, _MODULE, 192, 18)),
    (
        r"\bRTX (PRO )?(50[789]0|[56]000 BLACKWELL)",
        Product("RTX-Blackwell", _BLACKWELL_WORKSTATION, _CARD),
    ),
    (r"\bMI[56]0\b", Product("MI50", _VEGA20, _BRIDGED)),
    (r"\bMI100\b", Product("MI100", _CDNA1, _BRIDGED, 32)),
    (r"\bMI2(10|50X?)\b", Product("MI200", _CDNA2, _MODULE)),
    (r"\bMI300X\b", Product("MI300X", CDNA3, _MODULE, 192)),
    (r"\bMI308X\b", Product("MI308X", CDNA3, _MODULE, 192)),
    (r"\bMI325X\b", Product("MI325X", CDNA3, _MODULE, 256)),
    (r"\bMI35[05]X\b", Product("MI350X", _CDNA4, _MODULE, 288)),
)
"""Patterns of names (upper case, words parted by single spaces) and their products; the first match
counts."""

_PCI_DEVICES = {
    "0x1db1": "V100-SXM2-16GB",
    "0x1db5": "V100-SXM2-32GB",
    "0x1db4": "V100-PCIE-16GB",
    "0x1db6": "V100-PCIE-32GB",
    "0x1eb8": "T4",
    "0x20b0": "A100-SXM4-40GB",
    "0x20b2": "A100-SXM4-80GB",
    "0x20b5": "A100-PCIE-80GB",
    "0x20f1": "A100-PCIE-40GB",
    "0x2235": "A40",
    "0x2237": "A10G",
    "0x2330": "H100-SXM5-80GB",
    "0x2331": "H100-PCIE-80GB",
    "0x2335": "H200-SXM5-141GB",
}
"""NVIDIA's PCI device ids, as pci.ids lists them, and the products that they stand for."""


@lru_cache(maxsize=256)
def find_product(name: str) -> Product | None:
    """Return the product of the GPU called *name*, or None where the table does not have it."""
    # GPU feature discovery appends -SHARED to the names of time-sliced GPUs; the wiring is the same.
    plain = re.sub(r"[\s_-]+", " ", name).strip().upper().removesuffix(" SHARED")
    for pattern, product in _PRODUCTS:
        if re.search(pattern, plain):
            return product
    return None


def product_of_pci_device(device: str) -> str:
    """Return the product name of an NVIDIA PCI device id such as ``0x20b0``, or an empty string."""
    return _PCI_DEVICES.get(device.lower(), "")


def memory_of(name: str) -> int:
    """Return the memory of the GPU *name* in MiB: as the name says, else as the product has it, else 0."""
    size = re.search(r"(\d+)\s?GB", name, re.IGNORECASE)
    if size and "GH200" not in name:  # the name of GH200 counts the memory of its CPU
        return int(size.group(1)) * 1024
    product = find_product(name)
    return product.memory * 1024 if product else 0


# From the words of a topology matrix to a link graph, and from a link graph to the machine type.
#
# The words are those of ``nvidia-smi topo -m``. ``NV#`` means two things there: a bundle of NVLinks between
# two GPUs, or the links of each GPU into NVSwitches that all GPUs share. A V100 has six NVLinks, for example.
# Where each of four V100 shows NV2 to the three others, six links are used up: they are bundles. Where each
# of sixteen shows NV6 to all others, that would take ninety links: they lead into switches.

Words = Sequence[Sequence[str]]
"""A square matrix of link words: row and column for each GPU."""

MOST_LINKS = 18
"""The most NVLinks that any GPU of the known generations has."""

_CLASSES = {
    "X": LinkClass.SELF,
    "SYS": LinkClass.SYS,
    "SOC": LinkClass.SYS,
    "NODE": LinkClass.NODE,
    "PHB": LinkClass.PHB,
    "PXB": LinkClass.PXB,
    "PIX": LinkClass.PIX,
    "PSB": LinkClass.PIX,
    "XGMI": LinkClass.XGMI,
    "C2C": LinkClass.C2C,
    "N/A": LinkClass.UNKNOWN,
    "?": LinkClass.UNKNOWN,
}
"""Older drivers write SOC for SYS, and PSB for a PCIe switch on one board."""

_NVLINK = re.compile(r"NV(\d{1,3})")
_SMALLEST_BRIDGE = 4
"""NVLink bridges between PCIe cards have four links (A40, RTX A6000) or more; fewer join modules."""
_CUT_LINKS = 8
"""The NVLinks that A800 and H800 have left of twelve and eighteen."""
_CUBE_MESH = 8
_CUBE_MESH_PEERS = 4


def is_link_word(word: str) -> bool:
    """Whether *word* is a cell of a topology matrix."""
    return word in _CLASSES or _NVLINK.fullmatch(word) is not None


def check_count(count: int, where: str, most: int = MOST_GPUS) -> None:
    """Raise ``DocumentError`` for more GPUs, or other devices, than a machine can have.

    Whatever is done with a matrix is done for each pair, so that it comes before everything else.
    """
    if count > most:
        raise DocumentError(f"{where}: {count} devices, and a machine has {most} at the most")


def _check_link_words(words: Words, where: str) -> None:
    """Check that *words* is a square, symmetric matrix of link words with ``X`` on its diagonal.

    Raises ``DocumentError`` that begins with *where* and names the GPUs.
    """
    check_count(len(words), where)
    for a, row in enumerate(words):
        if len(row) != len(words):
            raise DocumentError(f"{where}: GPU{a} has {len(row)} links, expected {len(words)}")
        for b, word in enumerate(row):
            if not is_link_word(word):
                raise DocumentError(f"{where}: {word!r} between GPU{a} and GPU{b} is not a link class")
            if (a == b) != (word == "X"):
                raise DocumentError(f"{where}: {word!r} cannot stand between GPU{a} and GPU{b}")
            # Compared as classes: one end may write SOC where the other writes SYS.
            if _link_class(word) != _link_class(words[b][a]):
                raise DocumentError(
                    f"{where}: GPU{a} reaches GPU{b} by {word}, GPU{b} reaches GPU{a} by {words[b][a]}"
                )


def build_graph(words: Words, generation: Generation, product: Product | None, where: str) -> LinkGraph:
    """Return the link graph of a matrix of words, with bandwidths of *generation*.

    Raises ``DocumentError`` when the matrix is malformed, or when no wiring of GPUs can look so.
    """
    _check_link_words(words, where)
    counts = [[_nvlinks(word) for word in row] for row in words]
    kinds: dict[int, LinkClass] = {}
    for group in _joined_by_nvlinks(counts):
        if len(group) > 1:
            kinds |= dict.fromkeys(group, _nvlink_class(counts, group, product, where))
    gpus = range(len(words))

    def link(a: int, b: int) -> Link:
        if counts[a][b]:
            return generation.link(kinds[a], counts[a][b])
        # XGMI words have no count: a pair has one link.
        kind = _link_class(words[a][b])[0]
        return generation.link(kind, 1 if kind is LinkClass.XGMI else 0)

    return LinkGraph(tuple(tuple(link(a, b) for b in gpus) for a in gpus))


class Wiring(NamedTuple):
    """The link graph of a machine, its type, and what had to be assumed of the rates of its links."""

    links: LinkGraph
    machine: str
    assumed_rates: tuple[str, ...] = ()


def wiring(words: Words, product: str, where: str) -> Wiring:
    """Return the wiring that *words* show, for GPUs called *product*.

    Where the product is empty or not known, the counts of NVLinks decide the generation, and the rates are
    assumed. Raises ``DocumentError`` as ``build_graph`` does.
    """
    spec = find_product(product)
    generation = spec.generation if spec else guess_generation(words)
    graph = build_graph(words, generation, spec, where)
    # A single GPU has no links, and neither have pairs of which nothing is known: there is no rate to assume.
    has_rates = spec is None and any(link.bandwidth for row in graph.links for link in row)
    return Wiring(
        graph,
        machine_type(graph, spec.name if spec else ""),
        (rates_of(generation),) if has_rates else (),
    )


def rates_of(generation: Generation) -> str:
    """Return the words for rates that are taken from *generation* because the product is not known."""
    return f"link rates of {generation.name} GPUs"


def guess_generation(words: Words) -> Generation:
    """Return the generation that the NVLink counts of a matrix point to; Hopper where NV18 leaves it open.

    For example, no pair above NV2 and at most six links for each GPU is Volta; NV12 between all is Ampere.
    """
    counts = [[_nvlinks(word) for word in row] for row in words]
    widest = max((max(row) for row in counts), default=0)
    most = max((sum(row) for row in counts), default=0)
    switched = most > MOST_LINKS
    if any(word == "XGMI" for row in words for word in row):
        return CDNA3
    if any(word == "SOC" for row in words for word in row) or (widest == 1 and most == _PASCAL.max_links):
        return _PASCAL
    # NV8 into switches is H800, which has the same rates as the uncut H100.
    if widest == HOPPER.max_links or (widest == _CUT_LINKS and switched):
        return HOPPER
    if widest and (most <= _VOLTA.max_links or (widest == _VOLTA.max_links and switched)):
        return _VOLTA
    return _AMPERE


def pcie_word(a: Gpu, b: Gpu) -> str:
    """Return the word between two GPUs of which only PCIe root and NUMA node are known."""
    if a.pcie_root and a.pcie_root == b.pcie_root:
        return "PXB"
    if a.numa is None or b.numa is None:
        return "?"
    return "NODE" if a.numa == b.numa else "SYS"


def machine_type(graph: LinkGraph, product: str) -> str:
    """Return the machine type of a link graph, for example ``8xH200-nvswitch`` or ``4xT4-pcie``."""
    return f"{graph.size}x{product or 'GPU'}-{_layout(graph)}"


def _layout(graph: LinkGraph) -> str:
    kinds = [graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)]
    direct = {kind for kind in kinds if kind.is_direct}
    if graph.size == 1:
        return "single"
    if not direct:
        return "unknown" if LinkClass.UNKNOWN in kinds else "pcie"
    if len(direct) > 1:
        return "mixed"
    kind = direct.pop()
    if kind is not LinkClass.NVLINK:
        return str(kind.value).lower()
    if all(other is LinkClass.NVLINK for other in kinds):
        return "mesh"
    # The hybrid cube mesh of DGX-1: eight GPUs, each joined to four others.
    peers = [sum(link.kind is LinkClass.NVLINK for link in row) for row in graph.links]
    return "cubemesh" if peers == [_CUBE_MESH_PEERS] * _CUBE_MESH else "nvlink"


def _link_class(word: str) -> tuple[LinkClass, int]:
    return (LinkClass.NVLINK, _nvlinks(word)) if word.startswith("NV") else (_CLASSES[word], 0)


def _nvlinks(word: str) -> int:
    match = _NVLINK.fullmatch(word)
    return int(match.group(1)) if match else 0


def _joined_by_nvlinks(counts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the sets of GPUs that NVLinks connect, other links left out."""
    kinds = (LinkClass.UNKNOWN, LinkClass.NVLINK)
    return LinkGraph(tuple(tuple(Link(kinds[count > 0], count) for count in row) for row in counts)).islands()


def _nvlink_class(
    counts: Sequence[Sequence[int]], group: list[int], product: Product | None, where: str
) -> LinkClass:
    """Return what the NVLinks are that connect *group*: bundles, bridges, or links into switches."""
    complete = all(counts[a][b] for a, b in combinations(group, 2))
    limit = product.generation.max_links if product else MOST_LINKS
    over = [a for a in group if sum(counts[a]) > limit]
    # Two GPUs on switches show no more links than they have; only the product says that they are switched.
    if product and complete and counts[group[0]][group[-1]] == product.switch_links:
        return LinkClass.NVSWITCH
    if complete and len(over) == len(group):
        return LinkClass.NVSWITCH
    if over:
        raise DocumentError(
            f"{where}: GPU{over[0]} shows {sum(counts[over[0]])} NVLinks to some GPUs and none to others, "
            f"but a GPU has at most {limit} and a switch reaches all"
        )
    if product and product.form is not FormFactor.MODULE:
        return LinkClass.BRIDGE
    # Without a product, a separate pair within a larger machine with that many links must be bridged cards.
    pair = len(group) == 2 and len(counts) > 2
    bridged = product is None and pair and counts[group[0]][group[1]] >= _SMALLEST_BRIDGE
    return LinkClass.BRIDGE if bridged else LinkClass.NVLINK


_CUBE_MESH_WIRING: Sequence[str] = (
    "X NV1 NV1 NV2 NV2 SYS SYS SYS",
    "NV1 X NV2 NV1 SYS NV2 SYS SYS",
    "NV1 NV2 X NV2 SYS SYS NV1 SYS",
    "NV2 NV1 NV2 X SYS SYS SYS NV1",
    "NV2 SYS SYS SYS X NV1 NV1 NV2",
    "SYS NV2 SYS SYS NV1 X NV2 NV1",
    "SYS SYS NV1 SYS NV1 NV2 X NV2",
    "SYS SYS SYS NV1 NV2 NV1 NV2 X",
)
"""The hybrid cube mesh of eight V100 on DGX-1 and machines like it; on the P100 machine every link is single.

Source: the white paper "NVIDIA DGX-1 with Tesla V100 System Architecture".
"""

_FOUR_OF_CUBE_MESH = frozenset({"P3.8XLARGE"})
"""Machines that are one half of the cube mesh."""
_SWITCHED_FOURS = ("A2 HIGHGPU", "GOOGLE COMPUTE ENGINE")
"""Machines whose four GPUs are part of a switched board of eight; Google's firmware does not name the machine
type."""
_FULL_BOARD = 8
_HALF_BOARD = 4

_NICS: tuple[tuple[str, int, float], ...] = (
    (r"^P3DN\.24XLARGE", 1, 12.5),
    (r"^P4DE?\.24XLARGE", 4, 12.5),
    (r"^P5\.48XLARGE", 32, 12.5),
    (r"^P5EN\.48XLARGE", 16, 25.0),
    (r"^P6 B200\.48XLARGE", 8, 50.0),
    (r"ND96A(M?)S(R?) (A100 )?V4", 8, 25.0),
    (r"ND96IS(R?) H[12]00 V5", 8, 50.0),
    (r"\bDGX ?1\b", 4, 12.5),
    (r"\bDGX ?2\b", 8, 12.5),
    (r"\bDGX ?A100\b", 8, 25.0),
    (r"\bDGX ?(H100|H200|B200)\b", 8, 50.0),
    (r"^A3 MEGAGPU 8G", 8, 25.0),
    (r"^A3 ULTRAGPU 8G", 8, 50.0),
    (r"^BM\.GPU\.H100\.8", 8, 50.0),
)
"""Machine names (upper case, dashes as spaces), their RDMA NICs and the rate of each in GB/s."""


@lru_cache(maxsize=256)
def usual_hardware(product: str, count: int, machine: str = "") -> Hardware:
    """Return the hardware that *count* GPUs called *product* usually mean, all of it assumed.

    *machine* is the name that firmware or cloud gives the machine. The links are None where the product is
    not known or its machines differ.
    """
    spec = find_product(product)
    words = _usual_words(product, count, machine)
    graph = build_graph(words, spec.generation, spec, product) if words and spec else None
    return Hardware(
        gpus=tuple(Gpu(index=index, product=product, memory=memory_of(product)) for index in range(count)),
        links=graph,
        nics=_usual_nics(machine),
        machine=machine_type(graph, spec.name)
        if graph and spec
        else f"{count}x{spec.name if spec else product}",
        assumptions=("links as usual for the product",) if graph else (),
    )


def _usual_words(product: str, count: int, machine: str = "") -> list[list[str]] | None:
    """Return the matrix of link words that *count* GPUs called *product* usually have, or None."""
    spec = find_product(product)
    if spec is None or count < 1:
        return None
    if spec.form is not FormFactor.MODULE:
        # Cards may have bridges between pairs, but nothing says between which.
        return _uniform("SYS", count)
    name = _plain_name(machine)
    if spec.name in ("V100", "P100") and (count == _FULL_BOARD or name in _FOUR_OF_CUBE_MESH):
        single = spec.name == "P100"
        return [
            ["NV1" if single and word == "NV2" else word for word in row.split()[:count]]
            for row in _CUBE_MESH_WIRING[:count]
        ]
    # A single GPU has no links, whatever its board.
    word = _module_word(spec, count, name)
    return _uniform(word, count) if word or count == 1 else None


def _module_word(product: Product, count: int, machine: str) -> str:
    """Return the one word between all GPUs of a board, or an empty string where boards differ."""
    if product.name in ("GB200", "GB300"):  # the switches are in the rack, whatever a tray holds
        return f"NV{product.switch_links}"
    if product.switch_links:
        switched = count >= _FULL_BOARD or machine.startswith(_SWITCHED_FOURS)
        # HGX boards of four GPUs have no switches: a third of the links leads to each of the three others.
        if not switched and count == _HALF_BOARD and product.switch_links == product.generation.max_links:
            return f"NV{product.generation.max_links // 3}"
        return f"NV{product.switch_links}" if switched else ""
    return "XGMI" if product.name.startswith("MI3") and count == _FULL_BOARD else ""


def fill_gpu_links(words: list[list[str]], product: str) -> tuple[str, ...]:
    """Write the usual GPU links of *product* into *words*, a matrix that has PCIe only.

    Returns what was assumed by that: nothing where the product has no such links.
    """
    filled = False
    for a, row in enumerate(_usual_words(product, len(words)) or ()):
        for b, word in enumerate(row):
            if word.startswith("NV") or word == "XGMI":
                words[a][b] = word
                filled = True
    return ("NVLinks as usual for the product",) if filled else ()


def _usual_nics(machine: str) -> tuple[Nic, ...]:
    """Return the RDMA NICs of a machine by its name; none where the name is not known."""
    name = _plain_name(machine)
    for pattern, count, rate in _NICS:
        if re.search(pattern, name):
            return tuple(Nic(f"nic{index}", None, rate) for index in range(count))
    return ()


def _uniform(word: str, count: int) -> list[list[str]]:
    return [["X" if a == b else word for b in range(count)] for a in range(count)]


def _plain_name(machine: str) -> str:
    return re.sub(r"[\s_-]+", " ", machine).strip().upper()
