"""GraphML is read by other programs, here by networkx."""

from dataclasses import replace

import networkx as nx

from arena_topo.output.render import graphml
from tests.output.clusters import small_cluster


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


def test_names_are_escaped() -> None:
    """Whatever a cluster calls its things, the document stays well-formed."""
    odd = replace(small_cluster(), cluster='a "b" <c> & d')

    assert nx.parse_graphml(graphml(odd)).nodes["cluster"]["label"] == 'a "b" <c> & d'
