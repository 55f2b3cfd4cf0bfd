"""The drawing of a node: well-formed, complete and to scale."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from arena_topo.output.svg import node_picture
from tests.output.clusters import TEXTS, machine, small_cluster
from tests.output.drawings import SVG, tips


@pytest.mark.parametrize("kind", TEXTS)
def test_every_gpu_of_every_machine_is_drawn(kind: str) -> None:
    """One square a GPU, all of them within the picture."""
    node = machine("gpu-1", kind)
    root = ET.fromstring(node_picture(node))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    squares = [
        square
        for square in root.iter(f"{SVG}rect")
        # That of the legend stands at its entry's origin.
        if square.get("class") == "gpu-free" and float(square.get("x", "0")) > 0
    ]

    assert node.gpu_total == len(squares)
    for square in squares:
        assert 30 < float(square.get("x", "0")) < width - 30 - float(square.get("width", "0"))
        assert 30 < float(square.get("y", "0")) < height - 30 - float(square.get("height", "0"))


def test_point_to_point_links_are_chords_as_wide_as_their_count() -> None:
    """A V100 cube mesh: eight double and eight single links."""
    root = ET.fromstring(node_picture(machine("v100-0")))
    widths = Counter(
        path.get("stroke-width") for path in root.iter(f"{SVG}path") if "link" in path.get("class", "")
    )

    assert {"5.9": 8, "3.7": 8} == widths


def test_switched_links_meet_in_a_hub() -> None:
    """Eight spokes, no chord: a GPU's links are shared by all its peers."""
    svg = node_picture(machine("h200-0", "h200"))
    root = ET.fromstring(svg)

    assert 8 == sum(
        "switch" in line.get("class", "") for line in root.iter(f"{SVG}line") if line.get("x1") != "0"
    )
    assert "GPU3: 18 NVLinks into the switches, 450 GB/s" in tips(svg)
    assert not [tip for tip in tips(svg) if re.match(r"GPU\d to GPU", tip)]


def test_cards_without_links_say_so() -> None:
    """An L40S box has PCIe only."""
    assert ">PCIe only<" in node_picture(machine("l40s-0", "l40s"))


def test_holders_have_their_colours_and_names() -> None:
    """The GPUs of one job look alike, and tell whose they are."""
    svg = node_picture(machine("v100-0", vgg16=(0, 3), bert=(5,)))
    workers = {
        f"GPU{i}: used by team-a/{job}, worker 0" for i, job in ((0, "vgg16"), (3, "vgg16"), (5, "bert"))
    }

    assert workers <= set(tips(svg))
    assert svg.count(">w0<") == 4  # three GPUs and the legend
    assert svg.count('class="u2"') == 3  # two GPUs and the legend
    assert ">team-a/bert<" in svg


def test_what_is_not_known_looks_so() -> None:
    """Neither free nor used, and unhealthy GPUs are marked."""
    guessed = small_cluster().nodes[3]
    sick = replace(guessed, gpus=(replace(guessed.gpus[0], healthy=False), *guessed.gpus[1:]))

    assert "GPU0: unhealthy" in tips(node_picture(sick))
    assert "GPU1: whether it is used is not known" in tips(node_picture(sick))
    assert ">links assumed, used GPUs not known<" in node_picture(sick)


def test_sockets_pcie_roots_and_nics_are_drawn() -> None:
    """A DGX A100 has four NUMA nodes, one PCIe root each with two near NICs."""
    shown = tips(node_picture(machine("a100", "dgxa100")))

    assert {f"PCIe root pcie{root}" for root in range(4)} <= set(shown)
    assert "nearest NICs: mlx5_0, mlx5_1" in shown


@pytest.mark.parametrize("kind", ["v100", "h200", "l40s", "dgxa100"])
def test_the_legend_lists_what_is_drawn(kind: str) -> None:
    """Each kind of link, arc and pill that the drawing has, and no other."""
    node = machine("node-0", kind, vgg16=(0,))
    svg = node_picture(node)
    assert node.links is not None
    every = [node.links.between(a, b) for a, b in combinations(range(node.links.size), 2)]
    direct = {link.label for link in every if link.kind.is_direct}
    listed = {
        link.label
        for link in every
        if re.search(rf">{re.escape(link.label)}( through NVSwitches| bridge)?[ <]", svg)
    }

    assert listed == (direct or listed - {"SYS"})
    assert ("GPUs of one PCIe root" in svg) == ('class="root"' in svg)
    assert ("the nearest network cards" in svg) == ("nearest NICs: " in svg)
    assert ">the worker that has the GPU<" in svg
    assert ">free<" in svg
    assert ">unhealthy<" not in svg
