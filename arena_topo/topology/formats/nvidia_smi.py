"""The text of ``nvidia-smi topo -m``, in every form that drivers, terminals and web pages give it.

Rows are found by their cells, the column order is the header's, and everything else is passed over: prompts,
colour, legends. A matrix that is incomplete or contradicts itself is refused.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Hardware, Nic
from arena_topo.topology.hardware import generations
from arena_topo.topology.hardware.link_graph import build_graph, guess_generation, is_link_word, machine_type
from arena_topo.topology.hardware.products import find_product, memory_of

_COLOUR = re.compile(r"\x1b?\[[0-9;]*m")
_GPU = re.compile(r"GPU(\d{1,3})")
_DEVICE = re.compile(r"GPU\d{1,3}|NIC\d{1,3}|mlx\d_bond_\d{1,2}|mlx\d_\d{1,3}")
_LEGEND = re.compile(r"\s*(NIC\d{1,3}):\s*(\S+)\s*")
_HEADER_WORDS = frozenset({"CPU", "NUMA", "GPU", "Affinity", "ID"})
_NUMBERS = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
_NEAREST = ("PIX", "PXB", "PHB", "NODE")
_SWITCHED = ("PIX", "PXB")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the matrix: its device, line number, link words, and what stands behind them."""

    name: str
    line: int
    words: tuple[str, ...]
    tail: tuple[str, ...]


def parse_matrix(text: str, source: str = "the matrix", product: str = "") -> Hardware:
    """Return the hardware that a text of ``nvidia-smi topo -m`` shows.

    *source* names the text in errors; *product* is the name of its GPUs where known, which decides the
    bandwidths. Raises ``DocumentError`` naming line and reason.
    """
    lines = [_COLOUR.sub("", line) for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    columns, header_line, affinities = _header(lines, source)
    rows = _rows(lines, header_line, columns, source)
    names = sorted((name for name in columns if _GPU.fullmatch(name)), key=lambda name: int(name[3:]))
    cells = _cells(rows, columns, names, source)
    nics = [name for name in columns if name not in names]
    words = [[cells[a, b] for b in names] for a in names]
    known = find_product(product) if product else None
    grace = any(_tail_numbers(rows[name].tail, affinities)[1] for name in names)
    generation = known.generation if known else _guess(words, grace=grace)
    graph = build_graph(words, generation, known, source)
    legend = {match[1]: match[2] for match in map(_LEGEND.fullmatch, lines) if match}
    numa = {name: _tail_numbers(rows[name].tail, affinities)[0] for name in names}
    roots = _pcie_roots(cells, names, nics)
    return Hardware(
        gpus=tuple(
            Gpu(
                index=int(name[3:]),
                product=product,
                memory=memory_of(product) if product else 0,
                numa=numa[name],
                pcie_root=roots.get(name, ""),
                nics=tuple(legend.get(nic, nic) for nic in _nearest(cells, name, nics)),
            )
            for name in names
        ),
        links=graph,
        nics=tuple(
            sorted((_nic(nic, cells, numa, legend) for nic in nics), key=lambda nic: _natural(nic.name))
        ),
        machine=machine_type(graph, known.name if known else ""),
        assumptions=() if known else (f"link rates of {generation.name} GPUs",),
    )


def _guess(words: Sequence[Sequence[str]], *, grace: bool) -> generations.Generation:
    guess = guess_generation(words)
    return generations.BLACKWELL if grace and guess is generations.HOPPER else guess


def _header(lines: Sequence[str], source: str) -> tuple[list[str], int, int]:
    """Return the columns' devices in order, the last line of the header, and its number of affinity columns."""
    names = {line.split()[0] for line in lines if _looks_like_row(line)}
    for number in range(len(lines)):
        columns: list[str] = []
        last = number
        while last < len(lines) and not _looks_like_row(lines[last]):
            part = _header_names(lines[last], names)
            if part is None or (last == number and not (part and _GPU.fullmatch(part[0]))):
                break
            columns += part
            last += 1
        if columns:
            if len(set(columns)) < len(columns):
                raise DocumentError(f"{source}: line {number + 1} names a device twice in the header")
            words = " ".join(lines[number:last])
            return (
                columns,
                last,
                sum(word in words for word in ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")),
            )
    raise DocumentError(
        f"{source}: no header line such as 'GPU0 GPU1 ...' was found",
        hint="give the whole output of `nvidia-smi topo -m`",
    )


def _looks_like_row(line: str) -> bool:
    tokens = line.split()
    return len(tokens) > 1 and is_link_word(tokens[1]) and not is_link_word(tokens[0])


def _header_names(line: str, names: set[str]) -> list[str] | None:
    """Return the devices that a header line names, glued or not, or None where it is no header line."""
    found: list[str] = []
    for token in line.split():
        if token in names:
            found.append(token)
        elif token not in _HEADER_WORDS:
            glued = _DEVICE.findall(token)
            if "".join(glued) != token:
                return None
            found += glued
    return found


def _rows(lines: Sequence[str], start: int, columns: Sequence[str], source: str) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for number, line in enumerate(lines[start:], start + 1):
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
    cells = [cell.strip() for cell in line.strip(" ").split("\t")]
    tabbed = len(cells) > width and cells[: width + 1] == tokens[: width + 1]
    return _Row(tokens[0], number, words, tuple(cells[width + 1 :] if tabbed else tokens[width + 1 :]))


def _cells(
    rows: dict[str, _Row], columns: Sequence[str], gpus: Sequence[str], source: str
) -> dict[tuple[str, str], str]:
    """Return the link word of every pair of devices that the rows tell, both ways the same."""
    missing = [name for name in gpus if name not in rows]
    if missing:
        raise DocumentError(f"{source}: the row of {missing[0]} is missing")
    cells = {
        (row.name, column): "SYS" if word == "SOC" else word
        for row in rows.values()
        for column, word in zip(columns, row.words, strict=True)
    }
    for (a, b), word in cells.items():
        other = cells.get((b, a), word)
        if other != word:
            raise DocumentError(
                f"{source}: line {rows[a].line} says {word} between {a} and {b}, line {rows[b].line} says {other}"
            )
        if (a == b) != (word == "X"):
            raise DocumentError(f"{source}: line {rows[a].line} has {word} between {a} and {b}")
    return cells


def _tail_numbers(tail: Sequence[str], affinities: int) -> tuple[int | None, int | None]:
    """Return the GPU's NUMA node and its own memory's NUMA node, each None where the row does not tell it."""
    all_columns = 3
    if affinities < all_columns - 1 or not tail:
        return None, None
    if len(tail) > all_columns:
        tail = (tail[0], tail[1], tail[-1])
    if len(tail) == affinities:
        own = tail[2] if affinities == all_columns else ""
        return _first(tail[1]), _first(own)
    if affinities == all_columns and len(tail) == all_columns - 1 and not _first(tail[1]):
        return _first(tail[0]), None
    return None, None


def _first(numbers: str) -> int | None:
    return int(re.split(r"[-,]", numbers)[0]) if _NUMBERS.fullmatch(numbers) else None


def _nearest(cells: dict[tuple[str, str], str], gpu: str, nics: Iterable[str]) -> list[str]:
    """Return the NICs closest to *gpu*, all of the same class; none where all are across the sockets."""
    for word in _NEAREST:
        near = [nic for nic in nics if cells[gpu, nic] == word]
        if near:
            return sorted(near, key=_natural)
    return []


def _nic(
    name: str, cells: dict[tuple[str, str], str], numa: dict[str, int | None], legend: dict[str, str]
) -> Nic:
    near = {node for gpu, node in numa.items() if node is not None and cells[gpu, name] in _NEAREST}
    return Nic(legend.get(name, name), near.pop() if len(near) == 1 else None)


def _pcie_roots(
    cells: dict[tuple[str, str], str], gpus: Sequence[str], nics: Sequence[str]
) -> dict[str, str]:
    """Return a name for each group of GPUs below one PCIe root; a NIC that both are close to joins two GPUs."""
    group = {name: {name} for name in [*gpus, *nics]}
    for (a, b), word in cells.items():
        if word in _SWITCHED and group[a] is not group[b]:
            group[a] |= group[b]
            for name in group[b]:
                group[name] = group[a]
    roots: dict[int, str] = {}
    return {gpu: roots.setdefault(id(group[gpu]), f"pcie{len(roots)}") for gpu in gpus if len(group[gpu]) > 1}


def _natural(name: str) -> tuple[str, int, str]:
    match = re.search(r"(\d+)$", name)
    return (name[: match.start()], int(match.group(1)), name) if match else (name, -1, name)
