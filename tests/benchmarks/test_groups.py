"""The benchmark of groups gives all rules the same machines, and finds what it is to show."""

from random import Random
from statistics import mean

from arena_topo.model.plan.parallelism import Parallelism
from benchmarks.groups import BLOCKS, NODES, compared, fragmented, runs


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
