"""Topologies for other programs: Graphviz' DOT and GraphML."""

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from xml.sax.saxutils import escape, quoteattr

from arena_topo.model.cluster.hardware import Link
from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.output.topology.domains import Domain, cluster_domains

_INDENT = "  "


def dot(snapshot: Snapshot) -> str:
    """Return the domains as nested clusters, each node in them with its GPUs and their direct links."""
    lines = [
        "graph topology {",
        '  graph [fontname="sans-serif"];',
        '  node [shape=box fontname="sans-serif"];',
    ]
    lines += _dot_domain(cluster_domains(snapshot), _INDENT, "0")
    return "\n".join([*lines, "}"]) + "\n"


def _dot_domain(domain: Domain, indent: str, number: str) -> Iterator[str]:
    label = f"{domain.tier.rpartition('/')[2]} {domain.name}".strip()
    yield f"{indent}subgraph cluster_{number} {{"
    yield f"{indent}{_INDENT}label={json.dumps(f'{label}: {domain.free}/{domain.total} free', ensure_ascii=False)};"
    for at, below in enumerate(domain.domains):
        yield from _dot_domain(below, indent + _INDENT, f"{number}_{at}")
    for at, node in enumerate(domain.nodes):
        yield from _dot_node(node, indent + _INDENT, f"{number}_n{at}")
    yield f"{indent}}}"


def _dot_node(node: GpuNode, indent: str, number: str) -> Iterator[str]:
    yield f"{indent}subgraph cluster_{number} {{"
    label = f"{node.name} {node.machine}: {node.gpu_free}/{node.gpu_total} free"
    yield f"{indent}{_INDENT}label={json.dumps(label, ensure_ascii=False)};"
    for index in range(_size(node)):
        colour = "lightblue" if node.used is not None and index in node.used else "white"
        yield f'{indent}{_INDENT}{_id(node, index)} [label="GPU{index}" style=filled fillcolor={colour}];'
    for a, b, link in _direct(node):
        width = min(link.count, 4)
        ends = f"{_id(node, a)} -- {_id(node, b)}"
        yield f'{indent}{_INDENT}{ends} [label="{link.label}" penwidth={width}];'
    yield f"{indent}}}"


def _id(node: GpuNode, index: int) -> str:
    return json.dumps(f"{node.name}/GPU{index}", ensure_ascii=False)


def _size(node: GpuNode) -> int:
    return node.links.size if node.links is not None else len(node.gpus) or node.gpu_total


def _direct(node: GpuNode) -> Iterator[tuple[int, int, Link]]:
    if node.links is not None:
        for a, b in combinations(range(node.links.size), 2):
            if node.links.between(a, b).kind.is_direct:
                yield a, b, node.links.between(a, b)


_KEYS = (
    ("node", "kind", "string"),
    ("node", "label", "string"),
    ("node", "used", "boolean"),
    ("edge", "class", "string"),
    ("edge", "count", "int"),
    ("edge", "gbps", "double"),
)


def graphml(snapshot: Snapshot) -> str:
    """Return domains, nodes and GPUs as a graph: containment edges, and every link between GPUs with its GB/s."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ]
    lines += [
        f'  <key id="{name}" for="{kind}" attr.name="{name}" attr.type="{form}"/>'
        for kind, name, form in _KEYS
    ]
    lines += ['  <graph id="topology" edgedefault="undirected">']
    lines += _graphml_domain(cluster_domains(snapshot), "cluster", "")
    return "\n".join([*lines, "  </graph>", "</graphml>"]) + "\n"


def _graphml_domain(domain: Domain, identity: str, parent: str) -> Iterator[str]:
    yield _vertex(identity, kind=domain.tier or "cluster", label=domain.name)
    if parent:
        yield _edge(parent, identity, {"class": "contains"})
    for below in domain.domains:
        yield from _graphml_domain(below, f"{identity}/{below.name}", identity)
    for node in domain.nodes:
        yield from _graphml_node(node, identity)


def _graphml_node(node: GpuNode, parent: str) -> Iterator[str]:
    identity = f"node/{node.name}"
    yield _vertex(identity, kind="node", label=node.name)
    yield _edge(parent, identity, {"class": "contains"})
    gpus = [f"{identity}/GPU{index}" for index in range(_size(node))]
    for index, gpu in enumerate(gpus):
        used = {} if node.used is None else {"used": str(index in node.used).lower()}
        yield _vertex(gpu, kind="gpu", label=f"GPU{index}", **used)
        yield _edge(identity, gpu, {"class": "contains"})
    if node.links is not None:
        for a, b in combinations(range(node.links.size), 2):
            link = node.links.between(a, b)
            values = {"class": link.kind.value, "count": str(link.count), "gbps": f"{link.bandwidth:g}"}
            yield _edge(gpus[a], gpus[b], values)


def _vertex(identity: str, **values: str) -> str:
    return f"    <node id={quoteattr(identity)}>{_data(list(values.items()))}</node>"


def _edge(source: str, target: str, values: dict[str, str]) -> str:
    return f"    <edge source={quoteattr(source)} target={quoteattr(target)}>{_data(list(values.items()))}</edge>"


def _data(values: Sequence[tuple[str, str]]) -> str:
    return "".join(f'<data key="{key}">{escape(value)}</data>' for key, value in values)
