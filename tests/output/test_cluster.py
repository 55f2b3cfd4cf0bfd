"""The drawing of a cluster, small and large."""

import xml.etree.ElementTree as ET
from collections import Counter

from arena_topo.output.svg import Headline, cluster_picture
from tests.output.clusters import map_of, small_cluster
from tests.output.drawings import SVG, tips


def test_the_cluster_shows_domains_and_a_square_for_each_gpu() -> None:
    """Nested boxes; closed nodes say why."""
    svg = cluster_picture(small_cluster())
    root = ET.fromstring(svg)
    squares = [square for square in root.iter(f"{SVG}rect") if square.get("width") == "13"]
    legend = {"in use, a colour for each job", "free"}

    assert 28 + len(legend) == len(squares)
    assert legend <= {text.text for text in root.iter(f"{SVG}text")}
    assert {"zone a", "rack r1", "in no rack", "cordoned"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_a_large_cluster_is_a_map_with_numbers() -> None:
    """A tile for each node with its free GPUs or those that are planned, and all else in its tooltip."""
    svg = cluster_picture(map_of(1000))
    root = ET.fromstring(svg)
    numbers = Counter(text.text for text in root.iter(f"{SVG}text") if "tiny" in text.get("class", ""))

    assert {"8": 998, "4": 1, "0": 1} == numbers
    assert {"u0": 2, "gpu-heat-4": 999, "gpu-heat-0": 2} == Counter(
        rect.get("class") for rect in root.iter(f"{SVG}rect") if rect.get("class") not in ("card", "page")
    )
    assert "n999: 0 of 8 GPUs free\n8xV100-cubemesh" in tips(svg)
    assert float(root.get("width", "0")) <= 1240


def test_the_nodes_of_a_plan_stand_out() -> None:
    """By the border of their tiles, and by the shape of the planned GPUs."""
    root = ET.fromstring(cluster_picture(map_of(20)))
    rects = list(root.iter(f"{SVG}rect"))

    assert 1 == sum(rect.get("class") == "card chosen" for rect in rects)
    # Four GPUs, and the entry of the legend.
    assert 4 + 1 == sum(rect.get("rx") == "6.5" for rect in rects)


def test_a_drawing_can_be_read_aloud() -> None:
    """It has a title and a description, which a screen reader reads."""
    root = ET.fromstring(
        cluster_picture(small_cluster(), headline=Headline("vgg: 1 worker", ("busbw: 5 GB/s",)))
    )

    assert "prod topology" == root.findtext(f"{SVG}title")
    assert "vgg: 1 worker busbw: 5 GB/s 4 nodes  ·  14 of 28 GPUs free" == root.findtext(f"{SVG}desc")
