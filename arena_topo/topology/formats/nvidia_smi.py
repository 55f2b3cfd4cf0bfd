"""The text of ``nvidia-smi topo -m``, in every form that drivers, terminals and web pages give it.

A matrix looks like this, usually with tabs between the cells::

            GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity
    GPU0     X      NV2     PIX     0-23            0
    GPU1    NV2      X      SYS     24-47           1
    mlx5_0  PIX     SYS      X

A line is a row when its second word is a link word and its first one is not; the header is the line (or
lines, where a terminal wrapped it) of device names before the rows, and it decides the order of the columns.
So prompts, colour and legends are passed over. A matrix that is incomplete or contradicts itself is refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Gpu, Hardware, Nic
from arena_topo.model.text.words import natural_sort_key
from arena_topo.topology import hardware
from arena_topo.topology.hardware import (
    Generation,
    build_graph,
    check_count,
    fill_gpu_links,
    find_product,
    guess_generation,
    is_link_word,
    machine_type,
    memory_of,
    rates_of,
)
from arena_topo.topology.objects import MOST_GPUS

_COLOUR = re.compile(r"\x1b?\[[0-9;]*m")
"""A colour code of a terminal; copied from a web page it may lack its escape character."""
_NVLINK = re.compile(r"NV\d{1,3}")
_GPU = re.compile(r"GPU(\d{1,3})")
_DEVICE = re.compile(r"GPU\d{1,3}|NIC\d{1,3}|mlx\d_bond_\d{1,2}|mlx\d_\d{1,3}")
_P2P_ROW = re.compile(r"\s*GPU\d{1,3}\s+(X\s+)?(OK|CNS|GNS|TNS|NS|DR|U)(\s|$)")
_LEGEND = re.compile(r"\s*(NIC\d{1,3}):\s*(\S+)\s*")
_HEADER_WORDS = frozenset({"CPU", "NUMA", "GPU", "Affinity", "ID"})
_CPUS_OR_NODES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_NEAR_WORDS = ("PIX", "PXB", "PHB", "NODE")
_SWITCH_WORDS = ("PIX", "PXB")
_AFFINITY_COLUMNS = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")

_MOST_CPUS = 8192
"""The most CPUs that Linux is built for."""
_MOST_DEVICES = 2 * MOST_GPUS
"""GPUs and NICs of a machine."""

_Cells = Mapping[tuple[str, str], str]
"""The link word of each pair of devices."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the matrix: its device, line number, link words, and the affinity cells behind them."""

    name: str
    line: int
    words: tuple[str, ...]
    affinity: tuple[str, ...]


def parse_matrix(text: str, source: str = "the matrix", product: str = "") -> Hardware:
    """Return the hardware that a text of ``nvidia-smi topo -m`` shows.

    *source* names the text in errors; *product* is the name of its GPUs where known, which decides the
    bandwidths. Raises ``DocumentError`` naming line and reason.
    """
    lines = [_COLOUR.sub("", line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    if any(map(_P2P_ROW.match, lines)):
        raise DocumentError(
            f"{source}: this is `nvidia-smi topo -p2p`, which shows what pairs support and not their links",
            hint="give the output of `nvidia-smi topo -m`",
        )
    columns, header_line, affinities = _header(lines, source)
    check_count(len(columns), source, _MOST_DEVICES)
    rows = _rows(lines, header_line, columns, source)
    names = sorted((name for name in columns if _GPU.fullmatch(name)), key=lambda name: int(name[3:]))
    cells = _cells(rows, columns, names, source)
    nics = [name for name in columns if name not in names]
    words = [[cells[a, b] for b in names] for a in names]
    lacking = _nvlinks_left_out(text, words, product)
    spec = find_product(product)
    places = {name: _affinity(rows[name].affinity, affinities) for name in names}
    on_grace = any(place.own_node for place in places.values())
    generation = spec.generation if spec else _guess(words, on_grace=on_grace)
    graph = build_graph(words, generation, spec, source)
    # Newer drivers number the NICs and name them below the matrix.
    legend = {match[1]: match[2] for match in map(_LEGEND.fullmatch, lines) if match}
    numa = {name: place.node for name, place in places.items()}
    sockets = _sockets(places)
    roots = _pcie_roots(cells, names, nics)
    return Hardware(
        gpus=tuple(
            Gpu(
                index=int(name[3:]),
                product=product,
                memory=memory_of(product),
                numa=numa[name],
                socket=sockets.get(name),
                pcie_root=roots.get(name, ""),
                nics=tuple(legend.get(nic, nic) for nic in _nearest(cells, name, nics)),
            )
            for name in names
        ),
        links=graph,
        nics=tuple(
            sorted(
                (_nic(nic, cells, numa, legend) for nic in nics), key=lambda nic: natural_sort_key(nic.name)
            )
        ),
        machine=machine_type(graph, spec.name if spec else ""),
        assumptions=(*lacking, *(() if spec else (rates_of(generation),))),
    )


def _nvlinks_left_out(text: str, words: list[list[str]], product: str) -> tuple[str, ...]:
    """Return what is assumed as *text* leaves NVLinks out; *words* get the usual ones of *product*.

    ``nvidia-smi topo -mp`` shows only PCIe. Its legend, unlike that of ``-m``, does not explain ``NV#``. A
    matrix that was copied without a legend may come from either, so that the product decides: an H100 SXM has
    NVLinks.
    """
    pairs = [word for a, row in enumerate(words) for b, word in enumerate(row) if a != b]
    if not pairs or "NV#" in text or any(map(_NVLINK.fullmatch, pairs)):
        return ()
    usual = fill_gpu_links(words, product)
    has_legend = re.search(r"^\s*PIX\s*=", text, re.MULTILINE) is not None
    if usual or not has_legend:
        return usual
    return ("no NVLinks: `nvidia-smi topo -mp` leaves them out, and `topo -m` shows them",)


def _guess(words: Sequence[Sequence[str]], *, on_grace: bool) -> Generation:
    guess = guess_generation(words)
    # Both show NV18. GPUs that are NUMA nodes themselves, several to a machine, are those of a GB200 or GB300
    # tray.
    return hardware.BLACKWELL if on_grace and guess is hardware.HOPPER else guess


def _header(lines: Sequence[str], source: str) -> tuple[list[str], int, int]:
    """Return the columns' devices in order, the number of the header's lines, and its affinity columns.

    A header that a terminal wrapped continues over several lines; it ends where the first row begins.
    """
    names = {line.split()[0] for line in lines if _looks_like_row(line)}
    for number in range(len(lines)):
        columns: list[str] = []
        end = number
        while end < len(lines) and not _looks_like_row(lines[end]):
            devices = _header_devices(lines[end], names)
            # Text above the matrix may mention a GPU, but only the header begins with one.
            if devices is None or (end == number and not (devices and _GPU.fullmatch(devices[0]))):
                break
            columns += devices
            end += 1
        if columns:
            if len(set(columns)) < len(columns):
                raise DocumentError(f"{source}: line {number + 1} names a device twice in the header")
            header = " ".join(lines[number:end])
            return columns, end, sum(title in header for title in _AFFINITY_COLUMNS)
    raise DocumentError(
        f"{source}: no header line such as 'GPU0 GPU1 ...' was found",
        hint="give the whole output of `nvidia-smi topo -m`",
    )


def _looks_like_row(line: str) -> bool:
    tokens = line.split()
    return len(tokens) > 1 and is_link_word(tokens[1]) and not is_link_word(tokens[0])


def _header_devices(line: str, names: set[str]) -> list[str] | None:
    """Return the devices that a header line names, or None where it is not a header line.

    Web pages lose the tabs: ``GPU0GPU1mlx5_0`` names three devices. *names* are those of the rows.
    """
    devices: list[str] = []
    for token in line.split():
        if token in names:
            devices.append(token)
        elif token not in _HEADER_WORDS:
            glued = _DEVICE.findall(token)
            if "".join(glued) != token:
                return None
            devices += glued
    return devices


def _rows(lines: Sequence[str], start: int, columns: Sequence[str], source: str) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for number, line in enumerate(lines[start:], start + 1):
        # Prose may look like a row, but it does not begin with a device of the header.
        if not _looks_like_row(line) or line.split()[0] not in columns:
            continue
        row = _row(line, number, len(columns), source)
        if row.name in rows:
            raise DocumentError(f"{source}: line {number} repeats the row of {row.name}")
        rows[row.name] = row
    return rows


def _row(line: str, number: int, width: int, source: str) -> _Row:
    tokens = line.split()
    words = tuple(tokens[1 : width + 1])
    for word in words:
        if not is_link_word(word):
            raise DocumentError(
                f"{source}: line {number} has {word!r} where a link to {tokens[0]} is expected"
            )
    if len(words) < width:
        raise DocumentError(
            f"{source}: line {number} has {len(words)} links of {tokens[0]}, expected {width}"
        )
    # Only blanks are stripped off the line: a tab at its end stands before an empty cell.
    cells = [cell.strip() for cell in line.strip(" ").split("\t")]
    # Only tabs keep an empty affinity cell; with spaces the cells after it move to the left.
    tabbed = len(cells) > width and cells[: width + 1] == tokens[: width + 1]
    return _Row(tokens[0], number, words, tuple(cells[width + 1 :] if tabbed else tokens[width + 1 :]))


def _cells(rows: Mapping[str, _Row], columns: Sequence[str], gpus: Sequence[str], source: str) -> _Cells:
    """Return the link word of every pair of devices in the rows, the same both ways; SOC becomes SYS."""
    missing = [name for name in gpus if name not in rows]
    if missing:
        raise DocumentError(f"{source}: the row of {missing[0]} is missing")
    cells = {
        (row.name, column): "SYS" if word == "SOC" else word
        for row in rows.values()
        for column, word in zip(columns, row.words, strict=True)
    }
    for (a, b), word in cells.items():
        # Some drivers print no rows for NICs; then their words stand on one side only.
        other = cells.get((b, a), word)
        if other != word:
            raise DocumentError(
                f"{source}: line {rows[a].line} says {word} between {a} and {b}, line {rows[b].line} says {other}"
            )
        if (a == b) != (word == "X"):
            raise DocumentError(f"{source}: line {rows[a].line} has {word} between {a} and {b}")
    return cells


@dataclass(frozen=True, slots=True)
class _Affinity:
    """The NUMA nodes and the CPUs next to a GPU, empty where its row leaves them open.

    ``own_node`` is the NUMA node that its own memory is, None where it is none.
    """

    nodes: frozenset[int] = frozenset()
    cpus: frozenset[int] = frozenset()
    own_node: int | None = None

    @property
    def node(self) -> int | None:
        """The one NUMA node next to the GPU; None if there are several, as the nearest is not known."""
        # On Grace the first is the CPU's; the others are the memory of its GPUs, which has no CPUs.
        if len(self.nodes) == 1 or self.own_node is not None:
            return min(self.nodes, default=None)
        return None


def _affinity(cells: Sequence[str], columns: int) -> _Affinity:
    """Return what the affinity *cells* of a row say.

    *columns* counts the affinity columns of the header: CPU affinity, NUMA affinity and, with newer drivers,
    GPU NUMA ID. ``0-23  0  N/A`` is a GPU at NUMA node 0, ``0-23  0-3  N/A`` one next to four nodes; ``0-71
    0  4`` is a Grace Hopper, whose memory is node 4.
    """
    all_columns = len(_AFFINITY_COLUMNS)
    if not cells:
        return _Affinity()
    if columns == 1:
        return _Affinity(cpus=_numbers(",".join(cells)))
    if columns < all_columns - 1:
        return _Affinity()
    if len(cells) > all_columns:  # there are two tabs before the last column
        cells = (cells[0], cells[1], cells[-1])
    if len(cells) == columns:
        own = _numbers(cells[2]) if columns == all_columns else frozenset()
        return _Affinity(_numbers(cells[1]), _numbers(cells[0]), min(own, default=None))
    # Without tabs an empty CPU affinity is lost: what remains is "0  N/A".
    if columns == all_columns and len(cells) == all_columns - 1 and not _numbers(cells[1]):
        return _Affinity(_numbers(cells[0]))
    return _Affinity()


def _numbers(cell: str) -> frozenset[int]:
    """Return the numbers in a list of numbers and ranges, none if it is no such list.

    >>> sorted(_numbers("0,4-6"))
    [0, 4, 5, 6]
    """
    if not _CPUS_OR_NODES.fullmatch(cell):
        return frozenset()
    bounds = [[int(bound) for bound in part.split("-")] for part in cell.split(",")]
    # A machine has far fewer CPUs: what names more of them is not an affinity.
    if any(part[-1] > _MOST_CPUS for part in bounds):
        return frozenset()
    return frozenset(number for part in bounds for number in range(part[0], part[-1] + 1))


def _sockets(places: Mapping[str, _Affinity]) -> dict[str, int]:
    """Return a number for each group of GPUs next to the same CPUs, of those whose NUMA node is not known.

    Two GPUs next to the NUMA nodes 0-3 and two next to 4-7 are on the sockets 0 and 1, and so are two with
    the CPU affinity 0-23 and two with 24-47 where the driver is too old to show NUMA nodes.
    """
    nearby = {name: place.nodes or place.cpus for name, place in places.items() if place.node is None}
    groups: list[frozenset[int]] = []
    for numbers in filter(None, nearby.values()):
        # Affinities of one socket may be cut to what a container may use, and then they overlap.
        touched = [group for group in groups if not group.isdisjoint(numbers)]
        groups = [group for group in groups if group not in touched]
        groups.append(numbers.union(*touched))
    groups.sort(key=min)
    return {
        name: socket
        for name, numbers in nearby.items()
        for socket, group in enumerate(groups)
        if numbers and numbers <= group
    }


def _nearest(cells: _Cells, gpu: str, nics: Iterable[str]) -> list[str]:
    """Return the NICs closest to *gpu*, all of the same class; none where all are across the sockets."""
    for word in _NEAR_WORDS:
        near = [nic for nic in nics if cells[gpu, nic] == word]
        if near:
            return sorted(near, key=natural_sort_key)
    return []


def _nic(name: str, cells: _Cells, numa: Mapping[str, int | None], legend: Mapping[str, str]) -> Nic:
    # The matrix has no NUMA node for NICs, but a NIC shares that of the GPUs nearest to it: below the same
    # switch, else on the same side of the sockets, which may have several nodes.
    for word in _NEAR_WORDS:
        near = {node for gpu, node in numa.items() if node is not None and cells[gpu, name] == word}
        if near:
            return Nic(legend.get(name, name), near.pop() if len(near) == 1 else None)
    return Nic(legend.get(name, name), None)


def _pcie_roots(cells: _Cells, gpus: Sequence[str], nics: Sequence[str]) -> dict[str, str]:
    """Return a name for each group of GPUs below one PCIe root; GPUs without company below theirs have none.

    Two GPUs joined by NVLink show no PCIe word between them, but a NIC that both reach over switches joins
    them: with GPU0-mlx5_0 PIX and GPU1-mlx5_0 PXB both GPUs are below ``pcie0``.
    """
    # Joined devices share one set object, so that its identity stands for their group.
    groups = {name: {name} for name in [*gpus, *nics]}
    for (a, b), word in cells.items():
        if word in _SWITCH_WORDS and groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for name in groups[b]:
                groups[name] = groups[a]
    roots: dict[int, str] = {}
    return {
        gpu: roots.setdefault(id(groups[gpu]), f"pcie{len(roots)}") for gpu in gpus if len(groups[gpu]) > 1
    }
