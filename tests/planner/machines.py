"""Machines for the tests of the planner's inside-node half."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from hypothesis import strategies as st

from arena_topo.model.cluster import GpuNode, LinkGraph
from arena_topo.planner.gpus.machine import Machine, MachineCatalog
from arena_topo.topology.hardware import usual_hardware

V100 = "Tesla-V100-SXM2-16GB"

Counts = tuple[tuple[int, ...], ...]


MACHINES = MachineCatalog()
"""The machines of all tests: what is kept between questions changes no answer."""


def machine_of(node: GpuNode) -> Machine | None:
    """Return the machine that *node* is, None where its links are not known."""
    return MACHINES.machine_of(node)


def node_of(product: str, count: int, used: frozenset[int] | None = frozenset()) -> GpuNode:
    """Return a node with *count* GPUs called *product*, wired as usual."""
    hardware = usual_hardware(product, count)
    return GpuNode(
        name="gpu-1",
        machine=hardware.machine,
        gpus=hardware.gpus,
        links=hardware.links,
        allocatable={"nvidia.com/gpu": count},
        used=used,
    )


def machine(product: str, count: int) -> Machine:
    """Return the machine of *count* GPUs called *product*."""
    known_machine = machine_of(node_of(product, count))
    assert known_machine is not None
    return known_machine


def v100_graph() -> LinkGraph:
    """Return the links of the hybrid cube mesh of eight V100."""
    links = node_of(V100, 8).links
    assert links is not None
    return links


def counts_of(graph: LinkGraph, members: Sequence[int]) -> Counts:
    """Return the numbers of direct links among *members*."""
    return tuple(tuple(graph.links[a][b].count if a != b else 0 for b in members) for a in members)


def mask_of(text: str) -> int:
    """Return the mask of the GPUs that *text* names by their digits."""
    return sum(1 << int(digit) for digit in text)


def other_numbering() -> GpuNode:
    """Return a V100 box as another maker numbers it: 4 and 6, 5 and 7 change places.

    So published in Koordinator's proposal of 2023-03-14 as a measured bandwidth matrix.
    """
    node, order = node_of(V100, 8), [0, 1, 2, 3, 6, 7, 4, 5]
    graph = v100_graph()
    moved = LinkGraph(tuple(tuple(graph.links[a][b] for b in order) for a in order))
    return replace(node, links=moved)


@st.composite
def link_counts(
    draw: st.DrawFn, fewest: int, most: int, kinds: Sequence[int] = (0, 0, 1, 2)
) -> list[list[int]]:
    """Draw the links between *fewest* to *most* GPUs, each pair with a number of *kinds*."""
    size = draw(st.integers(fewest, most))
    counts = [[0] * size for _ in range(size)]
    for a, b in combinations(range(size), 2):
        counts[a][b] = counts[b][a] = draw(st.sampled_from(kinds))
    return counts
