"""The text of ``rocm-smi --showtopo``: three matrices (weight, hops, link type) and each GPU's NUMA node.

Each matrix is a section below its title::

    ====== Link Type between two GPUs ======
           GPU0  GPU1
    GPU0   0     XGMI
    GPU1   XGMI  0

Source: the output of rocm-smi of ROCm 5 and 6 (ROCm/rocm_smi_lib).
"""

import re

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Hardware
from arena_topo.topology import hardware
from arena_topo.topology.hardware import (
    build_graph,
    check_count,
    find_product,
    machine_type,
    memory_of,
    rates_of,
)

_SECTION_TITLE = re.compile(r"=+\s*(\S[^=]*?)\s*=+")
_NUMA = re.compile(r"GPU\[(\d+)\]\s*:\s*\(Topology\) Numa Node:\s*(\d+)")
_LINK_TYPE = "Link Type between two GPUs"
_HOPS = "Hops between two GPUs"
_WEIGHT = "Weight between two GPUs"
_WEIGHT_OF_A_HOP = 15
_ACROSS_SOCKETS = 3


def parse_rocm(text: str, source: str = "the matrix", product: str = "") -> Hardware:
    """Return the hardware that ``rocm-smi --showtopo`` shows; see ``parse_matrix`` for the arguments.

    Raises ``DocumentError`` naming the section and the reason.
    """
    sections = _sections(text)
    types = _table(sections, _LINK_TYPE, source)
    hops = _hops(sections, types, source)
    numa = {int(index): int(node) for index, node in _NUMA.findall(text)}
    gpus = range(len(types))
    # Two hops may stay below one socket or cross over to the other; the NUMA nodes decide.
    distances = [[hops[a][b] if numa.get(a) == numa.get(b) else _ACROSS_SOCKETS for b in gpus] for a in gpus]
    words = [
        [
            "X" if a == b else _word(types[a][b], hops[a][b], distances[a][b], f"{source}: GPU{a}")
            for b in gpus
        ]
        for a in gpus
    ]
    spec = find_product(product)
    generation = spec.generation if spec else hardware.CDNA3
    graph = build_graph(words, generation, spec, source)
    return Hardware(
        gpus=tuple(Gpu(index=a, product=product, memory=memory_of(product), numa=numa.get(a)) for a in gpus),
        links=graph,
        machine=machine_type(graph, spec.name if spec else ""),
        assumptions=() if spec else (rates_of(generation),),
    )


def _sections(text: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        title = _SECTION_TITLE.fullmatch(line.strip())
        if title:
            lines = sections.setdefault(title.group(1), [])
        elif line.strip():
            lines.append(line)
    return sections


def _table(sections: dict[str, list[str]], title: str, source: str) -> list[list[str]]:
    """Return the cells of a section's matrix, in the order of the GPUs."""
    lines = [line.split() for line in sections.get(title, ())]
    if not lines:
        raise DocumentError(f"{source}: the section {title!r} is missing")
    header, rows = lines[0], {row[0]: row[1:] for row in lines[1:] if row[0] in lines[0]}
    check_count(len(header), source)
    order = [f"GPU{index}" for index in range(len(header))]
    for name in order:
        if name not in header or len(rows.get(name, ())) != len(header):
            raise DocumentError(f"{source}: {title!r} lacks a complete row and column of {name}")
    return [[rows[a][header.index(b)] for b in order] for a in order]


def _hops(sections: dict[str, list[str]], types: list[list[str]], source: str) -> list[list[int]]:
    """Return the number of hops of each pair, many where that is not known.

    A weight shows it too: 15 is one hop of XGMI, every further hop adds as much, and PCIe weighs more.
    """
    title = _HOPS if _HOPS in sections else _WEIGHT if _WEIGHT in sections else ""
    if not title:
        return [[1 if kind == "XGMI" else _ACROSS_SOCKETS for kind in row] for row in types]
    cells = _table(sections, title, source)
    if len(cells) != len(types):
        raise DocumentError(f"{source}: {title!r} has {len(cells)} GPUs, {_LINK_TYPE!r} has {len(types)}")
    unit = 1 if title == _HOPS else _WEIGHT_OF_A_HOP
    return [[-(-int(cell) // unit) if cell.isdecimal() else _ACROSS_SOCKETS for cell in row] for row in cells]


def _word(kind: str, hops: int, distance: int, where: str) -> str:
    """Return the link word of a pair: PCIe by its distance, as each hop passes one more bridge or socket.

    Two GPUs that reach each other over XGMI in several hops have no link of their own: the traffic passes
    other GPUs, and is counted there.
    """
    match kind:
        case "XGMI" if hops <= 1:
            return "XGMI"
        case "XGMI" | "PCIE":
            return "SYS" if distance >= _ACROSS_SOCKETS else "PHB" if distance > 1 else "PIX"
        case other:
            raise DocumentError(f"{where}: {other!r} is not a link type of rocm-smi")
