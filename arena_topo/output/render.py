"""A topology in any of its forms.

What a form needs is imported only when it is asked for: networkx takes longer to import than the others to
print.
"""

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import combinations
from typing import TYPE_CHECKING

from arena_topo.errors import UsageError
from arena_topo.model.cluster import GpuNode, Link, Snapshot
from arena_topo.model.text.words import last_part, printable
from arena_topo.output.topology import Domain, cluster_domains, gpu_count, select_nodes

if TYPE_CHECKING:
    import networkx as nx

FORMS = ("text", "json", "yaml", "dot", "graphml", "svg", "html")


def render_topology(
    snapshot: Snapshot,
    names: Sequence[str] = (),
    form: str = "text",
    *,
    colour: bool = False,
    width: int | None = None,
) -> str:
    """Return *snapshot*, or only the nodes or domains *names* of it, in one of ``FORMS``.

    Text and SVG show a tree or map of the cluster or of domains, and the links, GPUs and NICs of a node where
    one is named. Text leaves out what *width* has no room for. Raises ``UsageError`` for a node that does not
    exist.
    """
    chosen = select_nodes(snapshot, names)
    # A domain is drawn as the cluster is.
    named = bool(names) and {node.name for node in chosen.nodes} == set(names)
    match form:
        case "text":
            return _text(chosen, width, named=named, colour=colour)
        case "json" | "yaml":
            from arena_topo.output.text import document
            from arena_topo.topology.files import snapshot_document

            return document(snapshot_document(chosen), form)
        case "dot":
            return dot(chosen)
        case "graphml":
            return graphml(chosen)
        case "svg":
            return _svg(chosen, named=named)
        case "html":
            from arena_topo.output.svg import topology_page

            return topology_page(chosen)
        case _:
            raise UsageError(f"{form!r} is not a form of a topology", hint=f"one of {', '.join(FORMS)}")


def _text(snapshot: Snapshot, width: int | None, *, named: bool, colour: bool) -> str:
    if named:
        from arena_topo.output.topology import node_view

        return "\n".join(node_view(node, colour=colour, width=width) for node in snapshot.nodes)
    from arena_topo.output.topology import cluster_tree

    return cluster_tree(snapshot, colour=colour, width=width)


def _svg(snapshot: Snapshot, *, named: bool) -> str:
    if named and len(snapshot.nodes) == 1:
        from arena_topo.output.svg import node_picture

        return node_picture(snapshot.nodes[0]) + "\n"
    from arena_topo.output.svg import cluster_picture

    return cluster_picture(snapshot) + "\n"


# DOT, for Graphviz. Written by hand: networkx writes it through pydot, another dependency, for the few kinds
# of lines below.

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


# GraphML, for programs that compute on graphs.


def graphml(snapshot: Snapshot) -> str:
    """Return domains, nodes and GPUs as a graph: containment, and every link between GPUs with its GB/s."""
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    _add_domain(graph, cluster_domains(snapshot), "cluster", "")
    document = BytesIO()
    # Not write_graphml: that writes with lxml where it is installed, and in other bytes.
    nx.write_graphml_xml(graph, document, named_key_ids=True)
    return document.getvalue().decode() + "\n"


def _add_domain(graph: "nx.Graph[str]", domain: Domain, identity: str, parent: str) -> None:
    graph.add_node(identity, kind=printable(domain.tier or "cluster"), label=printable(domain.name))
    if parent:
        _contain(graph, parent, identity)
    for below in domain.domains:
        _add_domain(graph, below, printable(f"{identity}/{below.name}"), identity)
    for node in domain.nodes:
        _add_node(graph, node, identity)


def _add_node(graph: "nx.Graph[str]", node: GpuNode, parent: str) -> None:
    # XML has no way to write most of the characters that cannot be seen.
    identity = printable(f"node/{node.name}")
    graph.add_node(identity, kind="node", label=printable(node.name))
    _contain(graph, parent, identity)
    gpus = [f"{identity}/GPU{index}" for index in range(gpu_count(node))]
    for index, gpu in enumerate(gpus):
        # If it is unknown which GPUs are in use, the attribute is left out rather than false.
        used = {} if node.used is None else {"used": index in node.used}
        graph.add_node(gpu, kind="gpu", label=f"GPU{index}", **used)
        _contain(graph, identity, gpu)
    if node.links is not None:
        for a, b in combinations(range(node.links.size), 2):
            link = node.links.between(a, b)
            values = {"class": link.kind.value, "count": link.count, "gbps": link.bandwidth}
            graph.add_edge(gpus[a], gpus[b], **values)


def _contain(graph: "nx.Graph[str]", parent: str, child: str) -> None:
    # Unpacked from a dict, because class is a keyword of Python.
    graph.add_edge(parent, child, **{"class": "contains"})
