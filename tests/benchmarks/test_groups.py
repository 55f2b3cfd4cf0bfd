"""The benchmark of groups gives all rules the same machines, and finds what it is to show."""

from random import Random
from statistics import mean

import pytest

from arena_topo.model.plan.parallelism import Parallelism
from benchmarks.groups import ANY, BLOCKS, NODES, compared, fragmented, least_both, runs


def test_the_fleet_has_1200_gpus() -> None:
    """Some of them free."""
    fleet = fragmented(Random(1))
    assert 1_200 == BLOCKS * NODES * 8 == sum(node.gpu_total for node in fleet.nodes)
    assert 0 < sum(node.gpu_free for node in fleet.nodes) < 1_200


def test_a_gang_that_no_rule_can_place_is_left_out() -> None:
    """The fleet has fewer machines than workers."""
    assert compared(fragmented(Random(1)), Parallelism(tp=8, pp=16, dp=16)) is None


def test_the_groups_that_go_first_are_spread_half_as_far_again_by_first_fit() -> None:
    """Pipelines or data-parallel groups, as the user chooses."""
    rows = [rows for _, rows in runs(3)]
    for axis in ("pp", "dp"):
        ours, first_fit = (
            mean(row[name][axis] for row in rows) for name in (f"arena-topo, closer={axis}", "first fit")
        )
        assert 1.5 * ours <= first_fit


def test_no_rule_is_below_what_no_placement_is_below() -> None:
    """The bound for both axes together, which shows how much is left to gain."""
    for _, rows in runs(2):
        least = rows.pop(ANY)["both"]
        assert all(least <= spreads["pp"] + spreads["dp"] for spreads in rows.values())


@pytest.mark.parametrize(
    ("room", "rows", "columns", "least"),
    [
        # All in one block; a quarter of the grid in each; and blocks of one cell, which every line touches as it is long.
        ((16,), 4, 4, 2),
        ((4, 4, 4, 4), 4, 4, 4),
        ((1,) * 9, 3, 3, 6),
    ],
)
def test_the_bound_is_met_where_the_best_is_known(
    room: tuple[int, ...], rows: int, columns: int, least: int
) -> None:
    """By hand."""
    assert least == least_both(room, rows, columns)
