"""GPU products by name: their generation, form, memory and NVLinks.

Names come from GPU feature discovery (``NVIDIA-A100-SXM4-80GB``), NVML (``Tesla V100-SXM2-16GB``) or AMD's
labeller (``AMD_Instinct_MI300X_OAM``); spaces, dashes and underscores count as the same. The figures are those of the
vendors' data sheets.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from arena_topo.topology.hardware import generations
from arena_topo.topology.hardware.generations import Generation


class FormFactor(Enum):
    """How a GPU is built into a machine, which decides what its NVLinks can be."""

    MODULE = "module"
    BRIDGED_CARD = "card with an NVLink connector"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class Product:
    """A GPU product: its short name, generation and form.

    ``memory`` is in GiB, 0 where the name covers several sizes; ``switch_links`` the NVLinks that each GPU has
    into the switches of an eight-GPU board, 0 where it has none.
    """

    name: str
    generation: Generation
    form: FormFactor
    memory: int = 0
    switch_links: int = 0


_MODULE, _BRIDGED, _CARD = FormFactor.MODULE, FormFactor.BRIDGED_CARD, FormFactor.CARD

_PRODUCTS: tuple[tuple[str, Product], ...] = (
    # The more exact pattern of a product stands first: what it leaves to the next one is the other form.
    (r"\bP100 SXM2", Product("P100", generations.PASCAL, _MODULE, 16)),
    (r"\bP100", Product("P100-PCIe", generations.PASCAL, _CARD, 16)),
    (r"\bP40\b", Product("P40", generations.PASCAL, _CARD, 24)),
    (r"\bP4\b", Product("P4", generations.PASCAL, _CARD, 8)),
    (r"\bK80\b", Product("K80", generations.KEPLER, _CARD, 12)),
    (r"\bV100 SXM3", Product("V100-SXM3", generations.VOLTA, _MODULE, 32, 6)),
    (r"\bV100 (SXM2|DGXS)", Product("V100", generations.VOLTA, _MODULE)),
    (r"\bV100", Product("V100-PCIe", generations.VOLTA, _CARD)),
    (r"\bT4\b", Product("T4", generations.TURING, _CARD, 16)),
    (r"\bQUADRO RTX \d", Product("Quadro-RTX", generations.TURING, _BRIDGED)),
    (r"\bA100X?\b.*\bSXM", Product("A100", generations.AMPERE, _MODULE, 0, 12)),
    (r"\bA100", Product("A100-PCIe", generations.AMPERE, _BRIDGED)),
    (r"\bA800\b.*\bSXM", Product("A800", generations.AMPERE, _MODULE, 80, 8)),
    (r"\bA800", Product("A800-PCIe", generations.AMPERE, _BRIDGED)),
    (r"\bA30\b", Product("A30", generations.AMPERE, _BRIDGED, 24)),
    (r"\bA10G?\b", Product("A10", generations.AMPERE_WORKSTATION, _CARD, 24)),
    (r"\bA16\b", Product("A16", generations.AMPERE_WORKSTATION, _CARD, 16)),
    (r"\bA2\b", Product("A2", generations.AMPERE_WORKSTATION, _CARD, 16)),
    (r"\bA40\b", Product("A40", generations.AMPERE_WORKSTATION, _BRIDGED, 48)),
    (r"\bRTX A[456]\d00\b", Product("RTX-A6000", generations.AMPERE_WORKSTATION, _BRIDGED)),
    (r"\bRTX 3090", Product("RTX-3090", generations.AMPERE_WORKSTATION, _BRIDGED, 24)),
    (r"\bL40S\b", Product("L40S", generations.ADA, _CARD, 48)),
    (r"\bL40\b", Product("L40", generations.ADA, _CARD, 48)),
    (r"\bL20\b", Product("L20", generations.ADA, _CARD, 48)),
    (r"\bL4\b", Product("L4", generations.ADA, _CARD, 24)),
    (r"\bRTX (4090|4080|[456]000 ADA)", Product("RTX-Ada", generations.ADA, _CARD)),
    (r"\bH100\b.*\b(PCIE|NVL)", Product("H100-PCIe", generations.HOPPER, _BRIDGED)),
    (r"\bH200\b.*\bNVL", Product("H200-NVL", generations.HOPPER, _BRIDGED, 141)),
    (r"\bH800\b.*\bPCIE", Product("H800-PCIe", generations.HOPPER, _BRIDGED, 80)),
    (r"\bGH200\b", Product("GH200", generations.HOPPER, _MODULE)),
    (r"\bH100\b", Product("H100", generations.HOPPER, _MODULE, 80, 18)),
    (r"\bH200\b", Product("H200", generations.HOPPER, _MODULE, 141, 18)),
    (r"\bH800\b", Product("H800", generations.HOPPER, _MODULE, 80, 8)),
    (r"\bH20\b", Product("H20", generations.HOPPER, _MODULE, 96, 18)),
    (r"\bGB300\b", Product("GB300", generations.BLACKWELL, _MODULE, 288, 18)),
    (r"\bGB200\b", Product("GB200", generations.BLACKWELL, _MODULE, 192, 18)),
    (r"\bB300\b", Product("B300", generations.BLACKWELL, _MODULE, 288, 18)),
    (r"\bB200\b", Product("B200", generations.BLACKWELL, _MODULE, 192, 18)),
    (
        r"\bRTX (PRO )?(50[789]0|[56]000 BLACKWELL)",
        Product("RTX-Blackwell", generations.BLACKWELL_WORKSTATION, _CARD),
    ),
    (r"\bMI[56]0\b", Product("MI50", generations.VEGA20, _BRIDGED)),
    (r"\bMI100\b", Product("MI100", generations.CDNA1, _BRIDGED, 32)),
    (r"\bMI2(10|50X?)\b", Product("MI200", generations.CDNA2, _MODULE)),
    (r"\bMI300X\b", Product("MI300X", generations.CDNA3, _MODULE, 192)),
    (r"\bMI308X\b", Product("MI308X", generations.CDNA3, _MODULE, 192)),
    (r"\bMI325X\b", Product("MI325X", generations.CDNA3, _MODULE, 256)),
    (r"\bMI35[05]X\b", Product("MI350X", generations.CDNA4, _MODULE, 288)),
)
"""Patterns of names (upper case, words parted by single spaces) and their products; the first match counts."""

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
    """Return the memory of the GPU called *name* in MiB: as the name says, else as the product has it, else 0."""
    size = re.search(r"(\d+)\s?GB", name, re.IGNORECASE)
    if size and "GH200" not in name:  # the name of GH200 counts the memory of its CPU
        return int(size.group(1)) * 1024
    product = find_product(name)
    return product.memory * 1024 if product else 0
