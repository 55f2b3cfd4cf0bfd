"""Shrinking against every choice of members that may stay, on small clusters."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand
from arena_topo.model.plan_record import Slot
from arena_topo.planner.change import figures, shrink
from arena_topo.planner.fleet import Fleet, spanned
from tests.examples import examples
from tests.planner.fleets import SWITCHED, V100, cluster, fleet_of, node
from tests.planner.gangs import Gang, gangs, mask_on, value


def score(demand: Demand, fleet: Fleet, placed: Sequence[Slot], staying: Sequence[Slot]) -> tuple[float, ...]:
    """Return level, nodes and value of the gang of those *staying* of the workers *placed*."""
    unions = {i: mask for i in range(len(fleet.nodes)) if (mask := mask_on(fleet, i, staying))}
    level, _ = spanned(fleet, min(unions), max(unions))
    # On the nodes that are still used, the GPUs of those who go are free as well.
    held = {i: mask_on(fleet, i, placed) for i in unions}
    freed = value(demand, fleet, unions, {i: unions[i] for i in unions}, held)
    return (level, len(unions), *freed)


def every_rest(placed: Sequence[Slot], stay: int) -> Iterator[tuple[Slot, ...]]:
    """Yield every choice of *stay* members."""
    yield from combinations(placed, stay)


@settings(max_examples=examples(300))
@given(gangs(most=6), st.integers(1, 3))
def test_no_members_go_at_less_loss_than_those_that_are_named(gang: Gang, fewer: int) -> None:
    """Level, nodes and busbw of the gang that is left; the operator's own choice, where it loses no more."""
    snapshot, demand, placed = gang
    assume(len(placed) > fewer)
    fleet = fleet_of(snapshot)
    answer = shrink(demand, placed, fewer, snapshot)
    best = min(score(demand, fleet, placed, rest) for rest in every_rest(placed, len(placed) - fewer))
    staying = [slot for slot in placed if slot.worker not in answer.cheapest]
    own = {slot.worker for slot in answer.leaving}
    event("the operator's" if own == set(answer.cheapest) else "others")

    assert fewer == len(answer.cheapest) == len(own)
    assert own == {slot.worker for slot in sorted(placed)[-fewer:]}
    # Damage decides between choices that leave the gang as good, and then the operator's own may be taken.
    assert best[:3] == score(demand, fleet, placed, staying)[:3]
    assert answer.if_cheapest == figures(fleet, staying, demand.gpus)
    assert all(step.proven for step in answer.why)


def test_the_operators_choice_and_the_cheaper_one_are_both_told() -> None:
    """Worker 4 goes, and worker 3 alone keeps the gang on two nodes."""
    placed = [*(Slot(i, "a", (i,)) for i in range(3)), Slot(3, "b", (0,)), Slot(4, "a", (4,))]
    machines = cluster([node("a", (0, 1, 2, 4), links=SWITCHED), node("b", (0,), links=SWITCHED)])
    answer = shrink(Demand(5, 1), placed, 1, machines)

    assert ((4,), (3,)) == (tuple(slot.worker for slot in answer.leaving), answer.cheapest)
    assert (2, 2, 1) == (answer.before.nodes, answer.after.nodes, answer.if_cheapest.nodes)
    assert answer.why[-1].runner_up.startswith("node a, 232 GB/s without worker 3")


def test_what_costs_nothing_is_said_so() -> None:
    """The last two workers are on a node of their own."""
    placed = [
        *(Slot(i, "a", (2 * i, 2 * i + 1)) for i in range(2)),
        *(Slot(i, "b", (2 * i - 4, 2 * i - 3)) for i in (2, 3)),
    ]
    machines = cluster([node("a", range(4), links=V100), node("b", range(4), links=V100)])
    answer = shrink(Demand(4, 2), placed, 2, machines)

    assert (2, 3) == answer.cheapest
    assert "no other members would leave more" == answer.why[-1].bound


def test_gpus_left_over_decide_where_they_are_the_objective() -> None:
    """Both machines are as fast; without the worker on the emptier one, that is free as a whole."""
    placed = [Slot(0, "a", (0, 1)), Slot(1, "b", (0, 1))]
    machines = cluster([node("a", (0, 1), links=SWITCHED), node("b", range(6), links=SWITCHED)])
    by_objective = {
        objective: shrink(Demand(2, 2, objective=objective), placed, 1, machines)
        for objective in (Objective.BANDWIDTH, Objective.PACK)
    }

    assert [(1,), (0,)] == [answer.cheapest for answer in by_objective.values()]
    assert "fewer GPUs left over, without worker 0" in by_objective[Objective.PACK].why[-1].runner_up


@pytest.mark.parametrize("fewer", [0, 2, 3])
def test_a_gang_keeps_one_member_at_least(fewer: int) -> None:
    """What ends a gang is no change of it."""
    placed = [Slot(0, "a", (0,)), Slot(1, "a", (1,))]

    with pytest.raises(ValueError, match=f"{fewer} of 2 members cannot go"):
        shrink(Demand(2, 1), placed, fewer, cluster([node("a", (0, 1))]))
