"""The cluster as a picture: domains as boxes within boxes, nodes as tiles with a square for each GPU."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.words import elided, last_part, plural
from arena_topo.model.plan.placement import NodeRoom
from arena_topo.output.topology.domains import Domain, cluster_domains, remarks, state_marks
from arena_topo.output.topology.svg.elements import Headline, element, label, picture, titled
from arena_topo.output.topology.svg.node import WIDTH as NODE_WIDTH
from arena_topo.output.topology.svg.node import node_height, node_picture
from arena_topo.output.topology.svg.users import planned_gpus, user_colours, users_of

_SMALL_FROM = 150
"""Clusters of more nodes are a map of small tiles, because tiles with a square for each GPU would fill many screens."""
_PER_ROW = 8
_LINE = 21.0
_TITLE_LINE = 26.0
_STATE_STYLES = {"used": "u6", "free": "gpu-free", "bad": "gpu-bad"}
_TITLE_LETTER = 10.6  # the width of a letter of the title, on the safe side
_SOFT_LETTER = 7.2
_SMALL_LETTER = 6.2
_LEAST = 372.0
_LONG_LINE = 640.0
_LONGEST = 400  # letters of a line above a drawing


@dataclass(frozen=True, slots=True)
class _Scale:
    """How large tiles are drawn, and how far apart; lengths in pixels. A domain has *across* tiles in a row.

    Tiles that are not *named* have only the number of free GPUs. The drawing is no wider than *widest* and its *margin* on
    each side, and what is in a domain is *least* wide.
    """

    tile: tuple[float, float]
    gap: float
    pad: float
    head: float
    across: int
    named: bool = True
    widest: float = 1180.0
    margin: float = 24.0
    least: float = 0.0


_LARGE = _Scale((156.0, 58.0), 10.0, 14.0, 26.0, 7)
_SMALL = _Scale((22.0, 16.0), 3.0, 8.0, 24.0, 8, named=False)
# The screen of a phone is some 400 pixels wide: two tiles with names, or two racks of the map side by side.
_NARROW_LARGE = _Scale((156.0, 58.0), 8.0, 6.0, 26.0, 2, widest=376.0, margin=8.0)
_NARROW_SMALL = _Scale((22.0, 16.0), 3.0, 6.0, 24.0, 6, named=False, widest=376.0, margin=8.0, least=166.0)


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
    linked: str = "",
    large: bool = False,
    narrow: bool = False,
    styled: bool = True,
) -> str:
    """Return the drawing of *snapshot* as an SVG document.

    *users* as in ``node_picture``; tiles lead to the anchors ``#node-NAME`` of a page where ``node`` is *linked*, and
    domains to ``#domain-NAME`` where ``domain`` is. A plan's *headline* stands above the drawing, and the
    node that it is about, in *detail*, below. *large* tiles are not
    shrunk to a map, however many they are, and a *narrow* drawing is as wide as the screen of a phone.
    """
    root = cluster_domains(snapshot)
    nodes = list(root.all_nodes)
    colours = users if users is not None else user_colours(nodes)
    scale = _scale(len(nodes), large=large, narrow=narrow)
    said = headline or Headline(root.name)
    tiles = {
        node.name: _tile(node, colours, scale, said.rooms.get(node.name), linked=linked == "node")
        for node in nodes
    }
    counts = {name: room.workers for name, room in said.rooms.items()}
    box = _inside(root, tiles, scale.widest, scale, counts, linked=linked == "domain")
    lines = [*said.lines, f"{plural(len(nodes), 'node')}  ·  {root.free:,} of {root.total:,} GPUs free"]
    # A long line is broken before it makes a small drawing wide, which would then be shown small.
    longest = min(_SOFT_LETTER * max(map(len, lines)), _LONG_LINE)
    inner = scale.widest if narrow else min(max(box.width, longest, _LEAST), scale.widest)
    inner = max(inner, NODE_WIDTH - 2 * scale.margin) if detail else inner
    head, top = _head(said.title, lines, inner, scale.margin)
    legend = _flow([_entry(*entry) for entry in _legend(nodes, scale, said.rooms)], inner, 14.0)
    height = top + box.height + 14 + legend.height + scale.margin - 4
    below = node_picture(detail, colours, styled=False, top=height) if detail else ""
    return picture(
        inner + 2 * scale.margin,
        height + (node_height(detail) if detail else 0),
        [
            *head,
            _placed(box, scale.margin, top),
            _placed(legend, scale.margin, top + box.height + 14),
            below,
        ],
        name=f"{root.name} topology",
        described=" ".join([said.title, *lines]),
        styled=styled,
        linked=bool(linked),
    )


def _scale(nodes: int, *, large: bool, narrow: bool) -> _Scale:
    if is_map(nodes) and not large:
        return _NARROW_SMALL if narrow else _SMALL
    return _NARROW_LARGE if narrow else _LARGE


def _head(title: str, lines: Sequence[str], width: float, margin: float) -> tuple[list[str], float]:
    """Return what stands above a drawing, broken into lines of *width*, and where the drawing begins."""
    titles = wrap(elided(title, _LONGEST), int(width / _TITLE_LETTER))
    broken = [part for line in lines for part in wrap(elided(line, _LONGEST), int(width / _SOFT_LETTER))]
    below = 12 + _TITLE_LINE * len(titles)
    head = [label(part, margin, 38 + _TITLE_LINE * row, "title") for row, part in enumerate(titles)]
    head += [label(part, margin, below + 22 + _LINE * row, "soft") for row, part in enumerate(broken)]
    return head, below + 19 + _LINE * len(broken)


def _placed(box: _Box, x: float, y: float) -> str:
    return element("g", *box.parts, transform=f"translate({x:.0f} {y:.0f})")


def is_map(nodes: int) -> bool:
    """Whether a cluster of *nodes* is drawn as a map, whose tiles have no names."""
    return nodes >= _SMALL_FROM


def _domain(
    domain: Domain,
    tiles: Mapping[str, _Box],
    widest: float,
    scale: _Scale,
    rooms: Mapping[str, int],
    *,
    linked: bool,
) -> _Box:
    """Return a domain as a titled box around what is in it; in its corner its free GPUs, or how many workers *rooms* has."""
    inner = _inside(domain, tiles, widest - 2 * scale.pad, scale, rooms, linked=linked)
    tier = last_part(domain.tier)
    fitting = sum(rooms.get(node.name, 0) for node in domain.all_nodes)
    count = f"{fitting} fit" if rooms else f"{domain.free}/{domain.total}"
    title = f"{tier} {domain.name}" if domain.name else f"in no {tier}"
    # A domain of one small tile is still as wide as its title, and a long name does not widen the whole row.
    title = elided(title, max(24, int((inner.width + 2 * scale.pad) / 7.4) - len(count) - 2))
    width = max(inner.width, scale.least, 22 + 7.4 * (len(title) + len(count))) + 2 * scale.pad
    height = inner.height + scale.head + 2 * scale.pad - 4
    heading = (
        label(title, scale.pad, scale.pad + 12, "strong"),
        label(count, width - scale.pad, scale.pad + 12, "end soft"),
    )
    leads = linked and bool(domain.nodes)
    parts = (
        element("rect", width=width, height=height, rx=12, class_="card"),
        *((element("a", *heading, href=f"#{domain_anchor(domain)}"),) if leads else heading),
        element("g", *inner.parts, transform=f"translate({scale.pad:.0f} {scale.pad + scale.head - 4:.0f})"),
    )
    return _Box(width, height, parts)


def domain_anchor(domain: Domain) -> str:
    """Return the anchor of a domain of nodes on a page: by its first node, as names of domains may be the same."""
    return f"domain-{domain.nodes[0].name}"


def _inside(
    domain: Domain,
    tiles: Mapping[str, _Box],
    widest: float,
    scale: _Scale,
    rooms: Mapping[str, int],
    *,
    linked: bool,
) -> _Box:
    boxes = [_domain(below, tiles, widest, scale, rooms, linked=linked) for below in domain.domains]
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
    mark = [_mark(0, 1, style)] if style else []
    start = 20.0 if style else 0.0
    return _Box(start + _SMALL_LETTER * len(words), 18.0, (*mark, label(words, start, 12, "small")))


def _legend(
    nodes: Sequence[GpuNode], scale: _Scale, rooms: Mapping[str, NodeRoom]
) -> Iterator[tuple[str, str]]:
    """Yield the style of each mark that is drawn, and what it means."""
    planned = any(planned_gpus(node) for node in nodes)
    if planned:
        yield "u0", "planned"
    if any(rooms[node.name].workers for node in nodes if node.name in rooms):
        yield "card takes", "takes workers"
    if rooms and any(room.workers for room in rooms.values()):
        yield "", "fit: workers that fit side by side"
    if not scale.named:
        steps = {_free_step(node) for node in nodes if not planned_gpus(node)}
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
    others = any(holder.gpus for node in nodes for holder in node.holders if not holder.is_planned)
    marks = [state for node in nodes for state in state_marks(node)]
    if others or marks.count("used") > sum(map(planned_gpus, nodes)):
        yield ("u1", "in use, a colour for each job") if others else ("u6", "in use")
    yield from [("gpu-free", "free")] if "free" in marks else []
    yield from [("gpu-bad", "unhealthy")] if "bad" in marks else []


def _mark(x: float, y: float, style: str) -> str:
    """Return the mark of a GPU: a square, or a disc where it is planned, so that no colour has to be told apart."""
    return element("rect", x=x, y=y, width=13, height=13, rx=6.5 if style == "u0" else 3, class_=style)


def _tile(
    node: GpuNode, colours: Mapping[str, int], scale: _Scale, room: NodeRoom | None, *, linked: bool
) -> _Box:
    space = _room_words(room) if room else ""
    free = f"{node.name}: {node.gpu_free} of {node.gpu_total} GPUs free"
    words = [free, space, node.machine, *remarks(node)]
    drawn = _large_tile(node, colours, room) if scale.named else _small_tile(node, room)
    group = titled([word for word in words if word], *drawn)
    if linked:
        group = element("a", group, href=f"#node-{node.name}")
    width, height = scale.tile
    return _Box(width, height + (_extra(node) if scale.named else 0), (group,))


def _extra(node: GpuNode) -> float:
    """Return how much higher a tile is for GPUs beyond its first row."""
    return 17.0 * ((len(state_marks(node)) - 1) // _PER_ROW) if state_marks(node) else 0.0


def _room_words(room: NodeRoom) -> str:
    """Return what a node takes of a job without a place, or what keeps it off, without a verb: ``fewer than 8 free GPUs``."""
    if room.workers:
        return f"takes {plural(room.workers, 'worker')}"
    return room.obstacle.removeprefix("has ").removeprefix("is ")


def _large_tile(node: GpuNode, colours: Mapping[str, int], room: NodeRoom | None) -> list[str]:
    width, height = _LARGE.tile
    card = "card chosen" if planned_gpus(node) else "card takes" if room and room.workers else "card"
    parts = [
        element("rect", width=width, height=height + _extra(node), rx=8, class_=card),
        label(elided(node.name, 21), 9, 17, "small strong"),
    ]
    for index, (style, tip) in enumerate(_marks(node, colours)):
        x, y = 9 + 17.4 * (index % _PER_ROW), 24 + 17.0 * (index // _PER_ROW)
        mark = _mark(x, y, style)
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

    Squares stand for GPUs in order only where their indices are known. Else they are counted: of eight GPUs, of which a
    pod has two and a plan any three, the squares are two in use, three planned, and three free.
    """
    users = users_of(node) if node.used is not None else {}
    states = state_marks(node)
    any_planned = planned_gpus(node) - sum(user.is_planned for user in users.values())
    last_used = sum(state == "used" for state in states)
    for index, state in enumerate(states):
        if user := users.get(index):
            yield f"u{colours.get(user.key, 0)}", f"GPU{index}: {user.words}"
        elif state == "used" and index >= last_used - any_planned and node.used is None:
            yield "u0", "planned: any of the free GPUs"
        else:
            yield _STATE_STYLES[state], ""


def _small_tile(node: GpuNode, room: NodeRoom | None) -> list[str]:
    """Return a tile that is the greener the more is free, with the number of free GPUs; the rest is in the tooltip.

    The ends of a tile with planned GPUs are round. Of a job without a place the number is that of the workers that fit.
    """
    width, height = _SMALL.tile
    planned, step = planned_gpus(node), _free_step(node)
    style = "u0" if planned else f"gpu-heat-{step}"
    number, ink = (planned, " on-user") if planned else (_free(node), " on-user" if step == 4 else "")
    if room:
        number, style = room.workers, f"{style} takes" if room.workers else style
    return [
        element("rect", width=width, height=height, rx=height / 2 if planned else 3, class_=style),
        label(str(number), width / 2, height / 2 + 3.5, f"tiny middle{ink}"),
    ]


def _free_step(node: GpuNode) -> int:
    """Return how free a node is in five steps that can be told apart: none, up to a third, two thirds, or all, and all."""
    free = _free(node)
    return 0 if not free else 4 if free == node.gpu_total else 1 + min(2, 3 * free // max(node.gpu_total, 1))


def _free(node: GpuNode) -> int:
    """Return the number of GPUs that a pod could get: none on a node that takes no pods."""
    return node.gpu_free if node.ready and not node.unschedulable else 0
