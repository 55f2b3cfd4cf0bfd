"""Matrices of measured bandwidths between GPUs, as p2p benchmarks print them.

A figure alone tells PCIe from NVLink only for a known product; without one every pair keeps its measured rate
and the class stays unknown.
"""

import re
from collections.abc import Sequence
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.hardware import Gpu, Link, LinkClass, LinkGraph
from arena_topo.topology.hardware import Hardware
from arena_topo.topology.linkgraph import machine_type
from arena_topo.topology.products import Form, Product, find_product, memory_of

_ROW = re.compile(r"\s*(?:gpu_?)?(\d{1,3})((?:\s+\d+(?:\.\d+)?)+)\s*", re.IGNORECASE)
_ABOVE_PCIE = 1.15


def parse_bandwidths(
    text: str, source: str = "the matrix", product: str = "", *, both_ways: bool = True
) -> Hardware:
    """Return the hardware that a p2p bandwidth matrix (GB/s) shows.

    The figures count both directions unless *both_ways* is False. Of the two figures of a pair the lower one
    counts: a ring needs both. Raises ``DocumentError`` naming line and reason.
    """
    rows = _rows(text, source)
    known = find_product(product) if product else None
    graph = measured_graph(rows, known, both_ways=both_ways)
    return Hardware(
        gpus=tuple(
            Gpu(index=index, product=product, memory=memory_of(product) if product else 0)
            for index in range(len(rows))
        ),
        links=graph,
        machine=machine_type(graph, known.name if known else ""),
        assumptions=("the figures count both directions",) if both_ways else (),
    )


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


def _rows(text: str, source: str) -> list[list[float]]:
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
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
