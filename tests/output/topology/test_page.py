"""The page: offline, well-formed, and really painted by a browser."""

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

from arena_topo.model.cluster.snapshot import Fabric, Snapshot
from arena_topo.output.topology.page import MOST_DRAWN, topology_page
from arena_topo.output.topology.svg.node import node_picture
from tests.output.clusters import machine, small_cluster


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


def test_a_map_zooms_into_its_domains() -> None:
    """A click on a rack shows its nodes by name; without scripts, by the address of the page."""
    nodes = [replace(machine("n"), name=f"n{index}") for index in range(160)]
    paths = {node.name: (f"r{index // 16}",) for index, node in enumerate(nodes)}
    page = topology_page(Snapshot(tuple(nodes), Fabric(("example.com/rack",), paths), "prod"))
    targets = re.findall(r'href="#(domain-[^"]+)"', page)
    sections = re.findall(r'<section class="zoomed" id="([^"]+)">(.*?)</section>', page, re.DOTALL)

    assert 10 == len(targets)
    assert targets == [identity for identity, _ in sections]
    assert [f">n{index}<" in sections[1][1] for index in range(48)] == [
        16 <= index < 32 for index in range(48)
    ]


def pixels(png: bytes) -> Counter[tuple[int, ...]]:
    """Return how often each colour is in a picture of 8-bit channels."""
    data, position, header = b"", 8, b""
    while position < len(png):
        size, kind = struct.unpack(">I4s", png[position : position + 8])
        body = png[position + 8 : position + 8 + size]
        header = body if kind == b"IHDR" else header
        data += body if kind == b"IDAT" else b""
        position += 12 + size
    width, height, _, colour = struct.unpack(">IIBB", header[:10])
    step = {2: 3, 6: 4}[colour]
    raw, stride, previous = zlib.decompress(data), width * step, bytearray(width * step)
    counts: Counter[tuple[int, ...]] = Counter()
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
        counts.update(zip(*(line[channel::step] for channel in range(3)), strict=True))
    return counts


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """Return what PNG's filter *kind* adds to a byte."""
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda predictor: abs(guess - predictor))
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
    counts = pixels(shot.read_bytes())

    assert counts[0x35, 0xA5, 0x77] > 100  # double NVLinks
    assert counts[0x7A, 0x4F, 0xB5] > 100  # a GPU of the second holder
    assert counts[0xF5, 0xF7, 0xFA] > 10_000  # the background of the drawings
