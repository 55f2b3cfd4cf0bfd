"""Every form of a topology: DOT and GraphML, and all of them behind one call."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import networkx as nx
import pytest

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Link, LinkClass, LinkGraph
from arena_topo.model.text.yaml import load
from arena_topo.output.render import FORMS, dot, graphml, render_topology
from arena_topo.output.topology import cluster_tree, node_view
from arena_topo.topology.files import read_snapshot
from tests.output.clusters import TEXTS, machine, small_cluster


@pytest.mark.parametrize("form", FORMS)
def test_every_form_ends_its_last_line(form: str) -> None:
    """Of the cluster and of a node."""
    assert render_topology(small_cluster(), form=form).endswith("\n")
    assert render_topology(small_cluster(), ["v100-0"], form).endswith("\n")


@pytest.mark.parametrize(
    ("form", "read"), [("json", json.loads), ("yaml", lambda text: load(text, name="x"))]
)
def test_json_and_yaml_read_back_as_the_snapshot(form: str, read: object) -> None:
    """What is printed is what `plan -f` takes."""
    assert callable(read)

    assert small_cluster() == read_snapshot(read(render_topology(small_cluster(), form=form)))


def test_named_nodes_are_shown_in_detail() -> None:
    """Text one after the other, SVG the drawing of a single one."""
    snapshot = small_cluster()

    assert cluster_tree(snapshot) == render_topology(snapshot)
    assert f"{node_view(snapshot.nodes[0])}\n{node_view(snapshot.nodes[1])}" == render_topology(
        snapshot, ["v100-0", "h200-0"]
    )
    titles = [
        ET.fromstring(render_topology(snapshot, names, "svg")).findtext("{http://www.w3.org/2000/svg}title")
        for names in ([], ["v100-0"], ["v100-0", "h200-0"])
    ]
    assert titles == ["prod topology", "v100-0 8xV100-cubemesh", "prod topology"]


def test_an_unknown_form_is_refused() -> None:
    """The forms are listed."""
    with pytest.raises(UsageError) as caught:
        render_topology(small_cluster(), form="pdf")

    assert "svg" in caught.value.hint


# DOT is read by other programs, here by a parser of its syntax.


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


def test_every_link_is_drawn_as_a_line() -> None:
    """C2C links, which have no count, too."""
    node = machine("gpu-1")
    assert node.links is not None
    chips = LinkGraph(
        ((Link(LinkClass.SELF), Link(LinkClass.C2C)), (Link(LinkClass.C2C), Link(LinkClass.SELF)))
    )
    text = dot(replace(small_cluster(), nodes=(replace(node, gpus=node.gpus[:2], links=chips),)))

    assert '[label="C2C" penwidth=1];' in text


def test_names_are_quoted() -> None:
    """Whatever a cluster calls its things, the document stays well-formed."""
    odd = replace(small_cluster(), cluster='a "b" <c> & d')

    assert r'label="a \"b\" <c> & d: 14/28 free";' in dot(odd)


# GraphML is read by other programs, here by networkx.


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
