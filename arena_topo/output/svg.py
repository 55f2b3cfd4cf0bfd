"""Pictures of a node (``node_picture``), of a cluster with a plan (``cluster_picture``), and a page of both.

``topology_page`` has one drawing of the cluster, below it the nodes of the plan, and folded one node of each
machine type. Pictures and page load nothing and run no scripts. Other drawings are made of the same elements:
``element``, ``label``, ``titled`` and ``picture``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import combinations, groupby
from math import cos, hypot, radians, sin
from textwrap import wrap
from typing import NamedTuple, TypeVar

from arena_topo.kinds.mpijob import parse_worker_name
from arena_topo.model.cluster import GpuNode, Holder, Link, LinkClass, Snapshot
from arena_topo.model.plan import NodeRoom
from arena_topo.model.text.words import elided, last_part, plural, printable, written_bytes, written_duration
from arena_topo.output.topology import (
    Domain,
    cluster_domains,
    first_warnings,
    gpu_count,
    remarks,
    state_marks,
)

# What the drawings are made of: SVG elements as strings, and their colours on light and dark pages.

_USERS = 8
"""Colours for the users of GPUs: the first is the plan's, and further users begin again with the second."""

STYLE = """
svg { --page: #f5f7fa; --card: #ffffff; --ink: #1d2733; --soft: #5b6778; --edge: #d3dae3; --free: #ffffff;
  --freeline: #2f9e6e; --bad: #d64545; --warn: #8f5600; --nv1: #3f9c74; --nv2: #1d8257; --nv3: #0b5e3e;
  --switch: #0f7a52; --xgmi: #8b5fbf; --pcie: #5f8db3; --far: #7f8c9b; --text-on-user: #ffffff;
  --u0: #3b6fd4; --u1: #ae4c12; --u2: #7a4fb5; --u3: #b03a6c; --u4: #2b7f8c; --u5: #8a6d1f; --u6: #52606d; --u7: #a33b3b;
  font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink); }
@media (prefers-color-scheme: dark) {
  svg { --page: #12171d; --card: #1b222b; --ink: #e6ebf1; --soft: #95a3b3; --edge: #333e4b; --free: #1b222b;
    --freeline: #4cc38d; --bad: #ff7b72; --warn: #e3b341; --nv1: #37805f; --nv2: #3fa877; --nv3: #7fe0b5;
    --switch: #4cc38d; --xgmi: #b794e6; --pcie: #5b86a8; --far: #667586; --text-on-user: #0d1117;
    --u0: #79a8ff; --u1: #f0965a; --u2: #b99cf0; --u3: #f08ab4; --u4: #62c2cf; --u5: #d6b45a; --u6: #a9b6c3; --u7: #f29090; }
}
svg text { fill: var(--ink); font-size: 13px; }
svg .title { font-size: 19px; font-weight: 650; }
svg .soft { fill: var(--soft); }
svg .warn { fill: var(--warn); }
svg .small { font-size: 11px; }
svg .tiny { font-size: 11px; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .strong { font-weight: 650; }
svg .page { fill: var(--page); }
svg .card { fill: var(--card); stroke: var(--edge); stroke-width: 1; }
svg .chosen { stroke: var(--u0); stroke-width: 2.5; }
svg .group { fill: none; stroke: var(--edge); stroke-width: 15; stroke-linecap: round; }
svg .root { fill: none; stroke: var(--pcie); stroke-width: 4; stroke-linecap: round; }
svg .gpu-free { fill: var(--free); stroke: var(--freeline); stroke-width: 2.5; }
svg .gpu-bad { fill: var(--card); stroke: var(--bad); stroke-width: 2.5; stroke-dasharray: 4 3; }
svg .gpu-heat-0 { fill: var(--card); stroke: var(--edge); }
svg .gpu-heat-1 { fill: color-mix(in srgb, var(--freeline) 18%, var(--card)); stroke: var(--freeline); }
svg .gpu-heat-2 { fill: color-mix(in srgb, var(--freeline) 34%, var(--card)); stroke: var(--freeline); }
svg .gpu-heat-3 { fill: color-mix(in srgb, var(--freeline) 50%, var(--card)); stroke: var(--freeline); }
svg .gpu-heat-4 { fill: var(--nv3); stroke: var(--nv3); }
svg .gpu-unknown { fill: var(--card); stroke: var(--soft); stroke-width: 2; stroke-dasharray: 2 3; }
svg .takes { stroke: var(--u0); stroke-width: 2.5; stroke-dasharray: 5 3; }
svg .on-user { fill: var(--text-on-user); }
svg .link { fill: none; stroke-linecap: round; }
svg .nv1 { stroke: var(--nv1); }
svg .nv2 { stroke: var(--nv2); }
svg .nv3 { stroke: var(--nv3); }
svg .switch { stroke: var(--switch); }
svg .xgmi { stroke: var(--xgmi); }
svg .pcie { stroke: var(--pcie); stroke-dasharray: 5 4; }
svg .far { stroke: var(--far); stroke-dasharray: 2 5; }
svg .hub { fill: var(--card); stroke: var(--switch); stroke-width: 3; }
svg .nic { fill: var(--card); stroke: var(--pcie); stroke-width: 1.2; }
""" + "".join(
    f"svg .u{number} {{ fill: var(--u{number}); stroke: var(--u{number}); }}\n" for number in range(_USERS)
)


@dataclass(frozen=True, slots=True)
class Headline:
    """What a drawing says of a plan: a title, lines above it, and how many workers each node could take."""

    title: str
    lines: tuple[str, ...] = ()
    rooms: Mapping[str, NodeRoom] = field(default_factory=dict)


def element(tag: str, *children: str, **attributes: str | float) -> str:
    """Return an SVG element.

    ``_`` in the names of attributes stands for ``-``, and a trailing one is left out.
    """
    names_and_values = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(printable(_number(value)), quote=True)}"'
        for name, value in attributes.items()
    )
    inner = "".join(children)
    return f"<{tag}{names_and_values}>{inner}</{tag}>" if inner else f"<{tag}{names_and_values}/>"


def label(text: str, x: float, y: float, style: str = "") -> str:
    """Return *text* with its baseline at a point."""
    return element("text", _seen(text), x=x, y=y, class_=style)


def titled(tip: str | Sequence[str], *children: str) -> str:
    """Return a group of elements with a tooltip, or one of several lines."""
    lines = (tip,) if isinstance(tip, str) else tip
    return element("g", element("title", "\n".join(map(_seen, lines))), *children)


def _seen(text: str) -> str:
    """Return *text* as an element's content, without markup, forbidden characters or invisible ones."""
    return escape(printable(text), quote=False)


def picture(
    width: float,
    height: float,
    children: Iterable[str],
    *,
    name: str,
    described: str = "",
    styled: bool = True,
    top: float = 0.0,
) -> str:
    """Return a whole SVG document; one within a page is not *styled* again.

    *name* and *described* are what a screen reader says of it. One within another one begins at *top*.
    """
    style = element("style", STYLE) if styled else ""
    page = element("rect", width=width, height=height, rx=14, class_="page")
    return element(
        "svg",
        element("title", _seen(name)),
        *([element("desc", _seen(described))] if described else []),
        style,
        page,
        *children,
        xmlns="http://www.w3.org/2000/svg",
        **({"y": top} if top else {}),
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=width,
        height=height,
        role="img",
    )


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


# Where the GPUs of a node stand in its drawing: on a ring, grouped by NUMA node, so that links are chords.
#
# For example, the cube mesh of DGX-1 has two groups of four. They face each other, and within them GPUs are
# exchanged until the links across, from 0 to 4, 1 to 5, 2 to 6 and 3 to 7, run side by side.

_GAP = 26.0
# The y axis of SVG points downwards, so that the top of the ring is at minus 90 degrees.
_RING_TOP = -90.0
_LARGEST_UNTANGLED = 16


@dataclass(frozen=True, slots=True)
class Ring:
    """The angle of each GPU in degrees, clockwise from the right, and the GPUs of each group in order."""

    angles: dict[int, float]
    groups: tuple[tuple[int | None, tuple[int, ...]], ...]
    span: float

    def point(self, index: int, radius: float, centre: tuple[float, float]) -> tuple[float, float]:
        """Return the point of a GPU at *radius*."""
        return _polar(self.angles[index], radius, centre)


def _polar(angle: float, radius: float, centre: tuple[float, float]) -> tuple[float, float]:
    """Return the point at *angle* in degrees and *radius* around *centre*."""
    return centre[0] + radius * cos(radians(angle)), centre[1] + radius * sin(radians(angle))


def ring_of(node: GpuNode, size: int) -> Ring:
    """Return the ring of *size* GPUs of *node*; linked ones of different groups stand near each other."""
    numa = [node.gpus[index].numa if index < len(node.gpus) else None for index in range(size)]
    # None stands for GPUs of no known NUMA node, and cannot be compared with numbers.
    keys = sorted(set(numa), key=lambda key: -1 if key is None else key)
    groups = [[index for index in range(size) if numa[index] == key] for key in keys]
    groups = _untangled(node, groups)
    span = (360.0 - _GAP * (len(groups) if len(groups) > 1 else 0)) / max(size, 1)
    return Ring(_angles(groups, span), tuple(zip(keys, map(tuple, groups), strict=True)), span)


def _angles(groups: Sequence[Sequence[int]], span: float) -> dict[int, float]:
    """Return the angles: two groups face each other left and right, both from top to bottom."""
    if len(groups) == 2:  # left and right
        left, right = groups
        return {
            **{index: 180.0 + span * ((len(left) - 1) / 2 - rank) for rank, index in enumerate(left)},
            **{index: span * (rank - (len(right) - 1) / 2) for rank, index in enumerate(right)},
        }
    gap = _GAP if len(groups) > 1 else 0.0
    angles: dict[int, float] = {}
    angle = _RING_TOP + (span / 2 if len(groups) > 1 else 0.0)
    for group in groups:
        for index in group:
            angles[index] = angle
            angle += span
        angle += gap
    return angles


def _untangled(node: GpuNode, groups: list[list[int]]) -> list[list[int]]:
    """Return the groups with GPUs exchanged within them while that makes the point-to-point links shorter."""
    size = sum(map(len, groups))
    weights = _weights(node, size)
    # Each round tries every pair of a group: quick for the machines that have such links, which are small.
    if not weights or size > _LARGEST_UNTANGLED:
        return groups
    best = _length(groups, weights)
    improved = True
    while improved:
        improved = False
        for group in groups:
            for a, b in combinations(range(len(group)), 2):
                group[a], group[b] = group[b], group[a]
                length = _length(groups, weights)
                # By rounding errors two orders could take turns in being the shorter one forever.
                if length < best - 1e-6:
                    best, improved = length, True
                else:
                    group[a], group[b] = group[b], group[a]
    return groups


def _weights(node: GpuNode, size: int) -> list[tuple[int, int, int]]:
    """Return the links between GPUs with their counts, where not all pairs have the same."""
    if node.links is None or node.links.size != size:
        return []
    links = [(a, b, node.links.between(a, b)) for a, b in combinations(range(size), 2)]
    if len({link for _, _, link in links}) < 2:  # anyway: no order is better
        return []
    return [(a, b, link.count) for a, b, link in links if link.kind.is_direct]


def _length(groups: Sequence[Sequence[int]], weights: Sequence[tuple[int, int, int]]) -> float:
    size = sum(map(len, groups))
    span = (360.0 - _GAP * (len(groups) if len(groups) > 1 else 0)) / size
    points = {index: _polar(angle, 1.0, (0.0, 0.0)) for index, angle in _angles(groups, span).items()}
    return sum(
        count * hypot(points[a][0] - points[b][0], points[a][1] - points[b][1]) for a, b, count in weights
    )


# Who uses the GPUs of a node, and in which colour every drawing of a page shows them.


class _GpuUser(NamedTuple):
    """Who uses a GPU: a job or pod as ``namespace/name``, and its number if it is an MPIJob's worker."""

    key: str
    worker: int | None
    is_planned: bool = False

    @property
    def words(self) -> str:
        """The user as people say it."""
        return self.key if self.worker is None else f"{self.key}, worker {self.worker}"


def user_colours(nodes: Sequence[GpuNode]) -> dict[str, int]:
    """Return the number of a colour for each user of GPUs; the pods of one job look alike on all *nodes*.

    Colour 0 is a plan's, in every drawing.
    """
    holders = {_key(holder): holder.is_planned for node in nodes for holder in node.holders}
    others = sorted(key for key, is_planned in holders.items() if not is_planned)
    return {
        **dict.fromkeys(holders, 0),
        **{key: 1 + index % (_USERS - 1) for index, key in enumerate(others)},
    }


def _planned_gpus(node: GpuNode) -> int:
    """Return how many GPUs of *node* a plan takes that is drawn on it."""
    return sum(holder.gpus for holder in node.holders if holder.is_planned)


def _users_of(node: GpuNode) -> dict[int, _GpuUser]:
    """Return the user of each GPU of *node* whose user is known."""
    return {index: _user(holder) for holder in node.holders for index in holder.indices or ()}


def _workers_of(node: GpuNode) -> set[_GpuUser]:
    """Return the workers that the drawing of *node* tells apart: a plan's, or those of the jobs there."""
    workers = {user for user in _users_of(node).values() if user.worker is not None}
    return {user for user in workers if user.is_planned} or workers


def _key(holder: Holder) -> str:
    name = holder.job or holder.pod
    return f"{holder.namespace}/{name}" if holder.namespace else name


def _user(holder: Holder) -> _GpuUser:
    # A pod of no MPIJob may be called like a worker by chance.
    worker = parse_worker_name(holder.pod)
    index = worker.index if worker and worker.job == holder.job else None
    return _GpuUser(_key(holder), index, holder.is_planned)


# A node as a picture: GPUs on a ring, links as chords, NVSwitches as a hub, sockets and PCIe switches as
# arcs.

_Value = TypeVar("_Value")

_WIDTH = 408
"""The width of a phone's screen, on which its text is read as it is, and of each column of a page."""
_CENTRE = (204.0, 240.0)
_RADIUS = 88.0
_ROOT_RADIUS = 111.0
_GROUP_RADIUS = 125.0
_NIC_RADIUS = 148.0
_HUB = 41.0
_TOP = 424.0
_LINE = 21.0
_MARK = 13.0
"""The side of a GPU's mark in a legend, and in the drawing of a cluster."""
_MOST_NAMES = 3
_NIC_LETTERS = 10
_PULL = 0.22
"""How far the middle of a chord is pulled towards the centre."""


def node_picture(
    node: GpuNode,
    users: Mapping[str, int] | None = None,
    *,
    styled: bool = True,
    top: float = 0.0,
) -> str:
    """Return the drawing of *node* as an SVG document.

    *users* gives users their colours (``user_colours``), so that a job has one colour on a whole page. Within
    another document the drawing is not *styled* again, and begins at *top*.
    """
    colours = users if users is not None else user_colours([node])
    ring = ring_of(node, gpu_count(node))
    children = [
        *_heading(node),
        *_arcs(node, ring),
        *_nics(node, ring),
        *_links(node, ring),
        *_gpus(node, ring, colours),
    ]
    legend, height = _node_legend(node, colours)
    return picture(
        _WIDTH,
        height,
        [*children, *legend],
        name=f"{node.name} {node.machine}",
        described=", ".join([f"{node.gpu_free} of {node.gpu_total} GPUs free", *remarks(node)]),
        styled=styled,
        top=top,
    )


def _node_height(node: GpuNode) -> float:
    """Return the height of the drawing of *node*, whatever its GPUs are used for."""
    return _node_legend(node, user_colours([node]))[1]


def _heading(node: GpuNode) -> Iterator[str]:
    product = node.gpus[0].product if node.gpus else ""
    memory = node.gpus[0].memory if node.gpus else 0
    words = [node.machine, product, written_bytes(memory * 2**20) if memory else ""]
    yield label(elided(node.name, 24), 24, 36, "title")
    yield label(elided("  ·  ".join(word for word in words if word), 56), 24, 57, "soft small")
    yield label(f"{node.gpu_free} of {node.gpu_total} free", _WIDTH - 24, 36, "end strong")
    planned = _planned_gpus(node)
    yield label(elided(", ".join(remarks(node)), 42 if planned else 60), 24, 75, "warn small")
    if planned:
        yield label("after this job", _WIDTH - 24, 75, "end soft small")


def _arcs(node: GpuNode, ring: Ring) -> Iterator[str]:
    """Yield the arcs of the NUMA nodes, and within them those of the PCIe roots that several GPUs share."""
    for numa, members in ring.groups:
        if numa is not None:
            yield _arc(ring, members, _GROUP_RADIUS, "group", f"arc-{node.name}-{numa}")
            yield _along(f"arc-{node.name}-{numa}", f"NUMA {numa}")
    for root, members in _runs(ring, [gpu.pcie_root for gpu in node.gpus]):
        yield titled(f"PCIe root {root}", _arc(ring, members, _ROOT_RADIUS, "root"))


def _runs(ring: Ring, values: Sequence[_Value]) -> Iterator[tuple[_Value, tuple[int, ...]]]:
    """Yield each value that is not empty with the GPUs that have it and stand side by side in a group.

    For example, GPUs 0, 3, 2, 1 of a group with the values a, a, b, a yield (a, 0 3), (b, 2) and (a, 1).
    """
    for _, members in ring.groups:
        listed = (index for index in members if index < len(values))
        for value, run in groupby(listed, key=values.__getitem__):
            if value:
                yield value, tuple(run)


def _arc(ring: Ring, members: Sequence[int], radius: float, style: str, identity: str = "") -> str:
    """Return the arc outside *members*.

    One in the lower half runs from right to left, so that text on it stands upright.
    """
    angles = [ring.angles[index] for index in members]
    margin = ring.span * (0.36 if identity else 0.2)
    start, end = min(angles) - margin, max(angles) + margin
    # Of the two arcs between two points SVG draws the shorter one unless this flag is set.
    large = int(end - start > 180.0)
    turned = 20.0 < (start + end) / 2 % 360.0 < 160.0
    if turned:
        start, end = end, start
    a, b = _polar(start, radius, _CENTRE), _polar(end, radius, _CENTRE)
    path = (
        f"M{a[0]:.1f} {a[1]:.1f} A{radius:.0f} {radius:.0f} 0 {large} {int(not turned)} {b[0]:.1f} {b[1]:.1f}"
    )
    return element("path", d=path, class_=style, **({"id": identity} if identity else {}))


def _along(path: str, text: str) -> str:
    """Return *text* in the middle of the arc *path*."""
    run = element("textPath", _seen(text), href=f"#{path}", startOffset="50%")
    return element("text", run, class_="tiny middle", dy=3.5)


def _nics(node: GpuNode, ring: Ring) -> Iterator[str]:
    """Yield the nearest NICs outside the GPUs that share them."""
    for nics, members in _runs(ring, [gpu.nics for gpu in node.gpus]):
        angle = sum(ring.angles[index] for index in members) / len(members)
        x, y = _polar(angle, _NIC_RADIUS, _CENTRE)
        first = elided(nics[0], _NIC_LETTERS)
        names = first if len(nics) == 1 else f"{first} +{len(nics) - 1}"
        width = 12 + 6.4 * len(names)
        # Left of the ring a box ends at its point, right of it it begins there, above and below it is
        # centred.
        x = x - width if x < _CENTRE[0] - 40 else x if x > _CENTRE[0] + 40 else x - width / 2
        # A long name may reach into the ring's room, and not beyond the picture.
        x = min(max(x, 4.0), _WIDTH - 4.0 - width)
        box = element("rect", x=x, y=y - 10, width=width, height=20, rx=10, class_="nic")
        yield titled(
            f"nearest NICs: {', '.join(nics)}", box, label(names, x + width / 2, y + 4, "small middle soft")
        )


def _links(node: GpuNode, ring: Ring) -> Iterator[str]:
    graph = node.links
    if graph is None or graph.size < 2:
        return
    pairs = [(a, b, graph.between(a, b)) for a, b in combinations(range(graph.size), 2)]
    direct = [(a, b, link) for a, b, link in pairs if link.kind.is_direct]
    # Wide chords come last.
    shown = sorted(direct or pairs, key=lambda pair: pair[2].count)
    for a, b, link in shown:
        if link.kind is not LinkClass.NVSWITCH and (direct or link.kind is not LinkClass.SYS):
            yield _chord(a, b, link, ring)
    switched = {index: link for a, b, link in direct if link.kind is LinkClass.NVSWITCH for index in (a, b)}
    if switched:
        yield from _hub(switched, ring)
    elif not direct:
        words = (
            "PCIe only"
            if any(link.kind is not LinkClass.UNKNOWN for _, _, link in pairs)
            else "links not known"
        )
        yield label(words, _CENTRE[0], _CENTRE[1] + 5, "middle soft")


def _chord(a: int, b: int, link: Link, ring: Ring) -> str:
    """Return a link as a curve that bends towards the middle of the ring, so that parallel ones part."""
    start, end = ring.point(a, _RADIUS, _CENTRE), ring.point(b, _RADIUS, _CENTRE)
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    bend = (middle[0] + (_CENTRE[0] - middle[0]) * _PULL, middle[1] + (_CENTRE[1] - middle[1]) * _PULL)
    path = f"M{start[0]:.1f} {start[1]:.1f} Q{bend[0]:.1f} {bend[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    line = element("path", d=path, class_=f"link {_style(link)}", stroke_width=_width(link))
    return titled(f"GPU{a} to GPU{b}: {_words(link)}", line)


def _is_switched(node: GpuNode) -> bool:
    """Whether the drawing of *node* has a hub in its middle."""
    links = node.links
    pairs = combinations(range(links.size), 2) if links else ()
    return any(links.between(a, b).kind is LinkClass.NVSWITCH for a, b in pairs) if links else False


def _hub(switched: Mapping[int, Link], ring: Ring) -> Iterator[str]:
    for index, link in sorted(switched.items()):
        start = ring.point(index, _RADIUS, _CENTRE)
        line = element(
            "line",
            x1=start[0],
            y1=start[1],
            x2=_CENTRE[0],
            y2=_CENTRE[1],
            class_="link switch",
            stroke_width=6,
        )
        yield titled(f"GPU{index}: {link.count} NVLinks into the switches, {link.bandwidth:g} GB/s", line)
    link = next(iter(switched.values()))
    yield element("circle", cx=_CENTRE[0], cy=_CENTRE[1], r=_HUB, class_="hub")
    yield label("NVSwitch", _CENTRE[0], _CENTRE[1] - 2, "middle strong")
    yield label(plural(link.count, "link"), _CENTRE[0], _CENTRE[1] + 15, "middle small soft")


def _gpus(node: GpuNode, ring: Ring, colours: Mapping[str, int]) -> Iterator[str]:
    # Circles shrink where many GPUs share the ring: 0.0174 radians are a degree, and a diameter of 0.8 of a
    # GPU's stretch of the ring leaves a gap between neighbours.
    radius = min(20.0, _RADIUS * 0.0174 * ring.span * 0.4)
    users = _users_of(node)
    workers = _workers_of(node)
    badged = workers if len(workers) > 1 else set()
    # Tags keep off the corners of the squares, and of the hub in the middle.
    inside = max(_RADIUS - 1.45 * radius - 11, _HUB + 13 if _is_switched(node) else 0.0)
    for position in ring.angles:
        gpu = node.gpus[position] if position < len(node.gpus) else None
        index = gpu.index if gpu else position
        x, y = ring.point(position, _RADIUS, _CENTRE)
        style, words = _state(node, position, users, colours)
        text = "middle strong on-user" if style.startswith("u") else "middle strong"
        tip = [f"GPU{index}: {words}", *([gpu.uuid] if gpu and gpu.uuid else [])]
        user = users.get(index)
        middle = ring.point(position, inside, _CENTRE)
        badge = _badge(user.worker, middle) if user in badged and user.worker is not None else ()
        yield titled(tip, _mark(x, y, 1.8 * radius, style), label(str(index), x, y + 5, text), *badge)


def _mark(x: float, y: float, side: float, style: str) -> str:
    """Return a GPU around a point: a square, or a disc if planned, so that colour is not all that tells."""
    rounding = side * (0.5 if style == "u0" else 0.23)
    return element("rect", x=x - side / 2, y=y - side / 2, width=side, height=side, rx=rounding, class_=style)


def _badge(worker: int, centre: tuple[float, float]) -> Iterator[str]:
    """Yield the number of a worker as a tag next to its GPU, towards the middle of the ring."""
    text = f"w{worker}"
    width = 9 + 6 * len(text)
    yield element(
        "rect", x=centre[0] - width / 2, y=centre[1] - 8, width=width, height=16, rx=8, class_="card badge"
    )
    yield label(text, centre[0], centre[1] + 3.5, "tiny middle")


def _state(
    node: GpuNode, position: int, users: Mapping[int, _GpuUser], colours: Mapping[str, int]
) -> tuple[str, str]:
    gpu = node.gpus[position] if position < len(node.gpus) else None
    index = gpu.index if gpu else position
    if gpu and not gpu.healthy:
        return "gpu-bad", "unhealthy"
    if index in users:
        return f"u{colours.get(users[index].key, 0)}", f"used by {users[index].words}"
    if node.used is None:
        return "gpu-unknown", "whether it is used is not known"
    return ("u6", "used") if index in node.used else ("gpu-free", "free")


def _node_legend(node: GpuNode, colours: Mapping[str, int]) -> tuple[list[str], float]:
    """Return the legend below the ring, and the height of it all: what is drawn, and nothing else.

    Links, arcs and pills are on the left, and whose GPUs they are on the right.
    """
    left = [*_link_entries(node), *_pill_entries(node)]
    right = list(_gpu_entries(node, colours))
    parts: list[str] = []
    for row, (symbol, words) in enumerate(left):
        y = _TOP + _LINE * row
        parts += [
            element("g", symbol, transform=f"translate(24 {y:.0f})"),
            label(words, 68, y + 4.5, "small"),
        ]
    for row, (style, words) in enumerate(right):
        y = _TOP + _LINE * row
        parts += (
            [element("g", _mark(0, 0, _MARK, style), transform=f"translate(292 {y:.0f})")] if style else []
        )
        parts.append(label(words, 305, y + 4.5, "small"))
    bottom = _TOP + _LINE * max(len(left), len(right))
    source = next((fact for fact in node.facts if fact.subject == "links"), None)
    if source:
        age = "" if source.age is None else f", {written_duration(source.age)} old"
        words = f"links {'assumed' if source.assumed else 'as published'}: {source.source}{age}"
        lines = wrap(elided(words, 130), 62)
        parts += [label(line, 24, bottom + 8 + 16 * row, "small soft") for row, line in enumerate(lines)]
        bottom += 5 + 16 * len(lines)
    return parts, bottom + 6


def _link_entries(node: GpuNode) -> Iterator[tuple[str, str]]:
    """Yield a line and words for each kind of link that is drawn, the fastest first."""
    if node.links is None:
        return
    every = [node.links.between(a, b) for a, b in combinations(range(node.links.size), 2)]
    # PCIe paths would hide the links between GPUs, and are drawn where there are no others.
    drawn = [link for link in every if link.kind.is_direct] or [
        link for link in every if link.kind is not LinkClass.SYS
    ]
    kinds: dict[str, Link] = {}
    for link in drawn:
        # Measured links of one label differ a little; the legend has one line for them, with the fastest.
        best = kinds.get(link.label)
        kinds[link.label] = link if best is None or link.bandwidth > best.bandwidth else best
    for link in sorted(kinds.values(), key=lambda link: -link.bandwidth):
        yield _line(f"link {_style(link)}", _width(link)), _words(link)


def _pill_entries(node: GpuNode) -> Iterator[tuple[str, str]]:
    """Yield a symbol and words for the arcs and pills of the drawing, of those that it has."""
    if len({gpu.pcie_root for gpu in node.gpus if gpu.pcie_root}) > 0:
        yield _line("root", 4), "GPUs of one PCIe root"
    if any(gpu.nics for gpu in node.gpus):
        more = any(len(gpu.nics) > 1 for gpu in node.gpus)
        yield _pill("nic"), f"nearest network cards{', +1: one more' if more else ''}"
    if workers := _workers_of(node) if len(_workers_of(node)) > 1 else ():
        of_plan = "planned " if any(user.is_planned for user in workers) else ""
        yield _pill("card") + label("w0", 17, 3.5, "tiny middle"), f"the {of_plan}worker that has the GPU"


def _line(style: str, width: float) -> str:
    return element("line", x1=0, y1=0, x2=34, y2=0, class_=style, stroke_width=width)


def _pill(style: str) -> str:
    return element("rect", x=5, y=-8, width=24, height=16, rx=8, class_=style)


def _gpu_entries(node: GpuNode, colours: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the style of a GPU and what it means, for each that is drawn."""
    users = _users_of(node)
    if any(user.is_planned for user in users.values()):
        # Workers are told apart by tags where there are several.
        planned = [user.worker for user in _workers_of(node) if user.is_planned]
        yield "u0", f"planned: w{planned[0]}" if len(planned) == 1 else "planned"
    names = sorted({user.key for user in users.values() if not user.is_planned})
    for name in names[:_MOST_NAMES]:
        yield f"u{colours.get(name, 0)}", elided(name, 15)
    if len(names) > _MOST_NAMES:
        yield "", f"and {len(names) - _MOST_NAMES} more"
    styles = {_state(node, position, users, colours)[0] for position in range(gpu_count(node))}
    others = {"u6": "in use", "gpu-free": "free", "gpu-bad": "unhealthy", "gpu-unknown": "not known"}
    if node.used is not None and node.used - users.keys():
        yield "u6", others["u6"]
    yield from ((style, words) for style, words in others.items() if style in styles and style != "u6")


def _words(link: Link) -> str:
    rate = f"  ·  {link.bandwidth:g} GB/s" if link.bandwidth else ""
    kind = {LinkClass.NVSWITCH: " through NVSwitches", LinkClass.BRIDGE: " bridge"}.get(link.kind, "")
    return f"{link.label}{kind}{rate}"


def _width(link: Link) -> float:
    if not link.kind.is_direct:
        return 1.6
    return 6.0 if link.kind is LinkClass.NVSWITCH else min(1.5 + 2.2 * link.count, 10.0)


def _style(link: Link) -> str:
    match link.kind:
        case LinkClass.NVLINK | LinkClass.BRIDGE:
            return f"nv{min(link.count, 3)}"
        case LinkClass.NVSWITCH:
            return "switch"
        case LinkClass.XGMI | LinkClass.C2C:
            return "xgmi"
        case LinkClass.PIX | LinkClass.PXB | LinkClass.PHB | LinkClass.NODE:
            return "pcie"
        case LinkClass.SYS | LinkClass.UNKNOWN | LinkClass.SELF:
            return "far"


# The cluster as a picture: domains as boxes within boxes, nodes as tiles with a square for each GPU.

_SMALL_FROM = 150
"""From this many nodes on a cluster is a map of tiles: a square for each GPU would fill many screens."""
_PER_ROW = 8
_TITLE_LINE = 26.0
_STATE_STYLES = {"used": "u6", "free": "gpu-free", "bad": "gpu-bad"}
_TITLE_LETTER = 10.6  # the width of a letter of the title, on the safe side
_SOFT_LETTER = 7.2
_SMALL_LETTER = 6.2
_LEAST = 372.0
_WIDEST = 1180.0
_MARGIN = 24.0
_LONG_LINE = 640.0
_LONGEST = 400  # letters of a line above a drawing
_NAMED_JOBS = _USERS - 1
"""The most jobs that a legend names: one for each colour but the plan's."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """How large tiles are drawn, and how far apart; lengths in pixels. A domain has *across* tiles in a row.

    Tiles that are not *named* have only the number of free GPUs.
    """

    tile: tuple[float, float]
    gap: float
    pad: float
    head: float
    across: int
    named: bool = True


_LARGE = _Scale((156.0, 58.0), 10.0, 14.0, 26.0, 7)
_SMALL = _Scale((22.0, 16.0), 3.0, 8.0, 24.0, 8, named=False)


@dataclass(frozen=True, slots=True)
class _Box:
    """Something drawn with its upper left corner at the origin."""

    width: float
    height: float
    parts: tuple[str, ...]


def cluster_picture(
    snapshot: Snapshot,
    users: Mapping[str, int] | None = None,
    *,
    headline: Headline | None = None,
    detail: GpuNode | None = None,
    in_page: bool = False,
) -> str:
    """Return the drawing of *snapshot* as an SVG document.

    *users* as in ``node_picture``. A plan's *headline* stands above the drawing, and the node that it is
    about, in *detail*, below. A drawing *in_page* has neither a style of its own nor the words above it.
    """
    root = cluster_domains(snapshot)
    nodes = list(root.all_nodes)
    colours = users if users is not None else user_colours(nodes)
    scale = _SMALL if len(nodes) >= _SMALL_FROM else _LARGE
    said = _headline(root, headline)
    tiles = {node.name: _tile(node, colours, scale, said.rooms.get(node.name)) for node in nodes}
    counts = {name: room.workers for name, room in said.rooms.items()}
    box = _inside(root, tiles, _WIDEST, scale, counts)
    # A long line is broken before it makes a small drawing wide, which would then be shown small.
    longest = min(_SOFT_LETTER * max(map(len, said.lines)), _LONG_LINE)
    inner = min(max(box.width, 0.0 if in_page else longest, _LEAST), _WIDEST)
    inner = max(inner, _WIDTH - 2 * _MARGIN) if detail else inner
    head, top = ([], _MARGIN - 6) if in_page else _head(said, inner)
    # Above the drawing, where it is read before a map of a thousand nodes.
    legend = _flow([_entry(*entry) for entry in _legend(nodes, colours, scale, said.rooms)], inner, 14.0)
    start = top + legend.height + (14 if legend.height else 0)
    height = start + box.height + _MARGIN - 4
    width = inner + 2 * _MARGIN
    below = node_picture(detail, colours, styled=False, top=height) if detail else ""
    return picture(
        width,
        height + (_node_height(detail) if detail else 0),
        [
            *head,
            _placed(legend, _MARGIN, top),
            _placed(box, _MARGIN, start),
            element("g", below, transform=f"translate({(width - _WIDTH) / 2:.0f} 0)") if below else "",
        ],
        name=said.title if headline else f"{root.name} topology",
        described=" ".join(said.lines if headline else [said.title, *said.lines]),
        styled=not in_page,
    )


def _headline(root: Domain, headline: Headline | None) -> Headline:
    """Return what is said above a drawing: *headline*, or the cluster's name, and what is free."""
    said = headline or Headline(root.name)
    nodes = list(root.all_nodes)
    after = " after this job" if any(map(_planned_gpus, nodes)) else ""
    free = f"{plural(len(nodes), 'node')}  ·  {root.free:,} of {root.total:,} GPUs free{after}"
    return replace(said, lines=(*said.lines, free))


def _head(said: Headline, width: float) -> tuple[list[str], float]:
    """Return what stands above a drawing, broken into lines of *width*, and where the drawing begins."""
    titles = _lines(said.title, int(width / _TITLE_LETTER))
    broken = [part for line in said.lines for part in _lines(line, int(width / _SOFT_LETTER))]
    below = 12 + _TITLE_LINE * len(titles)
    head = [label(part, _MARGIN, 38 + _TITLE_LINE * row, "title") for row, part in enumerate(titles)]
    head += [label(part, _MARGIN, below + 22 + _LINE * row, "soft") for row, part in enumerate(broken)]
    return head, below + 19 + _LINE * len(broken)


def _lines(text: str, letters: int) -> list[str]:
    """Return *text* in lines of so many *letters*, none of which ends within a flag such as ``--pin``."""
    return wrap(elided(text, _LONGEST), letters, break_on_hyphens=False)


def _placed(box: _Box, x: float, y: float) -> str:
    return element("g", *box.parts, transform=f"translate({x:.0f} {y:.0f})")


def _domain(
    domain: Domain, tiles: Mapping[str, _Box], widest: float, scale: _Scale, rooms: Mapping[str, int]
) -> _Box:
    """Return a domain as a titled box; in its corner its free GPUs, or how many workers *rooms* has."""
    inner = _inside(domain, tiles, widest - 2 * scale.pad, scale, rooms)
    tier = last_part(domain.tier)
    fitting = sum(rooms.get(node.name, 0) for node in domain.all_nodes)
    count = f"{fitting} fit" if rooms else f"{domain.free}/{domain.total}"
    title = f"{tier} {domain.name}" if domain.name else f"in no {tier}"
    # A domain of one small tile is still as wide as its title, and a long name does not widen the whole row.
    title = elided(title, max(24, int((inner.width + 2 * scale.pad) / 7.4) - len(count) - 2))
    width = max(inner.width, 22 + 7.4 * (len(title) + len(count))) + 2 * scale.pad
    height = inner.height + scale.head + 2 * scale.pad - 4
    parts = (
        element("rect", width=width, height=height, rx=12, class_="card"),
        label(title, scale.pad, scale.pad + 12, "strong"),
        label(count, width - scale.pad, scale.pad + 12, "end soft"),
        element("g", *inner.parts, transform=f"translate({scale.pad:.0f} {scale.pad + scale.head - 4:.0f})"),
    )
    return _Box(width, height, parts)


def _inside(
    domain: Domain, tiles: Mapping[str, _Box], widest: float, scale: _Scale, rooms: Mapping[str, int]
) -> _Box:
    boxes = [_domain(below, tiles, widest, scale, rooms) for below in domain.domains]
    own = [tiles[node.name] for node in domain.nodes]
    # Without domains the map is as wide as the page.
    row = widest if not domain.tier else min(widest, scale.across * (scale.tile[0] + scale.gap))
    return _flow([*boxes, *own], widest if boxes else row, max(scale.gap, 6.0) if boxes else scale.gap)


def _flow(boxes: Sequence[_Box], widest: float, gap: float) -> _Box:
    """Return boxes side by side, in rows no wider than *widest*."""
    x = y = row = width = 0.0
    parts: list[str] = []
    for box in boxes:
        if x and x + box.width > widest:
            x, y, row = 0.0, y + row + gap, 0.0
        parts.append(element("g", *box.parts, transform=f"translate({x:.1f} {y:.1f})"))
        x, row = x + box.width + gap, max(row, box.height)
        width = max(width, x - gap)
    return _Box(width, y + row, tuple(parts))


def _entry(style: str, words: str) -> _Box:
    """Return an entry of the legend; one without a *style* has no mark."""
    mark = [_mark(6.5, 7.5, _MARK, style)] if style else []
    start = 20.0 if style else 0.0
    return _Box(start + _SMALL_LETTER * len(words), 18.0, (*mark, label(words, start, 12, "small")))


def _legend(
    nodes: Sequence[GpuNode], colours: Mapping[str, int], scale: _Scale, rooms: Mapping[str, NodeRoom]
) -> Iterator[tuple[str, str]]:
    """Yield the style of each mark that is drawn, and what it means."""
    planned = any(_planned_gpus(node) for node in nodes)
    if planned:
        yield "u0", "planned"
    if any(rooms[node.name].workers for node in nodes if node.name in rooms):
        yield "card takes", "takes workers"
    if rooms and any(room.workers for room in rooms.values()):
        yield "", "fit: workers that fit side by side"
    if not scale.named:
        steps = {_free_step(node) for node in nodes if not _planned_gpus(node)}
        yield from [("gpu-heat-4", "all free")] if 4 in steps else []
        yield from [("gpu-heat-2", "some free")] if steps & {1, 2, 3} else []
        yield from [("gpu-heat-0", "none free")] if 0 in steps else []
        numbers = (
            "workers that a node takes"
            if rooms
            else f"free GPUs{' or planned ones' if planned else ''} of a node"
        )
        yield "", f"numbers: {numbers}"
        return
    jobs = sorted({user.key for node in nodes for user in _users_of(node).values() if not user.is_planned})
    others = any(holder.gpus for node in nodes for holder in node.holders if not holder.is_planned)
    marks = [state for node in nodes for state in state_marks(node)]
    if 0 < len(jobs) <= _NAMED_JOBS:
        yield from ((f"u{colours.get(job, 0)}", elided(job, 24)) for job in jobs)
    elif others or marks.count("used") > sum(map(_planned_gpus, nodes)):
        yield ("u1", "in use, a colour for each job") if others else ("u6", "in use")
    yield from [("gpu-free", "free")] if "free" in marks else []
    yield from [("gpu-bad", "unhealthy")] if "bad" in marks else []


def _tile(node: GpuNode, colours: Mapping[str, int], scale: _Scale, room: NodeRoom | None) -> _Box:
    space = _room_words(room) if room else ""
    after = " after this job" if _planned_gpus(node) else ""
    free = f"{node.name}: {node.gpu_free} of {node.gpu_total} GPUs free{after}"
    words = [free, space, node.machine, *remarks(node)]
    drawn = _large_tile(node, colours, room) if scale.named else _small_tile(node, room)
    group = titled([word for word in words if word], *drawn)
    width, height = scale.tile
    return _Box(width, height + (_extra(node) if scale.named else 0), (group,))


def _extra(node: GpuNode) -> float:
    """Return how much higher a tile is for GPUs beyond its first row."""
    return 17.0 * ((len(state_marks(node)) - 1) // _PER_ROW) if state_marks(node) else 0.0


def _room_words(room: NodeRoom) -> str:
    """Return how much of a job a node takes, or what prevents it, as a noun: ``fewer than 8 free GPUs``."""
    if room.workers:
        return f"takes {plural(room.workers, 'worker')}"
    return room.obstacle.removeprefix("has ").removeprefix("is ")


def _large_tile(node: GpuNode, colours: Mapping[str, int], room: NodeRoom | None) -> list[str]:
    width, height = _LARGE.tile
    card = "card chosen" if _planned_gpus(node) else "card takes" if room and room.workers else "card"
    parts = [
        element("rect", width=width, height=height + _extra(node), rx=8, class_=card),
        label(elided(node.name, 21), 9, 17, "small strong"),
    ]
    for index, (style, tip) in enumerate(_marks(node, colours)):
        x, y = 15.5 + 17.4 * (index % _PER_ROW), 30.5 + 17.0 * (index // _PER_ROW)
        mark = _mark(x, y, _MARK, style)
        parts.append(titled(tip, mark) if tip else mark)
    closed = not node.ready or node.unschedulable
    space = _room_words(room) if room else ""
    words = space or (", ".join(remarks(node)) if closed else node.machine)
    # What keeps workers off is what one looks for where a job does not fit.
    style = "warn" if closed or (space and room and not room.workers) else "soft"
    parts.append(label(elided(words, 22), 9, height - 7 + _extra(node), f"small {style}"))
    return parts


def _marks(node: GpuNode, colours: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the style of each GPU's square, and its tooltip.

    Squares stand for GPUs in order only where their indices are known. Else they are counted: of eight GPUs,
    of which a pod has two and a plan any three, the squares are two in use, three planned, and three free.
    """
    users = _users_of(node) if node.used is not None else {}
    states = state_marks(node)
    any_planned = _planned_gpus(node) - sum(user.is_planned for user in users.values())
    last_used = sum(state == "used" for state in states)
    for index, state in enumerate(states):
        if user := users.get(index):
            yield f"u{colours.get(user.key, 0)}", f"GPU{index}: {user.words}"
        elif state == "used" and index >= last_used - any_planned and node.used is None:
            yield "u0", "planned: any of the free GPUs"
        else:
            yield _STATE_STYLES[state], ""


def _small_tile(node: GpuNode, room: NodeRoom | None) -> list[str]:
    """Return a tile that is the greener the more is free, with the number of free GPUs.

    The ends of a tile with planned GPUs are round. Of a job without a place the number is that of the workers
    that fit.
    """
    width, height = _SMALL.tile
    planned, step = _planned_gpus(node), _free_step(node)
    style = "u0" if planned else f"gpu-heat-{step}"
    number, ink = (planned, " on-user") if planned else (_free(node), " on-user" if step == 4 else "")
    if room:
        number, style = room.workers, f"{style} takes" if room.workers else style
    return [
        element("rect", width=width, height=height, rx=height / 2 if planned else 3, class_=style),
        label(str(number), width / 2, height / 2 + 3.5, f"tiny middle{ink}"),
    ]


def _free_step(node: GpuNode) -> int:
    """Return how free a node is in five steps: nothing, up to a third, up to two thirds, more, everything."""
    free = _free(node)
    return 0 if not free else 4 if free == node.gpu_total else 1 + min(2, 3 * free // max(node.gpu_total, 1))


def _free(node: GpuNode) -> int:
    """Return the number of GPUs that a pod could get: none on a node that takes no pods."""
    return node.gpu_free if node.ready and not node.unschedulable else 0


# The page of a cluster.

MOST_DRAWN = 64
"""The most nodes of a plan that a page draws, next to the whole cluster."""

_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 28px; font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  background: #e9edf2; color: #1d2733; }
@media (prefers-color-scheme: dark) { body { background: #0b0f14; color: #e6ebf1; } }
main { max-width: 1740px; margin: auto; }
svg { max-width: 100%; height: auto; }
section { width: fit-content; max-width: 100%; margin: auto; }
header { width: 0; min-width: 100%; padding: 0 4px; box-sizing: border-box; overflow-wrap: anywhere; }
header p { margin: 4px 0; font-size: 14px; }
header span { white-space: nowrap; }
h1 { font-size: 22px; margin: 0 0 8px; }
.cluster { overflow-x: auto; margin-top: 14px; }
.cluster svg { max-width: none; display: block; margin: auto; }
.nodes { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 408px), 408px)); gap: 18px; margin-top: 18px;
  justify-content: center; }
figure { margin: 0; }
h2, summary, footer { text-align: center; }
h2, summary { font-size: 17px; margin: 26px 0 0; font-weight: 650; }
ul { width: fit-content; margin: 12px auto; }
li { margin: 4px 0; }
summary:focus-visible { outline: 3px solid #3b6fd4; outline-offset: 2px; }
footer { margin-top: 22px; font-size: 12px; }
@media (max-width: 700px) { body { padding: 4px; } }
"""


_FLAG, _UNBROKEN = re.compile(r"(?<!\S)--[\w-]+"), r"<span>\g<0></span>"
"""A flag, which a browser would break after its dashes."""


def topology_page(snapshot: Snapshot, headline: Headline | None = None) -> str:
    """Return *snapshot* as one HTML document that needs no network, with the *headline* of a plan."""
    root = cluster_domains(snapshot)
    nodes = list(root.all_nodes)
    colours = user_colours(nodes)
    planned = [node for node in nodes if _planned_gpus(node)][:MOST_DRAWN]
    # By name, so that the page does not depend on the order in which the API server lists nodes.
    others = sorted((node for node in nodes if not _planned_gpus(node)), key=lambda node: node.name)
    examples = sorted(
        {node.machine: node for node in reversed(others)}.values(), key=lambda node: node.machine
    )
    said = _headline(root, headline)
    above = "".join(f"<p>{_FLAG.sub(_UNBROKEN, _escaped(elided(line, _LONGEST)))}</p>" for line in said.lines)
    # On a narrow screen the drawing keeps its size, so that its words can be read, and is moved sideways; the
    # answer above it is broken into lines.
    drawn = cluster_picture(snapshot, colours, headline=headline, in_page=True)
    header = f"<header><h1>{_escaped(elided(said.title, _LONGEST))}</h1>{above}</header>"
    parts = [f'<section>{header}<div class="cluster" tabindex="0">{drawn}</div></section>']
    if planned:
        parts.append(f"<h2>Planned nodes</h2>{_figures(planned, colours)}")
    if examples:
        # In a plan, and where a job does not fit, they are next to the point, and stay folded until somebody
        # opens them.
        tag = "details" if headline else "details open"
        whose = "other machine type" if planned else "machine type"
        figures = _figures(examples, colours)
        parts.append(f"<{tag}><summary>One node of each {whose}</summary>{figures}</details>")
    name = _escaped(headline.title if headline else f"{snapshot.cluster or 'cluster'}: GPU topology")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}{_PAGE_STYLE}</style></head>'
        f"<body><main>{''.join(parts)}{_warnings(snapshot)}{_footer(snapshot)}</main></body></html>\n"
    )


def _figures(nodes: Sequence[GpuNode], colours: Mapping[str, int]) -> str:
    drawn = "".join(f"<figure>{node_picture(node, colours, styled=False)}</figure>" for node in nodes)
    return f'<div class="nodes">{drawn}</div>'


def _warnings(snapshot: Snapshot) -> str:
    if not snapshot.warnings:
        return ""
    listed = first_warnings(snapshot.warnings)
    return f"<h2>Warnings</h2><ul>{''.join(f'<li>{_escaped(warning)}</li>' for warning in listed)}</ul>"


def _footer(snapshot: Snapshot) -> str:
    words = [f"fabric: {snapshot.fabric.source or 'not published'}"]
    if snapshot.taken:
        words.append(f"taken {snapshot.taken}")
    return f"<footer>{_escaped('  ·  '.join(words))}</footer>"


def _escaped(text: str) -> str:
    return escape(printable(text))
