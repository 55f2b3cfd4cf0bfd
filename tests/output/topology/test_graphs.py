"""DOT and GraphML are read by other programs: networkx and a parser of their syntax."""

import re
from dataclasses import replace

import networkx as nx
import pytest

from arena_topo.output.topology.graphs import dot, graphml
from tests.output.clusters import TEXTS, machine, small_cluster


def test_graphml_holds_every_gpu_and_link() -> None:
    """Networkx reads it; links carry class, count and GB/s."""
    graph = nx.parse_graphml(graphml(small_cluster()))
    gpus = [name for name, values in graph.nodes(data=True) if values["kind"] == "gpu"]

    assert 28 == len(gpus)
    assert {"class": "NV", "count": 2, "gbps": 50.0} == graph.edges["node/v100-0/GPU0", "node/v100-0/GPU3"]
    assert graph.nodes["node/v100-0/GPU0"]["used"] is True
    assert "used" not in graph.nodes["node/guess-0/GPU0"]
    assert "contains" == graph.edges["cluster/a/r1", "node/v100-0"]["class"]
    assert nx.is_connected(graph)


@pytest.mark.parametrize("kind", TEXTS)
def test_dot_draws_each_direct_link_once(kind: str) -> None:
    """NVLinks of every real machine; PCIe paths would only hide them."""
    node = machine("gpu-1", kind)
    assert node.links is not None
    direct = sum(link.kind.is_direct for row in node.links.links for link in row) // 2
    text = dot(replace(small_cluster(), nodes=(node,)))

    assert direct == len(re.findall(r" -- ", text))
    assert node.gpu_total == len(re.findall(r'\[label="GPU\d+" style', text))
    assert text.count("{") == text.count("}")


def test_names_are_quoted() -> None:
    """Whatever a cluster calls its things, the document stays well-formed."""
    odd = replace(small_cluster(), cluster='a "b" <c> & d')

    assert r'label="a \"b\" <c> & d: 14/28 free";' in dot(odd)
    assert nx.parse_graphml(graphml(odd)).nodes["cluster"]["label"] == 'a "b" <c> & d'
