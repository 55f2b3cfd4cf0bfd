"""From the words of a topology matrix to a link graph, and from a link graph to the machine type.

``NV#`` means two things: a bundle of NVLinks between two GPUs, or the links of each GPU into NVSwitches that all
share. A group whose GPUs all reach each other by more NVLinks than a GPU has must be the latter.
"""

import re
from collections.abc import Sequence
from itertools import combinations

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Link, LinkClass, LinkGraph
from arena_topo.topology.hardware import generations
from arena_topo.topology.hardware.generations import Generation
from arena_topo.topology.hardware.products import Form, Product

Words = Sequence[Sequence[str]]

MOST_LINKS = 18
"""The most NVLinks that any GPU of the known generations has."""

_CLASSES = {
    "X": LinkClass.SELF,
    "SYS": LinkClass.SYS,
    "SOC": LinkClass.SYS,
    "NODE": LinkClass.NODE,
    "PHB": LinkClass.PHB,
    "PXB": LinkClass.PXB,
    "PIX": LinkClass.PIX,
    "PSB": LinkClass.PIX,
    "XGMI": LinkClass.XGMI,
    "C2C": LinkClass.C2C,
    "N/A": LinkClass.UNKNOWN,
    "?": LinkClass.UNKNOWN,
}
_NVLINK = re.compile(r"NV(\d{1,3})")
_BRIDGE_FROM = 4
_CUT_LINKS = 8
_CUBE_MESH = 8
_CUBE_MESH_PEERS = 4


def is_link_word(word: str) -> bool:
    """Whether *word* is a cell of a topology matrix."""
    return word in _CLASSES or _NVLINK.fullmatch(word) is not None


def check_link_words(words: Words, where: str) -> None:
    """Check that *words* is a square, symmetric matrix of link words with ``X`` on its diagonal.

    Raises ``DocumentError`` that begins with *where* and names the GPUs.
    """
    for a, row in enumerate(words):
        if len(row) != len(words):
            raise DocumentError(f"{where}: GPU{a} has {len(row)} links, expected {len(words)}")
        for b, word in enumerate(row):
            if not is_link_word(word):
                raise DocumentError(f"{where}: {word!r} between GPU{a} and GPU{b} is no link class")
            if (a == b) != (word == "X"):
                raise DocumentError(f"{where}: {word!r} cannot stand between GPU{a} and GPU{b}")
            if _link_class(word) != _link_class(words[b][a]):
                raise DocumentError(
                    f"{where}: GPU{a} reaches GPU{b} by {word}, GPU{b} reaches GPU{a} by {words[b][a]}"
                )


def build_graph(words: Words, generation: Generation, product: Product | None, where: str) -> LinkGraph:
    """Return the link graph of a matrix of words, with bandwidths of *generation*.

    Raises ``DocumentError`` when the matrix is malformed, or when no wiring of GPUs can look so.
    """
    check_link_words(words, where)
    counts = [[_links(word) for word in row] for row in words]
    kinds = {
        pair: _kind(counts, group, product, where)
        for group in _groups(counts)
        for pair in combinations(group, 2)
    }
    size = range(len(words))

    def cell(a: int, b: int) -> Link:
        count = counts[a][b]
        if count:
            return generations.link(kinds[min(a, b), max(a, b)], count, generation)
        kind = _link_class(words[a][b])[0]
        return generations.link(kind, 1 if kind is LinkClass.XGMI else 0, generation)

    return LinkGraph(tuple(tuple(cell(a, b) for b in size) for a in size))


def guess_generation(words: Words) -> Generation:
    """Return the generation that the NVLink counts of a matrix point to; Hopper rates where NV18 leaves it open."""
    counts = [[_links(word) for word in row] for row in words]
    sums = [sum(row) for row in counts]
    top = max((max(row) for row in counts), default=0)
    most = max(sums, default=0)
    if any(word == "XGMI" for row in words for word in row):
        return generations.CDNA3
    if any(word == "SOC" for row in words for word in row) or (
        top == 1 and most == generations.PASCAL.max_links
    ):
        return generations.PASCAL
    if top == generations.HOPPER.max_links or (top == _CUT_LINKS and most > MOST_LINKS):
        return generations.HOPPER
    if top and (
        most <= generations.VOLTA.max_links or (top == generations.VOLTA.max_links and most > MOST_LINKS)
    ):
        return generations.VOLTA
    return generations.AMPERE


def pcie_word(a: Gpu, b: Gpu) -> str:
    """Return the word between two GPUs of which only PCIe root and NUMA node are known."""
    if a.pcie_root and a.pcie_root == b.pcie_root:
        return "PXB"
    if a.numa is None or b.numa is None:
        return "?"
    return "NODE" if a.numa == b.numa else "SYS"


def machine_type(graph: LinkGraph, product: str) -> str:
    """Return the machine type of a link graph, for example ``8xH200-nvswitch`` or ``4xT4-pcie``."""
    return f"{graph.size}x{product or 'GPU'}-{_layout(graph)}"


def _layout(graph: LinkGraph) -> str:
    kinds = [graph.between(a, b).kind for a, b in combinations(range(graph.size), 2)]
    direct = {kind for kind in kinds if kind.is_direct}
    if graph.size == 1:
        return "single"
    if not direct:
        return "unknown" if LinkClass.UNKNOWN in kinds else "pcie"
    if len(direct) > 1:
        return "mixed"
    kind = direct.pop()
    if kind is not LinkClass.NVLINK:
        return str(kind.value).lower()
    if all(each is LinkClass.NVLINK for each in kinds):
        return "mesh"
    peers = [sum(link.kind is LinkClass.NVLINK for link in row) for row in graph.links]
    return "cubemesh" if peers == [_CUBE_MESH_PEERS] * _CUBE_MESH else "nvlink"


def _link_class(word: str) -> tuple[LinkClass, int]:
    return (LinkClass.NVLINK, _links(word)) if word.startswith("NV") else (_CLASSES[word], 0)


def _links(word: str) -> int:
    match = _NVLINK.fullmatch(word)
    return int(match.group(1)) if match else 0


def _groups(counts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the sets of GPUs that NVLinks connect, each in order."""
    left, groups = set(range(len(counts))), []
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            edge = {b for a in edge for b, count in enumerate(counts[a]) if count} - group
        left -= group
        groups.append(sorted(group))
    return groups


def _kind(
    counts: Sequence[Sequence[int]], group: list[int], product: Product | None, where: str
) -> LinkClass:
    clique = all(counts[a][b] for a, b in combinations(group, 2))
    limit = product.generation.max_links if product else MOST_LINKS
    over = [a for a in group if sum(counts[a]) > limit]
    if product and clique and counts[group[0]][group[-1]] == product.switch_links:
        return LinkClass.NVSWITCH
    if over and clique and len(over) == len(group):
        return LinkClass.NVSWITCH
    if over:
        raise DocumentError(
            f"{where}: GPU{over[0]} shows {sum(counts[over[0]])} NVLinks to some GPUs and none to others, "
            f"but a GPU has at most {limit} and a switch reaches all"
        )
    if product and product.form is not Form.MODULE:
        return LinkClass.BRIDGE
    pair = len(group) == 2 and len(counts) > 2  # a pair within a larger box
    bridge = product is None and pair and counts[group[0]][group[1]] >= _BRIDGE_FROM
    return LinkClass.BRIDGE if bridge else LinkClass.NVLINK
