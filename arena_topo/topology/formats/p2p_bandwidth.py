"""Matrices of measured bandwidths between GPUs, as p2p benchmarks print them.

A figure by itself separates PCIe from NVLink only for a known product; without one every pair keeps its
measured rate, and its class stays unknown. For example, 96.4 GB/s in both directions are 48.2 in one: on
V100, whose PCIe gives 12 and each NVLink 25, those are two NVLinks. Forms: p2pBandwidthLatencyTest of
NVIDIA's CUDA samples, and the rows ``gpu_0 750.4 48.3 ...`` of the vendors' guides.
"""

import re
from collections.abc import Sequence
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Hardware, Link, LinkClass, LinkGraph
from arena_topo.topology.hardware import (
    FormFactor,
    Product,
    check_count,
    find_product,
    machine_type,
    memory_of,
)

_ROW = re.compile(r"\s*(?:gpu_?)?(\d{1,3})((?:\s+\d+(?:\.\d+)?)+)\s*", re.IGNORECASE)
_TITLE = re.compile(r"\bmatrix\b", re.IGNORECASE)
_DEVICE = re.compile(r"^Device: 0, ([^,]+),", re.MULTILINE)
_ABOVE_PCIE = 1.15
"""What is faster than PCIe by this factor is a direct link."""


def parse_bandwidths(text: str, source: str = "the matrix", product: str = "") -> Hardware:
    """Return the hardware that a p2p bandwidth matrix (GB/s) shows.

    Of several matrices, as CUDA's sample prints them, the one with peer access in both directions counts.
    Figures count both directions unless their title says unidirectional. The lower of a pair's two figures
    counts, because a ring needs both ways. Raises ``DocumentError`` naming line and reason.
    """
    device = _DEVICE.search(text)
    name = product or (device.group(1).strip() if device else "")
    title, lines = _best_section(text)
    both_ways = "unidirectional" not in title.lower()
    rows = _rows(lines, source)
    spec = find_product(name)
    graph = _measured_graph(rows, spec, both_ways=both_ways)
    memory = memory_of(name)
    return Hardware(
        gpus=tuple(Gpu(index=index, product=name, memory=memory) for index in range(len(rows))),
        links=graph,
        machine=machine_type(graph, spec.name if spec else ""),
        # Both of the sample's words, unidirectional and bidirectional, answer the question.
        assumptions=() if "directional" in title.lower() else ("the figures count both directions",),
    )


def _best_section(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the title and the numbered lines of the most telling bandwidth matrix."""
    sections: list[tuple[str, list[tuple[int, str]]]] = [("", [])]
    for number, line in enumerate(text.splitlines(), 1):
        if _TITLE.search(line):
            sections.append((line, []))
        else:
            sections[-1][1].append((number, line))
    # Rows that stand under no title at all are those of the vendors' guides.
    titled = [section for section in sections if "bandwidth" in section[0].lower()] or sections
    # Without peer access the figures are those of copies through the host's memory.
    return max(titled, key=lambda section: ("P2P=Enabled" in section[0], "Bidirectional" in section[0]))


def _measured_graph(
    rows: Sequence[Sequence[float]], product: Product | None, *, both_ways: bool
) -> LinkGraph:
    """Return the link graph of measured figures; NVLinks are counted where *product* has them."""
    gpus = range(len(rows))
    directions = 2 if both_ways else 1
    rates = [[min(rows[a][b], rows[b][a]) / directions for b in gpus] for a in gpus]
    pairs = [rates[a][b] for a, b in combinations(gpus, 2)]
    # Where every pair is faster than PCIe, a product that can hang on switches does.
    switched = (
        product is not None and product.switch_links > 0 and bool(pairs) and _is_direct(min(pairs), product)
    )
    return LinkGraph(
        tuple(tuple(_link(a, b, rates[a][b], product, switched=switched) for b in gpus) for a in gpus)
    )


def _link(a: int, b: int, rate: float, product: Product | None, *, switched: bool) -> Link:
    if a == b:
        return Link(LinkClass.SELF)
    if product is None or not _is_direct(rate, product):
        return Link(LinkClass.UNKNOWN, 0, round(rate, 1))
    if switched:
        return Link(LinkClass.NVSWITCH, product.switch_links, round(rate, 1))
    kind = LinkClass.NVLINK if product.form is FormFactor.MODULE else LinkClass.BRIDGE
    # The pair is faster than PCIe, so that it has one link at least, however slow that was measured.
    return Link(kind, max(round(rate / product.generation.link_rate), 1), round(rate, 1))


def _is_direct(rate: float, product: Product) -> bool:
    return bool(product.generation.link_rate) and rate > product.generation.pcie_rate * _ABOVE_PCIE


def _rows(lines: Sequence[tuple[int, str]], source: str) -> list[list[float]]:
    rows: list[list[float]] = []
    for number, line in lines:
        match = _ROW.fullmatch(line)
        # Figures have decimals; rows without any are those of the connectivity matrix, ones and zeros.
        if match is None or "." not in line:
            continue
        if int(match.group(1)) != len(rows):
            raise DocumentError(
                f"{source}: line {number} is about GPU {match.group(1)}, expected GPU {len(rows)}"
            )
        rows.append([float(figure) for figure in match.group(2).split()])
    check_count(len(rows), source)
    for index, row in enumerate(rows):
        if len(row) != len(rows):
            raise DocumentError(f"{source}: GPU {index} has {len(row)} figures, expected {len(rows)}")
    if not rows:
        raise DocumentError(
            f"{source}: no row of bandwidths was found", hint="expected rows such as 'gpu_0 750.4 48.3'"
        )
    return rows
