"""First fit and Kueue's rule, with slices."""

from itertools import accumulate

import pytest

from arena_topo.model.placement_options import Axis
from arena_topo.planner.fleet import make_fleet
from arena_topo.planner.groups import Answer, Stage, first_fit, kueue_slices, parts_of
from tests.planner.fleets import PCIE, cluster, node

PARTS = parts_of(
    make_fleet(
        cluster(
            [node(f"n{i}", links=PCIE) for i in range(6)],
            {f"n{i}": ("ab"[i // 3],) for i in range(6)},
            "rack",
        )
    )
)
"""Two racks of three nodes."""


@pytest.mark.parametrize(
    ("places", "slices", "expected"),
    [
        # Rack a has five places and holds two slices of two, rack b three: a is the tighter one.
        ([2, 2, 1, 2, 2, 2], 2, {0: 2, 1: 2}),
        ([2, 2, 1, 2, 2, 2], 3, {3: 2, 4: 2, 5: 2}),
        # No rack holds four: b takes its three, and a the fourth.
        ([2, 2, 1, 2, 2, 2], 4, {3: 2, 4: 2, 5: 2, 0: 2}),
        # Nodes of one place: a slice is over two of them, and the fifth place is of no use.
        ([1, 1, 1, 1, 1, 0], 2, {0: 1, 1: 1, 3: 1, 4: 1}),
        ([1, 0, 0, 1, 1, 0], 2, None),
    ],
)
def test_a_slice_of_kueue_is_in_one_rack(places: list[int], slices: int, expected: Answer) -> None:
    """A slice is two workers; a rack takes as many as fit whole."""
    counts = [sum(places[:3]) // 2, 0, 0, sum(places[3:]) // 2, 0, 0]
    pairs = Stage(2, Axis.TP, 1, list(accumulate(counts, initial=0)))
    assert expected == kueue_slices(PARTS, places, slices, pairs)


def test_first_fit_ends_without_a_place() -> None:
    """It fills nodes in their order as long as there are any."""
    assert {0: 1, 2: 2} == first_fit([1, 0, 3], 3)
    assert first_fit([1, 0, 1], 3) is None
