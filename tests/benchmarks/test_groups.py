"""The benchmark of groups gives all rules the same machines, and finds what it is to show."""

from random import Random
from statistics import mean

import pytest

from arena_topo.model.placement_options import Parallelism
from benchmarks.groups import (
    ANY,
    BLOCKS,
    NODES,
    TRAFFIC,
    compared,
    fragmented,
    least_both,
    runs,
    traffic,
    weighted,
)


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


def test_weighted_by_traffic_groups_are_spread_less_than_by_any_rule() -> None:
    """The mean of both axes, each by the bytes that a rank sends along it."""
    gangs = list(runs(3))
    for name, scattered in TRAFFIC.items():
        ours, *others = (
            mean(weighted(rows[rule], traffic(parallel, scattered=scattered)) for parallel, rows in gangs)
            for rule in (f"arena-topo, {name}", "first fit", "Kueue TAS best-fit", "Kueue, slices of dp")
        )
        assert ours < min(others)
        assert 1.4 * ours <= others[0]


def test_traffic_is_that_of_the_published_model() -> None:
    """76.1e9 parameters on 4 x 8 x 8 GPUs: 224 sequences of 2,048
    x 10,240, and 7/4 of a 32nd of the gradients, by hand.
    """
    parallel = Parallelism(tp=8, pp=4, dp=8)
    assert (18_790, 8_323) == traffic(parallel, scattered=False)
    assert (2_349, 8_323) == traffic(parallel, scattered=True)


def test_no_rule_is_below_what_no_placement_is_below() -> None:
    """The bound for both axes together, which shows how much is left to gain."""
    for _, rows in runs(2):
        least = rows.pop(ANY)["both"]
        assert all(least <= spreads["pp"] + spreads["dp"] for spreads in rows.values())


@pytest.mark.parametrize(
    ("room", "rows", "columns", "least"),
    [
        # All in one block; a quarter of the grid in each; and blocks of one cell, which every line touches as
        # it is long.
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
