"""The drawings of a node and of a cluster: well-formed,
complete, to scale, and in colours that can be read.
"""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import hypot

import pytest

from arena_topo.model.cluster import GpuNode, Holder
from arena_topo.output.svg import STYLE, Headline, cluster_picture, node_picture, ring_of, user_colours
from tests.output.clusters import TEXTS, machine, map_of, small_cluster
from tests.output.drawings import SVG, tips


def palette(scheme: str) -> dict[str, str]:
    """Return the colours of the ``light`` or the ``dark`` scheme by their names."""
    light, _, dark = STYLE.partition("@media (prefers-color-scheme: dark)")
    return dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light if scheme == "light" else dark.partition("\n}")[0])
    )


def contrast(a: str, b: str) -> float:
    """Return the ratio of two colours' luminances as WCAG 2.2 defines it, from 1 to 21."""

    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels
        ]
        return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize("ink", ["ink", "soft", "warn"])
def test_text_can_be_read(scheme: str, ground: str, ink: str) -> None:
    """WCAG asks for a contrast of 4.5 to 1."""
    colours = palette(scheme)

    assert contrast(colours[ink], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", [*(f"u{number}" for number in range(8)), "nv3"])
def test_text_on_a_gpu_can_be_read(scheme: str, ground: str) -> None:
    """Numbers stand on the colours of users, and of nodes that are free."""
    colours = palette(scheme)

    assert contrast(colours["text-on-user"], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize(
    "mark", ["freeline", "bad", "nv1", "nv2", "nv3", "switch", "xgmi", "pcie", "far", "soft", "u0", "u6"]
)
def test_marks_and_lines_can_be_seen(scheme: str, ground: str, mark: str) -> None:
    """WCAG asks for a contrast of 3 to 1 of what is not text."""
    colours = palette(scheme)

    assert contrast(colours[mark], colours[ground]) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_on_a_node_of_a_map_can_be_read(scheme: str) -> None:
    """However free it is; browsers mix the ground from two colours."""
    colours = palette(scheme)
    shares = [int(share) / 100 for share in re.findall(r"var\(--freeline\) (\d+)%, var\(--card\)", STYLE)]
    grounds = [mixed(colours["freeline"], colours["card"], share) for share in shares]

    assert 3 == len(grounds)
    assert [] == [ground for ground in grounds if contrast(colours["ink"], ground) < 4.5]


def mixed(a: str, b: str, share: float) -> str:
    """Return the colour with *share* of *a* and the rest of *b*."""
    pairs = [(int(a[place : place + 2], 16), int(b[place : place + 2], 16)) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(share * one + (1 - share) * other):02x}" for one, other in pairs)


# Where GPUs stand on the ring of a drawing.


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


# Which colour the users of GPUs have.


def test_a_job_has_one_colour_on_all_nodes() -> None:
    """Colours are given to all holders of a page at once."""
    nodes: list[GpuNode] = [machine("a", llama=(0,)), machine("b", bert=(1,), llama=(2,))]

    assert {"team-a/bert": 1, "team-a/llama": 2} == user_colours(nodes)


def test_a_plan_has_a_colour_of_its_own_on_every_page() -> None:
    """The first, which no job has, however many there are."""
    plan = Holder("plan", "vgg-worker-0", "vgg", 1, (5,), is_planned=True)
    busy = machine("a", a=(0,), b=(1,), c=(2,), d=(3,), e=(4,))
    colours = user_colours([replace(busy, holders=(*busy.holders, plan))])

    assert ["plan/vgg"] == [key for key, colour in colours.items() if colour == 0]


# The drawing of a node: well-formed, complete and to scale.


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
    node = machine("node-0", kind, vgg16=(0,), bert=(1,))
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
    assert ("nearest network cards" in svg) == ("nearest NICs: " in svg)
    assert ">the worker that has the GPU<" in svg
    assert ">free<" in svg
    assert ">unhealthy<" not in svg


def test_a_worker_that_has_the_node_to_itself_is_named_once() -> None:
    """In the legend; tags tell workers apart where there are several."""
    alone, shared = machine("n", vgg16=(0, 1)), machine("n", vgg16=(0, 1), bert=(2,))

    assert [0, 3] == [node_picture(node).count("badge") for node in (alone, shared)]


def test_tags_are_those_of_the_plan() -> None:
    """Workers of other jobs, which have numbers too, only have their colour next to a plan."""
    node = machine("n", bert=(0, 3, 5))
    planned = tuple(
        Holder("", f"train-worker-{index}", "train", 1, (gpu,), is_planned=True)
        for index, gpu in enumerate((1, 2))
    )
    both = node_picture(replace(node, holders=(*node.holders, *planned)))
    only_one = node_picture(replace(node, holders=(*node.holders, planned[0])))

    assert {"w0", "w1"} == set(re.findall(r"badge\"/><text[^>]*>(w\d)<", both))
    assert ">the planned worker that has the GPU<" in both
    assert ">planned: w0<" in only_one
    assert "badge" not in only_one


@pytest.mark.parametrize("kind", ["v100", "h200", "mi308"])
def test_tags_touch_neither_their_gpus_nor_the_hub(kind: str) -> None:
    """A tag of each GPU's own worker stands between the GPU and the middle."""
    node = machine("n", kind)
    holders = tuple(
        Holder("", f"train-worker-{gpu}", "train", 1, (gpu,), is_planned=True)
        for gpu in range(len(node.gpus))
    )
    root = ET.fromstring(node_picture(replace(node, holders=holders)))
    hub = next((float(circle.get("r", "0")) for circle in root.iter(f"{SVG}circle")), 0.0)
    drawn = [group for group in root.iter(f"{SVG}g") if len(group.findall(f"{SVG}rect")) == 2]

    assert len(node.gpus) == len(drawn)
    for group in drawn:
        gpu, tag = (
            [float(rect.get(name, "0")) for name in ("x", "y", "width", "height")]
            for rect in group.findall(f"{SVG}rect")
        )
        assert gap(tag, (gpu[0] + gpu[2] / 2, gpu[1] + gpu[3] / 2)) > gpu[2] / 2
        assert gap(tag, (204.0, 240.0)) > hub


def gap(box: list[float], point: tuple[float, float]) -> float:
    """Return how far a point is from a box of x, y, width and height."""
    across, down = (
        max(start - at, 0, at - start - size) for start, size, at in zip(box[:2], box[2:], point, strict=True)
    )
    return hypot(across, down)


# The drawing of a cluster, small and large.


def test_the_cluster_shows_domains_and_a_square_for_each_gpu() -> None:
    """Nested boxes; closed nodes say why."""
    svg = cluster_picture(small_cluster())
    root = ET.fromstring(svg)
    squares = [square for square in root.iter(f"{SVG}rect") if square.get("width") == "13"]
    legend = {"team-a/vgg16", "team-a/bert", "free"}

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

    assert "vgg: 1 worker" == root.findtext(f"{SVG}title")
    assert "busbw: 5 GB/s 4 nodes  ·  14 of 28 GPUs free" == root.findtext(f"{SVG}desc")
