"""The drawing of a cluster, small and large."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from arena_topo.output.topology.svg.cluster import cluster_picture
from tests.output.clusters import machine, small_cluster
from tests.output.drawings import SVG, tips


def test_the_cluster_shows_domains_and_a_square_for_each_gpu() -> None:
    """Nested boxes; closed nodes say why."""
    svg = cluster_picture(small_cluster())
    root = ET.fromstring(svg)
    squares = [square for square in root.iter(f"{SVG}rect") if square.get("width") == "13"]

    assert 28 == len(squares)
    assert {"zone a", "rack r1", "in no rack", "cordoned"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_a_large_cluster_is_drawn_small() -> None:
    """A bar for each node, all else in its tooltip, and the picture stays of one width."""
    nodes = tuple(replace(machine("n"), name=f"n{index}") for index in range(400))
    svg = cluster_picture(replace(small_cluster(), nodes=nodes))

    assert float(ET.fromstring(svg).get("width", "0")) <= 1240
    assert "n399: 8 of 8 GPUs free\n8xV100-cubemesh\nlinks assumed" not in tips(svg)
    assert "n399: 8 of 8 GPUs free\n8xV100-cubemesh" in tips(svg)
