"""The islands of a node's GPUs, held against networkx."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.cluster import Link, LinkClass, LinkGraph

SELF, PCIE, NVLINK = Link(LinkClass.SELF), Link(LinkClass.SYS, 0, 8.3), Link(LinkClass.NVLINK, 1, 25.0)


def graph_of(size: int, joined: set[tuple[int, int]]) -> LinkGraph:
    """Return *size* GPUs with an NVLink between the pairs
    *joined*, lower position first, and PCIe elsewhere.
    """

    def link(a: int, b: int) -> Link:
        return SELF if a == b else NVLINK if (min(a, b), max(a, b)) in joined else PCIE

    return LinkGraph(tuple(tuple(link(a, b) for b in range(size)) for a in range(size)))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (None, [[0, 2, 3], [1]]),
        ([3, 2], [[2, 3]]),
        ([0, 1, 3], [[0], [1], [3]]),
        ([], []),
    ],
    ids=["all", "a pair", "the GPU between is no member", "none"],
)
def test_islands_of_four_gpus(members: list[int] | None, expected: list[list[int]]) -> None:
    """The example of the docstring."""
    assert expected == graph_of(4, {(0, 2), (2, 3)}).islands(members)


@given(st.integers(0, 9), st.data())
def test_islands_are_connected_components(size: int, data: st.DataObject) -> None:
    """On any graph, among any members, as networkx finds them."""
    pairs = list(combinations(range(size), 2))
    joined = data.draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    members = data.draw(st.sets(st.integers(0, size - 1))) if size else set()
    oracle: nx.Graph[int] = nx.Graph(sorted(joined))
    oracle.add_nodes_from(range(size))
    components = nx.connected_components(oracle.subgraph(members))

    assert sorted(map(sorted, components)) == graph_of(size, joined).islands(members)
