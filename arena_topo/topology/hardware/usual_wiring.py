"""How machines are usually wired, by GPU product, number of GPUs and machine name.

Where a cluster publishes no links, its labels leave no more than this guess, and whatever rests on it is marked as
assumed. A product whose wiring varies from machine to machine has no entry here. Sources: NVIDIA's DGX and HGX data
sheets and user guides, AMD's Instinct platform data sheets, the instance pages of AWS, Azure, Google Cloud and Oracle.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from arena_topo.model.cluster.hardware import Gpu, Hardware, Nic
from arena_topo.topology.hardware.link_graph import build_graph, machine_type
from arena_topo.topology.hardware.products import FormFactor, Product, find_product, memory_of

_CUBE_MESH: Sequence[str] = (
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
"""Machines whose four GPUs are part of a switched board of eight; Google's firmware does not name the machine type."""
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

    *machine* is the name that firmware or cloud gives the machine. The links are None where the product is not
    known or its machines differ.
    """
    spec = find_product(product)
    words = usual_words(product, count, machine)
    graph = build_graph(words, spec.generation, spec, product) if words and spec else None
    return Hardware(
        gpus=tuple(Gpu(index=index, product=product, memory=memory_of(product)) for index in range(count)),
        links=graph,
        nics=usual_nics(machine),
        machine=machine_type(graph, spec.name)
        if graph and spec
        else f"{count}x{spec.name if spec else product}",
        assumptions=("links as usual for the product",) if graph else (),
    )


def usual_words(product: str, count: int, machine: str = "") -> list[list[str]] | None:
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
            for row in _CUBE_MESH[:count]
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
    for a, row in enumerate(usual_words(product, len(words)) or ()):
        for b, word in enumerate(row):
            if word.startswith("NV") or word == "XGMI":
                words[a][b] = word
                filled = True
    return ("NVLinks as usual for the product",) if filled else ()


def usual_nics(machine: str) -> tuple[Nic, ...]:
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
