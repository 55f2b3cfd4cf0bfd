"""Matrices of measured bandwidths between GPUs, as p2p benchmarks print them.

A figure alone tells PCIe from NVLink only for a known product; without one every pair keeps its measured rate
and the class stays unknown.
"""

import re
from collections.abc import Sequence
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Hardware, Link, LinkClass, LinkGraph
from arena_topo.topology.hardware.link_graph import machine_type
from arena_topo.topology.hardware.products import Form, Product, find_product, memory_of

_ROW = re.compile(r"\s*(?:gpu_?)?(\d{1,3})((?:\s+\d+(?:\.\d+)?)+)\s*", re.IGNORECASE)
_TITLE = re.compile(r"\bmatrix\b", re.IGNORECASE)
_DEVICE = re.compile(r"^Device: 0, ([^,]+),", re.MULTILINE)
_ABOVE_PCIE = 1.15


def parse_bandwidths(text: str, source: str = "the matrix", product: str = "") -> Hardware:
    """Return the hardware that a p2p bandwidth matrix (GB/s) shows.

    Of several matrices, as CUDA's p2pBandwidthLatencyTest prints them, the one with peer access in both directions
    counts. Figures count both directions unless their title says unidirectional. Of the two figures of a pair the
    lower one counts: a ring needs both. Raises ``DocumentError`` naming line and reason.
    """
    device = _DEVICE.search(text)
    name = product or (device.group(1).strip() if device else "")
    title, lines = _best_section(text)
    both_ways = "unidirectional" not in title.lower()
    rows = _rows(lines, source)
    known = find_product(name) if name else None
    graph = measured_graph(rows, known, both_ways=both_ways)
    memory = memory_of(name) if name else 0
    return Hardware(
        gpus=tuple(Gpu(index=index, product=name, memory=memory) for index in range(len(rows))),
        links=graph,
        machine=machine_type(graph, known.name if known else ""),
        assumptions=() if "directional" in title.lower() else ("the figures count both directions",),
    )


def _best_section(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the title and the numbered lines of the bandwidth matrix that tells most."""
    sections: list[tuple[str, list[tuple[int, str]]]] = [("", [])]
    for number, line in enumerate(text.splitlines(), 1):
        if _TITLE.search(line):
            sections.append((line, []))
        else:
            sections[-1][1].append((number, line))
    told = [section for section in sections if "bandwidth" in section[0].lower()] or sections
    return max(told, key=lambda section: ("P2P=Enabled" in section[0], "Bidirectional" in section[0]))


def measured_graph(rows: Sequence[Sequence[float]], product: Product | None, *, both_ways: bool) -> LinkGraph:
    """Return the link graph of measured figures; NVLinks are counted where *product* has them."""
    size = range(len(rows))
    share = 2.0 if both_ways else 1.0
    rates = [[min(rows[a][b], rows[b][a]) / share for b in size] for a in size]
    pairs = [rates[a][b] for a, b in combinations(size, 2)]
    switched = (
        product is not None and bool(product.switch_links) and bool(pairs) and _is_link(min(pairs), product)
    )
    return LinkGraph(
        tuple(tuple(_link(a, b, rates[a][b], product, switched=switched) for b in size) for a in size)
    )


def _link(a: int, b: int, rate: float, product: Product | None, *, switched: bool) -> Link:
    if a == b:
        return Link(LinkClass.SELF)
    if product is None or not _is_link(rate, product):
        return Link(LinkClass.UNKNOWN, 0, round(rate, 1))
    if switched:
        return Link(LinkClass.NVSWITCH, product.switch_links, round(rate, 1))
    kind = LinkClass.NVLINK if product.form is Form.MODULE else LinkClass.BRIDGE
    return Link(kind, max(round(rate / product.generation.link), 1), round(rate, 1))


def _is_link(rate: float, product: Product) -> bool:
    return bool(product.generation.link) and rate > product.generation.pcie * _ABOVE_PCIE


def _rows(lines: Sequence[tuple[int, str]], source: str) -> list[list[float]]:
    rows: list[list[float]] = []
    for number, line in lines:
        match = _ROW.fullmatch(line)
        if match is None or "." not in line:
            continue
        if int(match.group(1)) != len(rows):
            raise DocumentError(
                f"{source}: line {number} is of GPU {match.group(1)}, expected GPU {len(rows)}"
            )
        rows.append([float(figure) for figure in match.group(2).split()])
    for index, row in enumerate(rows):
        if len(row) != len(rows):
            raise DocumentError(f"{source}: GPU {index} has {len(row)} figures, expected {len(rows)}")
    if not rows:
        raise DocumentError(
            f"{source}: no row of bandwidths was found", hint="expected rows such as 'gpu_0 750.4 48.3'"
        )
    return rows
