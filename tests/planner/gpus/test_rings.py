"""How many rings and chains fit into a set of GPUs."""

from collections import Counter
from functools import cache
from itertools import chain, combinations, pairwise, permutations, product
from operator import sub

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.planner.gpus.packing import NOTHING, Packing, narrowest_cut, pack
from tests.examples import examples
from tests.planner.machines import Counts, counts_of, link_counts, v100_graph


def mesh(size: int, count: int) -> Counts:
    """Return *size* GPUs with *count* links between any two."""
    return tuple(tuple(0 if a == b else count for b in range(size)) for a in range(size))


def histograms(size: int) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return how many V100 sets of *size* have so many closed rings, relayed rings and chains."""
    packed = [pack(counts_of(v100_graph(), chosen)) for chosen in combinations(range(8), size)]
    assert all(each.exact for each in packed)
    return (
        dict(Counter(each.closed for each in packed)),
        dict(Counter(each.relayed for each in packed)),
        dict(Counter(each.chains for each in packed)),
    )


@pytest.mark.parametrize(
    ("size", "closed", "relayed", "chains"),
    [
        (2, {0: 12, 1: 8, 2: 8}, {0: 12, 1: 8, 2: 8}, {0: 12, 1: 8, 2: 8}),
        (3, {0: 48, 2: 8}, {0: 24, 1: 20, 2: 12}, {0: 24, 1: 20, 2: 12}),
        (4, {0: 62, 2: 6, 4: 2}, {0: 14, 1: 36, 2: 16, 3: 2, 4: 2}, {0: 14, 1: 42, 2: 12, 3: 2}),
        (5, {0: 32, 2: 24}, {1: 24, 2: 24, 3: 8}, {1: 24, 2: 32}),
        (6, {2: 24, 4: 4}, {2: 12, 3: 12, 4: 4}, {2: 28}),
        (7, {4: 8}, {4: 8}, {3: 8}),
        (8, {6: 1}, {6: 1}, {3: 1}),
    ],
)
def test_all_sets_of_a_v100_box(
    size: int, closed: dict[int, int], relayed: dict[int, int], chains: dict[int, int]
) -> None:
    """The numbers were found by integer programming elsewhere."""
    assert (closed, relayed, chains) == histograms(size)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (mesh(4, 4), Packing(12, 12, 8)),  # four A100 without a switch
        (mesh(4, 1), Packing(2, 2, 2)),  # the complete graph on four is no sum of directed rings
        (mesh(6, 1), Packing(4, 4, 3)),  # nor is that on six (Tillson 1980)
        (mesh(8, 1), Packing(7, 7, 4)),
        (mesh(2, 12), Packing(12, 12, 12)),
        (mesh(1, 0), NOTHING),
        (mesh(3, 0), NOTHING),
    ],
    ids=["4xNV4", "4xNV1", "6xNV1", "8xNV1", "bridge", "one", "none"],
)
def test_full_meshes(counts: Counts, expected: Packing) -> None:
    """Every GPU of a mesh uses all its links, where a decomposition into rings exists."""
    assert expected == pack(counts)


def test_a_relay_takes_capacity_on_both_of_its_legs() -> None:
    """Two single links in a row carry one ring over the middle GPU, not two."""
    assert Packing(0, 1, 1) == pack(((0, 1, 0), (1, 0, 1), (0, 1, 0)))


def test_a_ring_through_a_star_is_relayed_by_its_hub() -> None:
    """No chain passes through, as a chain has two ends only."""
    star = ((0, 1, 1, 1), (1, 0, 0, 0), (1, 0, 0, 0), (1, 0, 0, 0))
    assert Packing(0, 1, 0) == pack(star)


def as_graph(counts: list[list[int]]) -> "nx.Graph[int]":
    """Return the graph of the links of *counts*, their numbers as weights."""
    graph: nx.Graph[int] = nx.empty_graph(len(counts))
    pairs = combinations(range(len(counts)), 2)
    graph.add_weighted_edges_from((a, b, counts[a][b]) for a, b in pairs if counts[a][b])
    return graph


@given(link_counts(2, 8))
def test_the_narrowest_cut_is_that_of_networkx(counts: list[list[int]]) -> None:
    """Stoer and Wagner's algorithm finds it in a connected graph; it is 0 in any other."""
    graph = as_graph(counts)
    expected = nx.stoer_wagner(graph)[0] if nx.is_connected(graph) else 0

    assert expected == narrowest_cut(counts)


@given(link_counts(2, 8).filter(lambda counts: len(counts) <= 6))
@settings(max_examples=examples(100))
def test_channels_keep_to_what_networkx_allows(counts: list[list[int]]) -> None:
    """No channel without a connected graph, no closed ring without
    a Hamiltonian cycle, no more than a cut lets through.
    """
    graph = as_graph(counts)
    packing = pack(counts)
    hamiltonian = any(len(cycle) == len(counts) for cycle in nx.simple_cycles(graph)) or (
        len(counts) == 2 and nx.is_connected(graph)
    )

    assert nx.is_connected(graph) == (packing.relayed > 0)
    assert hamiltonian == (packing.closed > 0)
    assert packing.closed <= packing.relayed <= narrowest_cut(counts)
    assert packing.chains <= narrowest_cut(counts)


def naive(channels: list[list[tuple[int, int]]], capacities: dict[tuple[int, int], int]) -> int:
    """Return how many of *channels* fit, by trying every multiset of them."""
    arcs = sorted(capacities)
    taken = [tuple(channel.count(arc) for arc in arcs) for channel in channels]

    @cache
    def most(left: tuple[int, ...]) -> int:
        after = (tuple(map(sub, left, each)) for each in taken)
        return max((1 + most(each) for each in after if min(each) >= 0), default=0)

    return most(tuple(capacities[arc] for arc in arcs))


@given(st.integers(2, 4), st.lists(st.integers(0, 2), min_size=6, max_size=6))
@settings(max_examples=examples(200))
def test_packings_are_those_of_plain_enumeration(size: int, links: list[int]) -> None:
    """Rings, relayed rings and chains, written down from their definitions."""
    counts = [[0] * size for _ in range(size)]
    for (a, b), count in zip(combinations(range(size), 2), links, strict=False):
        counts[a][b] = counts[b][a] = count
    both_ways = {(a, b): counts[a][b] for a, b in permutations(range(size), 2)}
    one_way = {(a, b): counts[a][b] for a, b in combinations(range(size), 2)}

    def hops(a: int, b: int) -> list[list[tuple[int, int]]]:
        over = [r for r in range(size) if counts[a][r] and counts[r][b]]
        return [[(a, b)]] if counts[a][b] else [[(a, r), (r, b)] for r in over]

    rings = [(0, *rest, 0) for rest in permutations(range(1, size))]
    closed = [list(pairwise(ring)) for ring in rings]
    ways = (way for ring in rings for way in product(*(hops(a, b) for a, b in pairwise(ring))))
    relayed = [list(chain.from_iterable(way)) for way in ways]
    chains = [[(min(hop), max(hop)) for hop in pairwise(path)] for path in permutations(range(size))]

    expected = (naive(closed, both_ways), naive(relayed, both_ways), naive(chains, one_way))
    found = pack(counts)
    assert (*expected, True) == (found.closed, found.relayed, found.chains, found.exact)
