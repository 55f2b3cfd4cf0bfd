"""The page: offline, well-formed, and really painted by a browser."""

import re
import struct
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.plan import plan_demand
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.output.plan import render_plan
from arena_topo.output.svg import MOST_DRAWN, Headline, node_picture, topology_page
from tests.output.chromium import measured, needs_chromium, painted
from tests.output.clusters import machine, map_of, small_cluster


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


def test_a_page_begins_with_its_answer() -> None:
    """In words, which a narrow screen breaks into lines: the drawing below them keeps its size."""
    verdict = plan_demand(Demand(9, 8), small_cluster(), PlanOptions())
    page = render_plan("train", verdict, small_cluster(), "html")
    header = re.search(r"<header><h1>(.*?)</h1>(.*?)</header>", page)

    assert isinstance(verdict, Infeasible)
    assert header is not None
    assert "train does not fit" == header[1]
    assert header[2].startswith(f"<p>{verdict.summary}</p>")
    assert "train does not fit</text>" not in page
    assert "<details><summary>" in page


def test_a_flag_is_not_broken_after_its_dashes() -> None:
    """Where a browser would break it: it is to be copied."""
    page = topology_page(small_cluster(), Headline("vgg", ("warning: slow; --coalesce gives <more>",)))

    assert "<p>warning: slow; <span>--coalesce</span> gives &lt;more&gt;</p>" in page


def titles(page: str) -> list[str]:
    """Return what the drawings of nodes are of."""
    return re.findall(r"<figure><svg[^>]*><title>([^<]+)</title>", page)


def test_one_node_of_each_machine_type_is_drawn() -> None:
    """A page of thousands of drawings opens nowhere."""
    nodes = [
        replace(machine("n", kind), name=f"{kind}-{index}")
        for kind in ("v100", "h200")
        for index in range(99)
    ]
    page = topology_page(replace(small_cluster(), nodes=tuple(nodes)))

    assert ["h200-0 8xH200-nvswitch", "v100-0 8xV100-cubemesh"] == titles(page)
    assert "<details open>" in page


def test_the_nodes_of_a_plan_are_drawn_and_others_are_folded() -> None:
    """One of each other machine type stands below them, which a reader may open."""
    verdict = plan_demand(Demand(1, 4), small_cluster(), PlanOptions())
    page = render_plan("job", verdict, small_cluster(), "html")
    shown, _, folded = page.partition("<details>")

    assert isinstance(verdict, Placement)
    assert [share.node for share in verdict.shares] == [title.split()[0] for title in titles(shown)]
    assert set(titles(folded)).isdisjoint(titles(shown))
    assert len(titles(folded)) == 3


def test_no_more_nodes_of_a_plan_are_drawn_than_a_page_opens_with() -> None:
    """All of them are in the drawing of the cluster."""
    planned = next(node for node in map_of(20).nodes if any(holder.is_planned for holder in node.holders))
    nodes = tuple(replace(planned, name=f"n{index}") for index in range(MOST_DRAWN + 9))
    page = topology_page(replace(map_of(20), nodes=nodes))

    assert MOST_DRAWN == len(titles(page))


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


@needs_chromium
def test_a_browser_paints_the_page(tmp_path: Path) -> None:
    """Headless Chromium shows used GPUs in their colour, links in green, and cards, with no network."""
    page = tmp_path / "page.html"
    page.write_text(topology_page(small_cluster()), encoding="utf-8")
    counts = pixels(painted(page.as_uri(), tmp_path, width=720))

    assert counts[0x1D, 0x82, 0x57] > 100  # double NVLinks
    assert counts[0x7A, 0x4F, 0xB5] > 100  # a GPU of the second holder
    assert counts[0xF5, 0xF7, 0xFA] > 10_000  # the background of the drawings


WIDTHS = (400, 1300, 2000)
LOOK = """
const box = (shape) => shape.getBoundingClientRect();
// The texts along an arc are turned, and so are their boxes larger than they are.
const texts = [...page.querySelectorAll("svg text")].filter((text) => box(text).width && !text.querySelector("textPath"));
const words = (text) => text.textContent;
const frames = new Map(texts.map((text) => [text, box(text)]));
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
const overlapping = [];
texts.sort((a, b) => frames.get(a).top - frames.get(b).top);
texts.forEach((a, at) => {
  for (const b of texts.slice(at + 1)) {
    if (frames.get(b).top > frames.get(a).bottom) break;
    if (overlap(frames.get(a), frames.get(b))) overlapping.push([words(a), words(b)]);
  }
});
const card = (text) => {
  const first = text.closest("g")?.querySelector(":scope > rect.card:not(.badge), :scope > rect.nic");
  return first && box(first).width > 20 ? first : text.ownerSVGElement.querySelector(".page");
};
const outside = texts.filter((text) => {
  const own = frames.get(text), room = box(card(text));
  return own.left < room.left - 0.5 || own.right > room.right + 0.5 || own.bottom > room.bottom + 0.5;
});
const shade = (selector, of) => window.getComputedStyle(page.querySelector(selector))[of];
return {
  width: window.innerWidth,
  scrolls: page.documentElement.scrollWidth - page.documentElement.clientWidth,
  texts: texts.length,
  overlapping,
  outside: outside.map(words),
  loaded: window.performance.getEntriesByType("resource").map((entry) => entry.name),
  offCentre: [...page.querySelectorAll("section, h2, summary, footer")].filter((part) =>
    box(part).width && Math.abs(box(part).left + box(part).right - page.documentElement.clientWidth) > 2
  ).map((part) => part.tagName),
  cut: [...page.querySelectorAll("h1, header p")].filter((part) => part.scrollWidth > part.clientWidth).map(words),
  colours: [shade("body", "backgroundColor"), shade("svg .page", "fill"), shade("svg text", "fill")],
};
"""
"""What a reader would see at once: text on text or outside of its box, a page that is too wide or askew."""


def plan_pages() -> Iterator[tuple[str, str]]:
    """Yield pages of plans by name: on one machine, on several, and one that does not fit."""
    for name, demand in (("one", Demand(4, 1)), ("several", Demand(3, 4)), ("none", Demand(9, 8))):
        verdict = plan_demand(demand, small_cluster(), PlanOptions())
        yield f"plan on {name}", render_plan("a-job-with-a-long-name", verdict, small_cluster(), "html")


def written(folder: Path, widths: tuple[int, ...] = WIDTHS[:2]) -> dict[str, tuple[Path, int]]:
    """Return pages of every kind at all *widths*, by what they show."""
    pages = {"cluster": topology_page(small_cluster()), "map": topology_page(map_of(1000))}
    pages |= dict(plan_pages())
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {f"{name} at {width}": (folder / f"{name}.html", width) for name in pages for width in widths}


@needs_chromium
def test_pages_can_be_read_at_every_width(tmp_path: Path) -> None:
    """All is centred and fits, no text is cut, lies on another or leaves its box, and nothing is loaded."""
    seen = measured(written(tmp_path, WIDTHS), LOOK, tmp_path)

    assert {} == {name: look for name, look in seen.items() if "error" in look}
    assert {} == {name: look["scrolls"] for name, look in seen.items() if look["scrolls"]}
    assert {} == {name: look["overlapping"] for name, look in seen.items() if look["overlapping"]}
    assert {} == {name: look["outside"] for name, look in seen.items() if look["outside"]}
    assert {} == {name: look["loaded"] for name, look in seen.items() if look["loaded"]}
    assert {} == {name: look["offCentre"] for name, look in seen.items() if look["offCentre"]}
    assert {} == {name: look["cut"] for name, look in seen.items() if look["cut"]}
    assert all(look["texts"] > 10 and f"at {look['width']}" in name for name, look in seen.items())


@needs_chromium
def test_what_cannot_be_read_is_noticed(tmp_path: Path) -> None:
    """Letters of twice the size lie on each other and leave
    their boxes, and a wide picture makes the page scroll.
    """
    page, spoiled = tmp_path / "page.html", "svg text.small { font-size: 26px } body { min-width: 1500px }"
    page.write_text(
        topology_page(small_cluster()).replace("</style>", f"{spoiled}</style>", 1), encoding="utf-8"
    )
    seen = measured({"page": (page, 1400)}, LOOK, tmp_path)["page"]

    assert seen["scrolls"]
    assert ["team-a/vgg16", "team-a/bert"] in [sorted(pair, reverse=True) for pair in seen["overlapping"]]
    assert "8xH200-nvswitch" in seen["outside"] or "8xV100-cubemesh" in seen["outside"]


@needs_chromium
def test_a_page_is_dark_where_the_reader_wants_it_dark(tmp_path: Path) -> None:
    """By ``prefers-color-scheme``: page, drawing and text change."""
    page = tmp_path / "page.html"
    page.write_text(topology_page(small_cluster()), encoding="utf-8")
    light, dark = (
        measured({"page": (page, 1400)}, LOOK, tmp_path, dark=dark)["page"]["colours"]
        for dark in (False, True)
    )

    assert ["rgb(233, 237, 242)", "rgb(245, 247, 250)", "rgb(29, 39, 51)"] == light
    assert ["rgb(11, 15, 20)", "rgb(18, 23, 29)", "rgb(230, 235, 241)"] == dark


READ = """
const box = (shape) => shape.getBoundingClientRect();
const shown = (text) => box(text).width && text.textContent.trim();
const scale = (svg) => box(svg).width / svg.viewBox.baseVal.width;
const pixels = (text) => parseFloat(window.getComputedStyle(text).fontSize) * scale(text.ownerSVGElement);
const channels = (colour) => {
  const numbers = colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
  return colour.startsWith("color(") ? numbers : numbers.map((part) => part / 255);
};
const luminance = (colour) => {
  const linear = channels(colour).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const contrast = (a, b) => {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
// The shapes of a drawing in their order, and how many of them stand before each text.
const drawings = new Map();
const painted = (svg) => {
  if (!drawings.has(svg)) {
    const shapes = [], before = new Map();
    for (const part of svg.querySelectorAll("rect, circle, text")) {
      part.tagName === "text" ? before.set(part, shapes.length) : shapes.push(part);
    }
    drawings.set(svg, {shapes, before});
  }
  return drawings.get(svg);
};
// What is painted last before a text, under its middle, is its ground; a text along an arc stands on the arc.
const ground = (text) => {
  const path = text.querySelector("textPath");
  if (path) return window.getComputedStyle(page.querySelector(path.getAttribute("href"))).stroke;
  const own = box(text), x = (own.left + own.right) / 2, y = (own.top + own.bottom) / 2;
  const {shapes, before} = painted(text.ownerSVGElement);
  for (let at = before.get(text) - 1; at >= 0; at--) {
    const room = box(shapes[at]);
    if (room.left <= x && x <= room.right && room.top <= y && y <= room.bottom) {
      return window.getComputedStyle(shapes[at]).fill;
    }
  }
};
const texts = [...page.querySelectorAll("svg text")].filter(shown);
const told = new Map();
for (const text of texts) {
  const key = text.getAttribute("class") + " on " + ground(text);
  if (!told.has(key)) {
    told.set(key, contrast(window.getComputedStyle(text).fill, ground(text)));
  }
}
return {
  small: [...new Set(texts.filter((text) => pixels(text) < 10).map((text) => text.textContent))],
  faint: [...told].filter(([, ratio]) => !(ratio >= 4.5)),
  pairs: told.size,
};
"""
"""Which texts are smaller than ten pixels as they are shown,
and which have less contrast with their ground than WCAG asks.
"""


@needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_is_large_and_dark_enough(tmp_path: Path, dark: bool) -> None:
    """On the screen of a phone, too: ten pixels, and a contrast of 4.5 to 1 with what is painted below it."""
    seen = measured(written(tmp_path), READ, tmp_path, dark=dark)

    assert {} == {name: look for name, look in seen.items() if "error" in look}
    assert {} == {name: look["small"] for name, look in seen.items() if look["small"]}
    assert {} == {name: look["faint"] for name, look in seen.items() if look["faint"]}
    assert all(look["pairs"] > 3 for look in seen.values())


@needs_chromium
def test_small_and_faint_texts_are_noticed(tmp_path: Path) -> None:
    """Letters of half the size, and grey ones."""
    page, spoiled = tmp_path / "page.html", "svg text.small { font-size: 5px; fill: #bbbbbb }"
    page.write_text(
        topology_page(small_cluster()).replace("</style>", f"{spoiled}</style>", 1), encoding="utf-8"
    )
    seen = measured({"page": (page, 1400)}, READ, tmp_path)["page"]

    assert "8xV100-cubemesh" in seen["small"]
    assert seen["faint"]
