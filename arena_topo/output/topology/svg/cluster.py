"""The cluster as a picture: domains as boxes within boxes, nodes as tiles with a square for each GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.words import last_part
from arena_topo.output.topology.domains import Domain, cluster_domains, remarks, state_marks
from arena_topo.output.topology.svg.elements import element, label, picture, titled
from arena_topo.output.topology.svg.users import user_colours, users_of

_TILE = (156.0, 58.0)
_SMALL_TILE = (24.0, 16.0)
_SMALL_FROM = 300
"""Clusters of more nodes show a bar for each, because tiles with a square for each GPU would fill many screens."""
_GAP = 10.0
_PAD = 14.0
_HEAD = 26.0
_WIDEST = 1180.0
_PER_ROW = 8
_STATE_STYLES = {"used": "u6", "free": "gpu-free", "bad": "gpu-bad"}
_TITLE_LETTER = 13.0  # the width of a letter of the title, on the safe side


@dataclass(frozen=True, slots=True)
class _Box:
    """Something drawn with its upper left corner at the origin."""

    width: float
    height: float
    parts: tuple[str, ...]


def cluster_picture(
    snapshot: Snapshot, users: Mapping[str, int] | None = None, *, linked: bool = False, styled: bool = True
) -> str:
    """Return the drawing of *snapshot* as an SVG document.

    *users* as in ``node_picture``; *linked* tiles lead to the anchors ``#node-NAME`` of a page.
    """
    root = cluster_domains(snapshot)
    nodes = list(root.all_nodes)
    colours = users if users is not None else user_colours(nodes)
    small = len(nodes) >= _SMALL_FROM
    tiles = {node.name: _tile(node, colours, small=small, linked=linked) for node in nodes}
    box = _inside(root, tiles, _WIDEST)
    width = max(box.width + 48, 420.0)
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    head = [
        label(_short(root.name, int(width / _TITLE_LETTER)), 24, 38, "title"),
        label(f"{count}  ·  {root.free} of {root.total} GPUs free", 24, 60, "soft"),
    ]
    body = element("g", *box.parts, transform="translate(24 78)")
    return picture(width, box.height + 102, [*head, body], name=f"{root.name} topology", styled=styled)


def _domain(domain: Domain, tiles: Mapping[str, _Box], widest: float) -> _Box:
    """Return a domain as a titled box around what is in it."""
    inner = _inside(domain, tiles, widest - 2 * _PAD)
    tier = last_part(domain.tier)
    title = f"{tier} {domain.name}" if domain.name else f"in no {tier}"
    count = f"{domain.free}/{domain.total}"
    # A domain of one small tile is still as wide as its title.
    width = max(inner.width + 2 * _PAD, 30 + 7.4 * (len(title) + len(count)) + 2 * _PAD)
    height = inner.height + _HEAD + 2 * _PAD - 4
    parts = (
        element("rect", width=width, height=height, rx=12, class_="card"),
        label(title, _PAD, _PAD + 12, "strong"),
        label(count, width - _PAD, _PAD + 12, "end soft"),
        element("g", *inner.parts, transform=f"translate({_PAD:.0f} {_PAD + _HEAD - 4:.0f})"),
    )
    return _Box(width, height, parts)


def _inside(domain: Domain, tiles: Mapping[str, _Box], widest: float) -> _Box:
    boxes = [_domain(below, tiles, widest) for below in domain.domains]
    return _flow([*boxes, *(tiles[node.name] for node in domain.nodes)], widest)


def _flow(boxes: Sequence[_Box], widest: float) -> _Box:
    """Return boxes side by side, in rows no wider than *widest*."""
    x = y = row = width = 0.0
    parts: list[str] = []
    for box in boxes:
        if x and x + box.width > widest:
            x, y, row = 0.0, y + row + _GAP, 0.0
        parts.append(element("g", *box.parts, transform=f"translate({x:.1f} {y:.1f})"))
        x, row = x + box.width + _GAP, max(row, box.height)
        width = max(width, x - _GAP)
    return _Box(width, y + row, tuple(parts))


def _tile(node: GpuNode, colours: Mapping[str, int], *, small: bool, linked: bool) -> _Box:
    words = [f"{node.name}: {node.gpu_free} of {node.gpu_total} GPUs free", node.machine, *remarks(node)]
    drawn = _small_tile(node) if small else _large_tile(node, colours)
    group = titled([word for word in words if word], *drawn)
    if linked:
        group = element("a", group, href=f"#node-{node.name}")
    width, height = _SMALL_TILE if small else _TILE
    return _Box(width, height + (0 if small else _extra(node)), (group,))


def _extra(node: GpuNode) -> float:
    """Return how much higher a tile is for GPUs beyond its first row."""
    return 17.0 * ((len(state_marks(node)) - 1) // _PER_ROW) if state_marks(node) else 0.0


def _large_tile(node: GpuNode, colours: Mapping[str, int]) -> list[str]:
    width, height = _TILE
    parts = [
        element("rect", width=width, height=height + _extra(node), rx=8, class_="card"),
        label(_short(node.name, 19), 9, 17, "small strong"),
    ]
    # Marks stand for GPUs in order only where their indices are known.
    users = users_of(node) if node.used is not None else {}
    for index, state in enumerate(state_marks(node)):
        x, y = 9 + 17.4 * (index % _PER_ROW), 24 + 17.0 * (index // _PER_ROW)
        user = users.get(index)
        style = f"u{colours.get(user.key, 0)}" if user else _STATE_STYLES[state]
        mark = element("rect", x=x, y=y, width=13, height=13, rx=3, class_=style)
        parts.append(titled(f"GPU{index}: {user.words}", mark) if user else mark)
    closed = not node.ready or node.unschedulable
    words = ", ".join(remarks(node)) if closed else node.machine
    parts.append(
        label(_short(words, 25), 9, height - 7 + _extra(node), "small warn" if closed else "small soft")
    )
    return parts


def _small_tile(node: GpuNode) -> list[str]:
    """Return a bar of which the used share is filled; names and machines are in the tooltip."""
    width, height = _SMALL_TILE
    share = 1 - node.gpu_free / node.gpu_total if node.gpu_total else 0.0
    parts = [element("rect", width=width, height=height, rx=4, class_="card")]
    if share:
        parts.append(
            element("rect", x=3, y=3, width=(width - 6) * share, height=height - 6, rx=2, class_="u0")
        )
    return parts


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
