"""A node as a picture: GPUs on a ring, links as chords, NVSwitches as a hub, sockets and PCIe switches as arcs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

from arena_topo.model.cluster.hardware import Link, LinkClass
from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.model.job.mpijob import parse_worker_name
from arena_topo.output.topology.domains import remarks
from arena_topo.output.topology.svg.elements import USERS, element, label, picture, titled
from arena_topo.output.topology.svg.ring_layout import Ring, polar, ring_of

Value = TypeVar("Value")

WIDTH = 600
_CENTRE = (300.0, 304.0)
_RADIUS = 140.0
_ROOT_RADIUS = 180.0
_GROUP_RADIUS = 198.0
_NIC_RADIUS = 224.0
_HUB = 46.0
_TOP = 556.0
_LINE = 21.0
_MOST_NAMES = 3


def node_picture(node: GpuNode, users: Mapping[str, int] | None = None, *, styled: bool = True) -> str:
    """Return the drawing of *node* as an SVG document.

    *users* gives the holders (``holder_key``) their colours, so that a job has one colour on a whole page.
    """
    colours = users if users is not None else user_colours([node])
    size = node.links.size if node.links is not None else len(node.gpus) or node.gpu_total
    ring = ring_of(node, size)
    children = [
        *_heading(node),
        *_arcs(node, ring),
        *_nics(node, ring),
        *_links(node, ring),
        *_gpus(node, ring, colours),
    ]
    legend, height = _legend(node, colours)
    return picture(WIDTH, height, [*children, *legend], name=f"{node.name} {node.machine}", styled=styled)


def user_colours(nodes: Sequence[GpuNode]) -> dict[str, int]:
    """Return a colour for each holder of GPUs, pods of one job alike."""
    keys = sorted(
        {holder_key(holder.namespace, holder.job or holder.pod) for node in nodes for holder in node.holders}
    )
    return {key: at % USERS for at, key in enumerate(keys)}


def holder_key(namespace: str, name: str) -> str:
    """Return the name under which a holder is coloured and listed."""
    return f"{namespace}/{name}" if namespace else name


class User(NamedTuple):
    """Who holds a GPU: the holder (``holder_key``), and the number of the MPIJob's worker where it is one."""

    key: str
    worker: int | None

    @property
    def words(self) -> str:
        """The user as people say it."""
        return self.key if self.worker is None else f"{self.key}, worker {self.worker}"


def users_of(node: GpuNode) -> dict[int, User]:
    """Return the user of each GPU whose user is known."""
    return {index: _user(holder) for holder in node.holders for index in holder.indices or ()}


def _user(holder: Holder) -> User:
    worker = parse_worker_name(holder.pod)
    return User(
        holder_key(holder.namespace, holder.job or holder.pod),
        worker.index if worker and worker.job == holder.job else None,
    )


def _heading(node: GpuNode) -> Iterator[str]:
    product = node.gpus[0].product if node.gpus else ""
    memory = node.gpus[0].memory if node.gpus else 0
    words = [node.machine, product, f"{memory / 1024:.0f} GiB" if memory else ""]
    yield label(node.name, 24, 36, "title")
    yield label("  ·  ".join(word for word in words if word), 24, 57, "soft")
    yield label(f"{node.gpu_free} of {node.gpu_total} free", WIDTH - 24, 36, "end strong")
    yield label(", ".join(remarks(node)), WIDTH - 24, 57 if len(remarks(node)) < 2 else 76, "end warn small")


def _arcs(node: GpuNode, ring: Ring) -> Iterator[str]:
    """Yield the sockets, and within them the PCIe roots that join GPUs."""
    for numa, members in ring.groups:
        if numa is not None:
            yield _arc(ring, members, _GROUP_RADIUS, "group", f"arc-{node.name}-{numa}")
            yield _along(f"arc-{node.name}-{numa}", f"NUMA {numa}")
    for root, members in _neighbours(ring, {at: gpu.pcie_root for at, gpu in enumerate(node.gpus)}):
        yield titled(f"PCIe root {root}", _arc(ring, members, _ROOT_RADIUS, "root"))


def _neighbours(ring: Ring, values: Mapping[int, Value]) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Yield each value with the GPUs of a group that have it and stand side by side."""
    for _, members in ring.groups:
        run: list[int] = []
        for index in members:
            if run and values.get(index) != values.get(run[-1]):
                yield values[run[0]], tuple(run)
                run = []
            if values.get(index):
                run.append(index)
        if run:
            yield values[run[0]], tuple(run)


def _arc(ring: Ring, members: Sequence[int], radius: float, style: str, identity: str = "") -> str:
    """Return the arc outside *members*; one in the lower half runs from right to left, so that text on it stands."""
    angles = [ring.angles[index] for index in members]
    margin = ring.span * (0.36 if identity else 0.2)
    start, end = min(angles) - margin, max(angles) + margin
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
    run = element("textPath", text, href=f"#{path}", startOffset="50%")
    return element("text", run, class_="tiny middle soft", dy=3.5)


def _nics(node: GpuNode, ring: Ring) -> Iterator[str]:
    """Yield the nearest NICs outside the GPUs that share them."""
    for nics, members in _neighbours(ring, {at: gpu.nics for at, gpu in enumerate(node.gpus)}):
        angle = sum(ring.angles[index] for index in members) / len(members)
        x, y = polar(angle, _NIC_RADIUS, _CENTRE)
        names = nics[0] if len(nics) == 1 else f"{nics[0]} +{len(nics) - 1}"
        width = 12 + 6.4 * len(names)
        x = x - width if x < _CENTRE[0] - 60 else x if x > _CENTRE[0] + 60 else x - width / 2
        box = element("rect", x=x, y=y - 10, width=width, height=20, rx=10, class_="nic")
        yield titled(
            f"nearest NICs: {', '.join(nics)}", box, label(names, x + width / 2, y + 4, "small middle soft")
        )


def _links(node: GpuNode, ring: Ring) -> Iterator[str]:
    graph = node.links
    if graph is None or graph.size < 2:  # a pair
        return
    pairs = [(a, b, graph.between(a, b)) for a, b in combinations(range(graph.size), 2)]
    direct = [(a, b, link) for a, b, link in pairs if link.kind.is_direct]
    shown = sorted(direct or pairs, key=lambda pair: pair[2].count)
    for a, b, link in shown:
        if link.kind is not LinkClass.NVSWITCH and (direct or link.kind is not LinkClass.SYS):
            yield _chord(a, b, link, ring)
    switched = {place: link for a, b, link in direct if link.kind is LinkClass.NVSWITCH for place in (a, b)}
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
    start, end = ring.point(a, _RADIUS, _CENTRE), ring.point(b, _RADIUS, _CENTRE)
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    pull = 0.22
    bend = (middle[0] + (_CENTRE[0] - middle[0]) * pull, middle[1] + (_CENTRE[1] - middle[1]) * pull)
    path = f"M{start[0]:.1f} {start[1]:.1f} Q{bend[0]:.1f} {bend[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    line = element("path", d=path, class_=f"link {_style(link)}", stroke_width=_width(link))
    return titled(f"GPU{a} to GPU{b}: {_words(link)}", line)


def _hub(switched: Mapping[int, Link], ring: Ring) -> Iterator[str]:
    for place, link in sorted(switched.items()):
        start = ring.point(place, _RADIUS, _CENTRE)
        line = element(
            "line",
            x1=start[0],
            y1=start[1],
            x2=_CENTRE[0],
            y2=_CENTRE[1],
            class_="link switch",
            stroke_width=6,
        )
        yield titled(f"GPU{place}: {link.count} NVLinks into the switches, {link.bandwidth:g} GB/s", line)
    link = next(iter(switched.values()))
    yield element("circle", cx=_CENTRE[0], cy=_CENTRE[1], r=_HUB, class_="hub")
    yield label("NVSwitch", _CENTRE[0], _CENTRE[1] - 2, "middle strong")
    yield label(f"{link.count} links each", _CENTRE[0], _CENTRE[1] + 15, "middle small soft")


def _gpus(node: GpuNode, ring: Ring, colours: Mapping[str, int]) -> Iterator[str]:
    radius = min(26.0, _RADIUS * 0.0174 * ring.span * 0.4)
    held = users_of(node)
    for place in ring.angles:
        gpu = node.gpus[place] if place < len(node.gpus) else None
        index = gpu.index if gpu else place
        x, y = ring.point(place, _RADIUS, _CENTRE)
        style, words = _state(node, place, held, colours)
        text = "middle strong on-user" if style.startswith("u") else "middle strong"
        tip = f"GPU{index}: {words}" + (f"\n{gpu.uuid}" if gpu and gpu.uuid else "")
        circle = element("circle", cx=x, cy=y, r=radius, class_=style)
        badge = _badge(held.get(index), ring.point(place, _RADIUS - radius - 2, _CENTRE))
        yield titled(tip, circle, label(str(index), x, y + 5, text), *badge)


def _badge(user: User | None, at: tuple[float, float]) -> Iterator[str]:
    """Yield the number of a worker as a tag on its GPU, towards the middle of the ring."""
    if user is None or user.worker is None:
        return
    text = f"w{user.worker}"
    width = 9 + 6 * len(text)
    yield element("rect", x=at[0] - width / 2, y=at[1] - 8, width=width, height=16, rx=8, class_="card")
    yield label(text, at[0], at[1] + 3.5, "tiny middle")


def _state(
    node: GpuNode, place: int, held: Mapping[int, User], colours: Mapping[str, int]
) -> tuple[str, str]:
    gpu = node.gpus[place] if place < len(node.gpus) else None
    index = gpu.index if gpu else place
    if gpu and not gpu.healthy:
        return "gpu-bad", "unhealthy"
    if index in held:
        return f"u{colours.get(held[index].key, 0)}", f"used by {held[index].words}"
    if node.used is None:
        return "gpu-unknown", "whether it is used is not known"
    return ("u6", "used") if index in node.used else ("gpu-free", "free")


def _legend(node: GpuNode, colours: Mapping[str, int]) -> tuple[list[str], float]:
    """Return the legend below the ring, links on the left and users on the right, and the height of it all."""
    kinds: dict[str, Link] = {}
    if node.links is not None:
        for a, b in combinations(range(node.links.size), 2):
            link = node.links.between(a, b)
            best = kinds.get(link.label)
            kinds[link.label] = link if best is None or link.bandwidth > best.bandwidth else best
    links = sorted(kinds.values(), key=lambda link: -link.bandwidth)
    parts: list[str] = []
    for at, link in enumerate(links):
        y = _TOP + _LINE * at
        parts.append(
            element(
                "line", x1=24, y1=y, x2=58, y2=y, class_=f"link {_style(link)}", stroke_width=_width(link)
            )
        )
        parts.append(label(_words(link), 68, y + 4.5, "small"))
    names = sorted({user.key for user in users_of(node).values()})
    for at, name in enumerate(names[:_MOST_NAMES]):
        parts += _swatch(f"u{colours.get(name, 0)}", name, at)
    rest = len(names) - _MOST_NAMES
    if rest > 0:
        parts.append(label(f"and {rest} more", 354, _TOP + _LINE * _MOST_NAMES + 4.5, "small soft"))
    rows = min(len(names), _MOST_NAMES) + (rest > 0)
    parts += (
        _swatch("gpu-free", "free", rows)
        if node.used is not None
        else _swatch("gpu-unknown", "not known", rows)
    )
    bottom = _TOP + _LINE * max(len(links), rows + 1)
    source = next((fact for fact in node.facts if fact.subject == "links"), None)
    if source:
        aged = "" if source.age is None else f", {source.age:.0f} s old"
        words = f"links {'assumed' if source.assumed else 'as published'}: {source.source}{aged}"
        parts.append(
            label(words if len(words) < 100 else f"{words[:97]}...", 24, bottom + 8, "small soft")
        )  # fits
        bottom += _LINE
    return parts, bottom + 6


def _swatch(style: str, words: str, row: int) -> list[str]:
    y = _TOP + _LINE * row
    return [element("circle", cx=340, cy=y, r=6.5, class_=style), label(words, 354, y + 4.5, "small")]


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
