"""Elastic gangs: the largest that fits, explained."""

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.planner.change import plan_elastic, plan_elastic_on
from arena_topo.planner.plan import plan_on
from tests.examples import examples
from tests.planner.fleets import cluster, demands, fleet_of, node, snapshots


@settings(max_examples=examples(200))
@given(snapshots(4), demands(), st.integers(1, 9), st.booleans())
def test_the_largest_gang_that_fits_is_placed(
    snapshot: Snapshot, demand: Demand, least: int, launcher: bool
) -> None:
    """As it would be if so many workers were asked for; a minimum that does not fit is refused."""
    asked = replace(demand, launcher={"cpu": 2000} if launcher else None)
    least, fleet = min(least, asked.workers), fleet_of(snapshot)
    sizes = range(asked.workers, least - 1, -1)
    answers = (plan_on(replace(asked, workers=size), fleet) for size in sizes)
    best = next((answer for answer in answers if isinstance(answer, Placement)), None)
    answer = plan_elastic_on(asked, least, fleet)
    event("infeasible" if best is None else "all" if best.workers == asked.workers else "fewer")

    if best is None:
        assert isinstance(answer, Infeasible)
    else:
        assert isinstance(answer, Placement)
        assert best.slots == answer.slots


@pytest.mark.parametrize(
    ("level", "least", "chosen", "bound"),
    [
        ("", 1, "4 of 1 to 4 workers", "no more are asked for"),
        ("rack", 1, "2 of 1 to 4 workers", "no rack has room for 3"),
        ("node", 1, "1 of 1 to 4 workers", "no node has room for 2"),
    ],
)
def test_the_number_of_members_is_explained(level: str, least: int, chosen: str, bound: str) -> None:
    """Before the steps by which their places won."""
    racks = cluster([node(f"n{i}") for i in range(4)], {f"n{i}": (f"r{i // 2}",) for i in range(4)}, "rack")
    answer = plan_elastic(Demand(4, 8, required_level=level), least, racks)

    assert isinstance(answer, Placement)
    assert ("members", chosen, bound) == (answer.why[0].criterion, answer.why[0].chosen, answer.why[0].bound)


def test_a_minimum_that_does_not_fit_is_refused_with_its_reasons() -> None:
    """They are those of the minimum: that much would have to be free."""
    answer = plan_elastic(Demand(8, 8), 3, cluster([node("a"), node("b")]))

    assert isinstance(answer, Infeasible)
    assert answer.summary.startswith("3 workers of 8 GPUs do not fit")


@pytest.mark.parametrize("least", [0, 5])
def test_a_minimum_lies_between_one_and_the_most(least: int) -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(ValueError, match=f"{least} of 4 workers"):
        plan_elastic(Demand(4, 1), least, cluster([node("a")]))
