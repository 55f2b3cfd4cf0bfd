"""The rules of others, as they describe them, for the benchmark to be fair."""

import pytest

from arena_topo.planner.fleet import make_fleet
from benchmarks.peers.gangs import RULES, Rule, first_fit, kueue_best_fit
from tests.planner.fleets import PCIE, cluster, node

PLACES = [3, 3, 3, 6, 6, 1]
FLEET = make_fleet(
    cluster(
        [node(f"n{i}", links=PCIE) for i in range(6)],
        {f"n{i}": ("ab"[i // 3],) for i in range(6)},
        "rack",
    )
)
"""Two racks of three nodes; how many workers each takes is told by ``PLACES``."""


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (2, {0: 2}),
        (4, {3: 4}),
        (9, {0: 3, 1: 3, 2: 3}),
        (7, {0: 3, 1: 3, 2: 1}),
        (10, {3: 6, 4: 4}),
        (15, {3: 6, 4: 6, 5: 1, 0: 2}),
        (23, None),
    ],
)
def test_best_fit_takes_the_smallest_domain_that_holds_all(
    workers: int, expected: dict[int, int] | None
) -> None:
    """Then the largest below it, and the smallest for what is
    left; it may take more nodes than another rack needs.
    """
    assert expected == kueue_best_fit(FLEET, PLACES, workers)


def test_first_fit_fills_in_order() -> None:
    """Whatever the fabric."""
    assert {0: 3, 1: 3, 2: 3, 3: 1} == first_fit(FLEET, PLACES, 10)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_no_rule_gives_a_node_more_than_it_takes(rule: Rule) -> None:
    """And each places the whole gang or nothing."""
    for workers in range(1, 25):
        taken = rule(FLEET, PLACES, workers)
        assert (taken is None) == (workers > sum(PLACES))
        if taken:
            assert workers == sum(taken.values())
            assert all(0 < count <= PLACES[position] for position, count in taken.items())
