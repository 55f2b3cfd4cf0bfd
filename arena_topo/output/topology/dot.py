"""Topologies as Graphviz' DOT.

Written by hand: networkx writes DOT through pydot, another dependency, for the few kinds of lines below.
"""

import json
from collections.abc import Iterator
from itertools import combinations

from arena_topo.model.cluster.hardware import Link
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.printable import printable
from arena_topo.model.notation.words import last_part
from arena_topo.output.topology.domains import Domain, cluster_domains, gpu_count

_INDENT = "  "


def dot(snapshot: Snapshot) -> str:
    """Return the domains as nested clusters, each node in them with its GPUs and their direct links."""
    lines = [
        "graph topology {",
        '  graph [fontname="sans-serif"];',
        '  node [shape=box fontname="sans-serif"];',
    ]
    lines += _domain_lines(cluster_domains(snapshot), _INDENT, "0")
    return "\n".join([*lines, "}"]) + "\n"


def _domain_lines(domain: Domain, indent: str, number: str) -> Iterator[str]:
    label = f"{last_part(domain.tier)} {domain.name}".strip()
    yield f"{indent}subgraph cluster_{number} {{"
    yield f"{indent}{_INDENT}label={_quoted(f'{label}: {domain.free}/{domain.total} free')};"
    for index, below in enumerate(domain.domains):
        yield from _domain_lines(below, indent + _INDENT, f"{number}_{index}")
    for index, node in enumerate(domain.nodes):
        yield from _node_lines(node, indent + _INDENT, f"{number}_n{index}")
    yield f"{indent}}}"


def _node_lines(node: GpuNode, indent: str, number: str) -> Iterator[str]:
    yield f"{indent}subgraph cluster_{number} {{"
    label = f"{node.name} {node.machine}: {node.gpu_free}/{node.gpu_total} free"
    yield f"{indent}{_INDENT}label={_quoted(label)};"
    for index in range(gpu_count(node)):
        colour = "lightblue" if node.used is not None and index in node.used else "white"
        yield f'{indent}{_INDENT}{_id(node, index)} [label="GPU{index}" style=filled fillcolor={colour}];'
    for a, b, link in _direct(node):
        # GPUs on switches have up to eighteen links, and lines that wide would cover the graph.
        # A C2C link has no count.
        width = min(max(link.count, 1), 4)
        ends = f"{_id(node, a)} -- {_id(node, b)}"
        yield f'{indent}{_INDENT}{ends} [label="{link.label}" penwidth={width}];'
    yield f"{indent}}}"


def _id(node: GpuNode, index: int) -> str:
    return _quoted(f"{node.name}/GPU{index}")


def _quoted(text: str) -> str:
    # DOT quotes strings as JSON does.
    return json.dumps(printable(text), ensure_ascii=False)


def _direct(node: GpuNode) -> Iterator[tuple[int, int, Link]]:
    if node.links is not None:
        for a, b in combinations(range(node.links.size), 2):
            if node.links.between(a, b).kind.is_direct:
                yield a, b, node.links.between(a, b)
