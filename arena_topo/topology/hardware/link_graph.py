"""From the words of a topology matrix to a link graph, and from a link graph to the machine type.

The words are those of ``nvidia-smi topo -m``. ``NV#`` means two things there: a bundle of NVLinks between two GPUs, or
the links of each GPU into NVSwitches that all GPUs share. A V100 has six NVLinks, for example. Where each of four V100
shows NV2 to the three others, six links are used up: they are bundles. Where each of sixteen shows NV6 to all others,
that would take ninety links: they lead into switches.
"""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from arena_topo.errors import DocumentError
from arena_topo.model.cluster.hardware import Gpu, Link, LinkClass, LinkGraph
from arena_topo.topology.hardware import generations
from arena_topo.topology.hardware.generations import Generation
from arena_topo.topology.hardware.products import FormFactor, Product, find_product
from arena_topo.topology.raw_objects import MOST_GPUS

Words = Sequence[Sequence[str]]
"""A square matrix of link words: row and column for each GPU."""

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
"""Older drivers write SOC for SYS, and PSB for a PCIe switch on one board."""

_NVLINK = re.compile(r"NV(\d{1,3})")
_SMALLEST_BRIDGE = 4
"""NVLink bridges between PCIe cards have four links (A40, RTX A6000) or more; fewer join modules."""
_CUT_LINKS = 8
"""The NVLinks that A800 and H800 have left of twelve and eighteen."""
_CUBE_MESH = 8
_CUBE_MESH_PEERS = 4


def is_link_word(word: str) -> bool:
    """Whether *word* is a cell of a topology matrix."""
    return word in _CLASSES or _NVLINK.fullmatch(word) is not None


def check_count(count: int, where: str, most: int = MOST_GPUS) -> None:
    """Raise ``DocumentError`` for more GPUs, or other devices, than a machine can have.

    Whatever is done with a matrix is done for each pair, so that it comes before everything else.
    """
    if count > most:
        raise DocumentError(f"{where}: {count} devices, and a machine has {most} at the most")


def check_link_words(words: Words, where: str) -> None:
    """Check that *words* is a square, symmetric matrix of link words with ``X`` on its diagonal.

    Raises ``DocumentError`` that begins with *where* and names the GPUs.
    """
    check_count(len(words), where)
    for a, row in enumerate(words):
        if len(row) != len(words):
            raise DocumentError(f"{where}: GPU{a} has {len(row)} links, expected {len(words)}")
        for b, word in enumerate(row):
            if not is_link_word(word):
                raise DocumentError(f"{where}: {word!r} between GPU{a} and GPU{b} is not a link class")
            if (a == b) != (word == "X"):
                raise DocumentError(f"{where}: {word!r} cannot stand between GPU{a} and GPU{b}")
            # Compared as classes: one end may write SOC where the other writes SYS.
            if _link_class(word) != _link_class(words[b][a]):
                raise DocumentError(
                    f"{where}: GPU{a} reaches GPU{b} by {word}, GPU{b} reaches GPU{a} by {words[b][a]}"
                )


def build_graph(words: Words, generation: Generation, product: Product | None, where: str) -> LinkGraph:
    """Return the link graph of a matrix of words, with bandwidths of *generation*.

    Raises ``DocumentError`` when the matrix is malformed, or when no wiring of GPUs can look so.
    """
    check_link_words(words, where)
    counts = [[_nvlinks(word) for word in row] for row in words]
    kinds: dict[int, LinkClass] = {}
    for group in _joined_by_nvlinks(counts):
        if len(group) > 1:
            kinds |= dict.fromkeys(group, _nvlink_class(counts, group, product, where))
    gpus = range(len(words))

    def link(a: int, b: int) -> Link:
        if counts[a][b]:
            return generation.link(kinds[a], counts[a][b])
        # XGMI words have no count: a pair has one link.
        kind = _link_class(words[a][b])[0]
        return generation.link(kind, 1 if kind is LinkClass.XGMI else 0)

    return LinkGraph(tuple(tuple(link(a, b) for b in gpus) for a in gpus))


class Wiring(NamedTuple):
    """The link graph of a machine, its type, and what had to be assumed of the rates of its links."""

    links: LinkGraph
    machine: str
    assumed_rates: tuple[str, ...] = ()


def wiring(words: Words, product: str, where: str) -> Wiring:
    """Return the wiring that *words* show, for GPUs called *product*.

    Where the product is empty or not known, the counts of NVLinks decide the generation, and the rates are assumed. Raises
    ``DocumentError`` as ``build_graph`` does.
    """
    spec = find_product(product)
    generation = spec.generation if spec else guess_generation(words)
    graph = build_graph(words, generation, spec, where)
    # A single GPU has no links, and neither have pairs of which nothing is known: there is no rate to assume.
    has_rates = spec is None and any(link.bandwidth for row in graph.links for link in row)
    return Wiring(
        graph,
        machine_type(graph, spec.name if spec else ""),
        (rates_of(generation),) if has_rates else (),
    )


def rates_of(generation: Generation) -> str:
    """Return the words for rates that are taken from *generation* because the product is not known."""
    return f"link rates of {generation.name} GPUs"


def guess_generation(words: Words) -> Generation:
    """Return the generation that the NVLink counts of a matrix point to; Hopper where NV18 leaves it open.

    For example, no pair above NV2 and at most six links for each GPU is Volta; NV12 between all is Ampere.
    """
    counts = [[_nvlinks(word) for word in row] for row in words]
    widest = max((max(row) for row in counts), default=0)
    most = max((sum(row) for row in counts), default=0)
    switched = most > MOST_LINKS
    if any(word == "XGMI" for row in words for word in row):
        return generations.CDNA3
    if any(word == "SOC" for row in words for word in row) or (
        widest == 1 and most == generations.PASCAL.max_links
    ):
        return generations.PASCAL
    # NV8 into switches is H800, which has the same rates as the uncut H100.
    if widest == generations.HOPPER.max_links or (widest == _CUT_LINKS and switched):
        return generations.HOPPER
    if widest and (
        most <= generations.VOLTA.max_links or (widest == generations.VOLTA.max_links and switched)
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
    if all(other is LinkClass.NVLINK for other in kinds):
        return "mesh"
    # The hybrid cube mesh of DGX-1: eight GPUs, each joined to four others.
    peers = [sum(link.kind is LinkClass.NVLINK for link in row) for row in graph.links]
    return "cubemesh" if peers == [_CUBE_MESH_PEERS] * _CUBE_MESH else "nvlink"


def _link_class(word: str) -> tuple[LinkClass, int]:
    return (LinkClass.NVLINK, _nvlinks(word)) if word.startswith("NV") else (_CLASSES[word], 0)


def _nvlinks(word: str) -> int:
    match = _NVLINK.fullmatch(word)
    return int(match.group(1)) if match else 0


def _joined_by_nvlinks(counts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the sets of GPUs that NVLinks connect, other links left out."""
    kinds = (LinkClass.UNKNOWN, LinkClass.NVLINK)
    return LinkGraph(tuple(tuple(Link(kinds[count > 0], count) for count in row) for row in counts)).islands()


def _nvlink_class(
    counts: Sequence[Sequence[int]], group: list[int], product: Product | None, where: str
) -> LinkClass:
    """Return what the NVLinks are that connect *group*: bundles, bridges, or links into switches."""
    complete = all(counts[a][b] for a, b in combinations(group, 2))
    limit = product.generation.max_links if product else MOST_LINKS
    over = [a for a in group if sum(counts[a]) > limit]
    # Two GPUs on switches show no more links than they have; only the product says that they are switched.
    if product and complete and counts[group[0]][group[-1]] == product.switch_links:
        return LinkClass.NVSWITCH
    if complete and len(over) == len(group):
        return LinkClass.NVSWITCH
    if over:
        raise DocumentError(
            f"{where}: GPU{over[0]} shows {sum(counts[over[0]])} NVLinks to some GPUs and none to others, "
            f"but a GPU has at most {limit} and a switch reaches all"
        )
    if product and product.form is not FormFactor.MODULE:
        return LinkClass.BRIDGE
    # Without a product, a separate pair within a larger machine with that many links must be bridged cards.
    pair = len(group) == 2 and len(counts) > 2
    bridged = product is None and pair and counts[group[0]][group[1]] >= _SMALLEST_BRIDGE
    return LinkClass.BRIDGE if bridged else LinkClass.NVLINK
