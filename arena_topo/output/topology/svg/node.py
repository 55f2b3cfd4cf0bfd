"""A node as a picture: GPUs on a ring, links as chords, NVSwitches as a hub, sockets and PCIe switches as arcs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby
from textwrap import wrap
from typing import TypeVar

from arena_topo.model.cluster.hardware import Link, LinkClass
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.notation.words import elided, plural, written_bytes, written_duration
from arena_topo.output.topology.domains import gpu_count, remarks
from arena_topo.output.topology.svg.elements import element, label, picture, seen, titled
from arena_topo.output.topology.svg.ring_layout import Ring, polar, ring_of
from arena_topo.output.topology.svg.users import GpuUser, user_colours, users_of

Value = TypeVar("Value")

WIDTH = 408
"""The width of a phone's screen, on which its text is read as it is: in a page's columns no drawing has more than that either."""
_CENTRE = (204.0, 240.0)
_RADIUS = 88.0
_ROOT_RADIUS = 111.0
_GROUP_RADIUS = 125.0
_NIC_RADIUS = 148.0
_HUB = 41.0
_TOP = 424.0
_LINE = 21.0
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

    *users* gives users their colours (``user_colours``), so that a job has one colour on a whole page. Within another
    document the drawing is not *styled* again, and begins at *top*.
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
    legend, height = _legend(node, colours)
    return picture(
        WIDTH,
        height,
        [*children, *legend],
        name=f"{node.name} {node.machine}",
        described=", ".join([f"{node.gpu_free} of {node.gpu_total} GPUs free", *remarks(node)]),
        styled=styled,
        top=top,
    )


def node_height(node: GpuNode) -> float:
    """Return the height of the drawing of *node*, whatever its GPUs are used for."""
    return _legend(node, user_colours([node]))[1]


def _heading(node: GpuNode) -> Iterator[str]:
    product = node.gpus[0].product if node.gpus else ""
    memory = node.gpus[0].memory if node.gpus else 0
    words = [node.machine, product, written_bytes(memory * 2**20) if memory else ""]
    yield label(elided(node.name, 24), 24, 36, "title")
    yield label(elided("  ·  ".join(word for word in words if word), 56), 24, 57, "soft small")
    yield label(f"{node.gpu_free} of {node.gpu_total} free", WIDTH - 24, 36, "end strong")
    yield label(elided(", ".join(remarks(node)), 60), 24, 75, "warn small")


def _arcs(node: GpuNode, ring: Ring) -> Iterator[str]:
    """Yield the arcs of the NUMA nodes, and within them those of the PCIe roots that several GPUs share."""
    for numa, members in ring.groups:
        if numa is not None:
            yield _arc(ring, members, _GROUP_RADIUS, "group", f"arc-{node.name}-{numa}")
            yield _along(f"arc-{node.name}-{numa}", f"NUMA {numa}")
    for root, members in _runs(ring, [gpu.pcie_root for gpu in node.gpus]):
        yield titled(f"PCIe root {root}", _arc(ring, members, _ROOT_RADIUS, "root"))


def _runs(ring: Ring, values: Sequence[Value]) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Yield each value that is not empty with the GPUs that have it and stand side by side in a group.

    For example, GPUs 0, 3, 2, 1 of a group with the values a, a, b, a yield (a, 0 3), (b, 2) and (a, 1).
    """
    for _, members in ring.groups:
        listed = (index for index in members if index < len(values))
        for value, run in groupby(listed, key=values.__getitem__):
            if value:
                yield value, tuple(run)


def _arc(ring: Ring, members: Sequence[int], radius: float, style: str, identity: str = "") -> str:
    """Return the arc outside *members*; one in the lower half runs from right to left, so that text on it stands upright."""
    angles = [ring.angles[index] for index in members]
    margin = ring.span * (0.36 if identity else 0.2)
    start, end = min(angles) - margin, max(angles) + margin
    # Of the two arcs between two points SVG draws the shorter one unless this flag is set.
    large = int(end - start > 180.0)
    turned = 20.0 < (start + end) / 2 % 360.0 < 160.0
    if turned:
        start, end = end, start
    a, b = polar(start, radius, _CENTRE), polar(end, radius, _CENTRE)
    path = (
        f"M{a[0]:.1f} {a[1]:.1f} A{radius:.0f} {radius:.0f} 0 {large} {int(not turned)} {b[0]:.1f} {b[1]:.1f}"
    )
    return element("path", d=path, class_=style, **({"id": identity} if identity else {}))


def _along(path: str, text: str) -> str:
    """Return *text* in the middle of the arc *path*."""
    run = element("textPath", seen(text), href=f"#{path}", startOffset="50%")
    return element("text", run, class_="tiny middle", dy=3.5)


def _nics(node: GpuNode, ring: Ring) -> Iterator[str]:
    """Yield the nearest NICs outside the GPUs that share them."""
    for nics, members in _runs(ring, [gpu.nics for gpu in node.gpus]):
        angle = sum(ring.angles[index] for index in members) / len(members)
        x, y = polar(angle, _NIC_RADIUS, _CENTRE)
        first = elided(nics[0], _NIC_LETTERS)
        names = first if len(nics) == 1 else f"{first} +{len(nics) - 1}"
        width = 12 + 6.4 * len(names)
        # Left of the ring a box ends at its point, right of it it begins there, above and below it is centred.
        x = x - width if x < _CENTRE[0] - 40 else x if x > _CENTRE[0] + 40 else x - width / 2
        # A long name may reach into the ring's room, and not beyond the picture.
        x = min(max(x, 4.0), WIDTH - 4.0 - width)
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
    # Circles shrink where many GPUs share the ring: 0.0174 radians are a degree, and a diameter of 0.8 of a GPU's
    # stretch of the ring leaves a gap between neighbours.
    radius = min(20.0, _RADIUS * 0.0174 * ring.span * 0.4)
    users = users_of(node)
    for position in ring.angles:
        gpu = node.gpus[position] if position < len(node.gpus) else None
        index = gpu.index if gpu else position
        x, y = ring.point(position, _RADIUS, _CENTRE)
        style, words = _state(node, position, users, colours)
        text = "middle strong on-user" if style.startswith("u") else "middle strong"
        tip = [f"GPU{index}: {words}", *([gpu.uuid] if gpu and gpu.uuid else [])]
        badge = _badge(users.get(index), ring.point(position, _RADIUS - radius - 2, _CENTRE))
        yield titled(tip, _mark(x, y, radius, style), label(str(index), x, y + 5, text), *badge)


def _mark(x: float, y: float, radius: float, style: str) -> str:
    """Return a GPU as the whole cluster's drawing has it, too: a square, or a disc where it is planned."""
    if style == "u0":
        return element("circle", cx=x, cy=y, r=radius, class_=style)
    side = 1.8 * radius
    return element(
        "rect", x=x - side / 2, y=y - side / 2, width=side, height=side, rx=radius / 3, class_=style
    )


def _badge(user: GpuUser | None, centre: tuple[float, float]) -> Iterator[str]:
    """Yield the number of a worker as a tag on its GPU, towards the middle of the ring."""
    if user is None or user.worker is None:
        return
    text = f"w{user.worker}"
    width = 9 + 6 * len(text)
    yield element(
        "rect", x=centre[0] - width / 2, y=centre[1] - 8, width=width, height=16, rx=8, class_="card badge"
    )
    yield label(text, centre[0], centre[1] + 3.5, "tiny middle")


def _state(
    node: GpuNode, position: int, users: Mapping[int, GpuUser], colours: Mapping[str, int]
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


def _legend(node: GpuNode, colours: Mapping[str, int]) -> tuple[list[str], float]:
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
        parts += [element("g", _mark(0, 0, 6.5, style), transform=f"translate(292 {y:.0f})")] if style else []
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
        yield _pill("nic"), "the nearest network cards"
    if any(user.worker is not None for user in users_of(node).values()):
        yield _pill("card") + label("w0", 17, 3.5, "tiny middle"), "the worker that has the GPU"


def _line(style: str, width: float) -> str:
    return element("line", x1=0, y1=0, x2=34, y2=0, class_=style, stroke_width=width)


def _pill(style: str) -> str:
    return element("rect", x=5, y=-8, width=24, height=16, rx=8, class_=style)


def _gpu_entries(node: GpuNode, colours: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the style of a GPU and what it means, for each that is drawn."""
    users = users_of(node)
    if any(user.is_planned for user in users.values()):
        yield "u0", "planned"
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
