"""Topologies as GraphML, for programs that compute on graphs."""

from io import BytesIO
from itertools import combinations

import networkx as nx

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.printable import printable
from arena_topo.output.topology.domains import Domain, cluster_domains, gpu_count


def graphml(snapshot: Snapshot) -> str:
    """Return domains, nodes and GPUs as a graph: containment edges, and every link between GPUs with its GB/s."""
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
        # Where nobody knows which GPUs are in use, the attribute is left out rather than false.
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
