"""Grids into bins: as good as the best of all partitions where these can be counted, and valid everywhere."""

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arena_topo.planner.partition import Spread, partition
from tests.planner.all_partitions import Figures, balanced, best

SIZES = st.sampled_from([(1, 4), (2, 2), (3, 2), (4, 2), (5, 2), (3, 3), (4, 3), (6, 2), (9, 1)])
"""Rows and columns; the rows are at least as many, because all partitions are counted row by row."""


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    """Return the cells of a whole grid."""
    return [(row, column) for row in range(rows) for column in range(columns)]


def told(spread: Spread) -> Figures:
    """Return *spread* as the oracle has it."""
    return spread.rows, spread.columns, spread.row_sum, spread.column_sum


@given(
    size=SIZES,
    room=st.lists(st.integers(0, 7), min_size=1, max_size=3),
    weights=st.sampled_from([(1, 1), (1, 4), (5, 2)]),
)
def test_the_spread_is_the_least_of_all_partitions(
    size: tuple[int, int], room: list[int], weights: tuple[int, int]
) -> None:
    """Rows first, or both by their weights; and it is known to be."""
    assume(sum(room) >= size[0] * size[1])
    first, weighed = best(*size, room, weights)
    by_rows, by_both = (partition(grid(*size), room, weights=each) for each in (None, weights))
    assert (first, True) == (told(by_rows.spread), by_rows.exact)
    assert (balanced(weighed, weights), True) == (balanced(told(by_both.spread), weights), by_both.exact)


@given(size=SIZES, room=st.lists(st.integers(0, 7), min_size=1, max_size=3))
def test_columns_may_be_more_than_rows(size: tuple[int, int], room: list[int]) -> None:
    """The search goes along the shorter side, whichever that is."""
    assume(sum(room) >= size[0] * size[1])
    turned = [(column, row) for row, column in grid(*size)]
    upright = partition(grid(*size), room, weights=(1, 1))
    lying = partition(turned, room, weights=(1, 1))
    assert upright.spread.rows + upright.spread.columns == lying.spread.rows + lying.spread.columns
    assert lying.exact


@pytest.mark.parametrize(
    ("size", "room"),
    [((6, 3), (2, 8, 8)), ((9, 2), (7, 6, 6)), ((4, 4), (8, 4, 4))],
)
def test_three_blocks_of_six_nodes(size: tuple[int, int], room: tuple[int, ...]) -> None:
    """The largest clusters whose placements are all counted."""
    answer = partition(grid(*size), room)
    assert (best(*size, room)[0], True) == (told(answer.spread), answer.exact)


@given(
    cells=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60),
    room=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    weights=st.sampled_from([None, (1, 1), (1, 5)]),
)
def test_no_bin_gets_more_than_it_holds(
    cells: set[tuple[int, int]], room: list[int], weights: tuple[int, int] | None
) -> None:
    """Whatever the shape of the grid."""
    assume(sum(room) >= len(cells))
    answer = partition(sorted(cells), room, weights=weights, effort=200)
    assert all(count <= room[number] for number, count in Counter(answer.bins).items())
    assert len(cells) == len(answer.bins)


def test_a_search_that_ends_early_says_so() -> None:
    """What was found by then is a partition, and nothing is claimed of it."""
    assert not partition(grid(4, 4), (2, 4, 4, 6), effort=10).exact


def test_wide_bins_stay_whole() -> None:
    """Of bins that serve as well the tightest is taken."""
    assert {1} == set(partition(grid(2, 2), (9, 4, 6)).bins)
