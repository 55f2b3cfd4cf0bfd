"""The drawings: well-formed, complete, to scale, offline, and really painted by a browser."""

import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.output.topology.page import MOST_DRAWN, topology_page
from arena_topo.output.topology.svg.cluster import cluster_picture
from arena_topo.output.topology.svg.node import node_picture
from arena_topo.output.topology.svg.ring_layout import ring_of
from arena_topo.output.topology.svg.users import user_colours
from tests.output.clusters import TEXTS, machine, small_cluster

SVG = "{http://www.w3.org/2000/svg}"


def tips(svg: str) -> list[str]:
    """Return the tooltips of a drawing, which say what each thing is."""
    return [title.text or "" for title in ET.fromstring(svg).iter(f"{SVG}title")]


@pytest.mark.parametrize("kind", TEXTS)
def test_every_gpu_of_every_machine_is_drawn(kind: str) -> None:
    """One circle a GPU, all of them within the picture."""
    node = machine("gpu-1", kind)
    root = ET.fromstring(node_picture(node))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    circles = [
        each
        for each in root.iter(f"{SVG}circle")
        if each.get("class") == "gpu-free" and each.get("r") != "6.5"
    ]

    assert node.gpu_total == len(circles)
    for each in circles:
        assert 30 < float(each.get("cx", "0")) < width - 30
        assert 30 < float(each.get("cy", "0")) < height - 30


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
        "switch" in line.get("class", "") for line in root.iter(f"{SVG}line") if line.get("x1") != "24"
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
        f"GPU{at}: used by team-a/{job}, worker 0" for at, job in ((0, "vgg16"), (3, "vgg16"), (5, "bert"))
    }

    assert workers <= set(tips(svg))
    assert svg.count(">w0<") == 3
    assert svg.count('class="u1"') == 3  # two GPUs and the legend
    assert ">team-a/bert<" in svg


def test_what_is_not_known_looks_so() -> None:
    """Neither free nor used, and unhealthy GPUs are marked."""
    guessed = small_cluster().nodes[3]
    sick = replace(guessed, gpus=(replace(guessed.gpus[0], healthy=False), *guessed.gpus[1:]))

    assert "GPU0: unhealthy" in tips(node_picture(sick))
    assert "GPU1: whether it is used is not known" in tips(node_picture(sick))
    assert ">links assumed, used GPUs not known<" in node_picture(sick)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("h200", [(0, (0, 1, 2, 3)), (1, (4, 5, 6, 7))]),
        ("dgxa100", [(1, (2, 3)), (3, (0, 1)), (5, (6, 7)), (7, (4, 5))]),
        ("v100", [(0, (0, 3, 2, 1)), (1, (4, 7, 6, 5))]),
    ],
)
def test_gpus_are_grouped_by_socket(kind: str, expected: list[tuple[int, tuple[int, ...]]]) -> None:
    """Within a group linked GPUs stand near each other."""
    node = machine("gpu-1", kind)

    assert expected == list(ring_of(node, node.gpu_total).groups)


def test_sockets_pcie_roots_and_nics_are_drawn() -> None:
    """A DGX A100 has four NUMA nodes, one PCIe root each with two near NICs."""
    found = tips(node_picture(machine("a100", "dgxa100")))

    assert {f"PCIe root pcie{root}" for root in range(4)} <= set(found)
    assert "nearest NICs: mlx5_0, mlx5_1" in found


def test_the_cluster_shows_domains_and_a_square_for_each_gpu() -> None:
    """Nested boxes; closed nodes say why."""
    svg = cluster_picture(small_cluster())
    root = ET.fromstring(svg)
    squares = [each for each in root.iter(f"{SVG}rect") if each.get("width") == "13"]

    assert 28 == len(squares)
    assert {"zone a", "rack r1", "in no rack", "cordoned"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_a_large_cluster_is_drawn_small() -> None:
    """A bar for each node, all else in its tooltip, and the picture stays of one width."""
    nodes = tuple(replace(machine("n"), name=f"n{index}") for index in range(400))
    svg = cluster_picture(replace(small_cluster(), nodes=nodes))

    assert float(ET.fromstring(svg).get("width", "0")) <= 1240
    assert "n399: 8 of 8 GPUs free\n8xV100-cubemesh\nlinks assumed" not in tips(svg)
    assert "n399: 8 of 8 GPUs free\n8xV100-cubemesh" in tips(svg)


def test_names_are_escaped() -> None:
    """A name may not become markup."""
    node = replace(machine("<script>alert(1)</script>"), machine="a&b")

    assert "<script>" not in node_picture(node)
    assert "<script>" not in topology_page(replace(small_cluster(), nodes=(node,), cluster="<script>"))
    ET.fromstring(node_picture(node))


def test_a_page_loads_nothing() -> None:
    """No scripts, no addresses but the namespace of SVG."""
    page = topology_page(small_cluster())

    assert {"http://www.w3.org/2000/svg"} == set(re.findall(r"https?://[^\"'< ]+", page))
    assert "<script" not in page
    assert "@import" not in page


def test_every_tile_leads_to_its_node() -> None:
    """Anchors of the overview have their figures."""
    page = topology_page(small_cluster())
    targets = set(re.findall(r'href="#(node-[^"]+)"', page))

    assert {"node-v100-0", "node-h200-0", "node-l40s-0", "node-guess-0"} == targets
    assert targets == set(re.findall(r'<figure id="([^"]+)"', page))


def test_of_a_large_cluster_one_node_of_each_type_is_drawn() -> None:
    """A page of thousands of drawings opens nowhere."""
    nodes = [
        replace(machine("n", kind), name=f"{kind}-{index}")
        for kind in ("v100", "h200")
        for index in range(MOST_DRAWN)
    ]
    page = topology_page(replace(small_cluster(), nodes=tuple(nodes)))

    assert ["node-h200-0", "node-v100-0"] == sorted(re.findall(r'<figure id="([^"]+)"', page))
    assert 'href="#node-' not in page


def test_a_job_has_one_colour_on_all_nodes() -> None:
    """Colours are given to all holders of a page at once."""
    nodes: list[GpuNode] = [machine("a", llama=(0,)), machine("b", bert=(1,), llama=(2,))]

    assert {"team-a/bert": 0, "team-a/llama": 1} == user_colours(nodes)


def pixels(png: bytes) -> Counter[tuple[int, ...]]:
    """Return how often each colour is in a picture of 8-bit channels."""
    data, at, header = b"", 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        header = body if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        at += 12 + size
    width, height, _, colour = struct.unpack(">IIBB", header[:10])
    step = {2: 3, 6: 4}[colour]
    raw, stride, previous = zlib.decompress(data), width * step, bytearray(width * step)
    found: Counter[tuple[int, ...]] = Counter()
    for row in range(height):
        kind, line = (
            raw[row * (stride + 1)],
            bytearray(raw[row * (stride + 1) + 1 : (row + 1) * (stride + 1)]),
        )
        for place in range(stride):
            left = line[place - step] if place >= step else 0
            corner = previous[place - step] if place >= step else 0
            line[place] = (line[place] + predicted(kind, left, previous[place], corner)) & 255
        previous = line
        found.update(zip(*(line[channel::step] for channel in range(3)), strict=True))
    return found


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """Return what PNG's filter *kind* adds to a byte."""
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda each: abs(guess - each))
    return (0, left, up, (left + up) // 2)[kind]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_paints_the_page(tmp_path: Path) -> None:
    """Headless Chromium shows used GPUs in their colour, links in green, and cards, with no network."""
    page, shot = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(topology_page(small_cluster()), encoding="utf-8")
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=620,900",
        f"--screenshot={shot}",
        page.as_uri(),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    found = pixels(shot.read_bytes())

    assert found[0x35, 0xA5, 0x77] > 100  # double NVLinks
    assert found[0xC2, 0x57, 0x1A] > 100  # a GPU of the second holder
    assert found[0xF5, 0xF7, 0xFA] > 10_000  # the drawings' ground
