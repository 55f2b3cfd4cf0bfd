"""Why names what the decisive alternative would have had, whatever goes first."""

from math import isinf

import pytest
from hypothesis import assume, given, settings

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand, Placement
from arena_topo.planner.answer import OTHER, alternative
from arena_topo.planner.choice import Problem, choose_domain
from arena_topo.planner.fleet import capacity_for, closest_level, level_limits
from tests.examples import examples
from tests.planner.fleets import PCIE, V100, cluster, demands, fleet_of, node, placed, snapshots


def half_used() -> list[GpuNode]:
    """Return an empty machine whose best four GPUs have 93
    GB/s, and one with four free GPUs that have 31 GB/s.
    """
    return [node("empty", links=V100), node("half", (1, 3, 4, 7), links=V100)]


def asked(objective: Objective) -> Placement:
    """Return the plan of one worker of four GPUs."""
    return placed(Demand(1, 4, objective=objective), cluster(half_used()))


@pytest.mark.parametrize(
    ("objective", "where", "other", "criteria"),
    [
        (
            Objective.BANDWIDTH,
            "empty",
            "on half, 0 GPUs left over, with --objective=pack",
            ["busbw", "left over"],
        ),
        (
            Objective.PACK,
            "half",
            "on empty, 4 GPUs left over, with --objective=bandwidth",
            ["left over", "busbw"],
        ),
    ],
)
def test_the_other_order_is_told_with_its_figures(
    objective: Objective, where: str, other: str, criteria: list[str]
) -> None:
    """A whole machine for 93 GB/s, or the rest of another one for 31 GB/s."""
    answer = asked(objective)
    steps = {step.criterion: step for step in answer.why}

    assert where == answer.domain
    assert steps["objective"].runner_up.endswith(other)
    assert objective.value in steps["objective"].chosen
    assert criteria == [name for name in steps if name in criteria]


def test_a_faster_gang_on_one_more_node_is_told() -> None:
    """The number of nodes goes before bandwidth: the price of that is named."""
    nodes = [
        node("pcie", links=PCIE),
        *(node(f"v{i}", (0, 1, 2, 4, 5, 6), links=V100, nic=25.0) for i in range(2)),
    ]
    answer = placed(Demand(2, 2), cluster(nodes))
    step = next(step for step in answer.why if step.criterion == "nodes")

    assert "pcie" == answer.domain
    assert "22.5 GB/s on v0 and 1 other, 0 GPUs left over" == step.runner_up


def test_nodes_are_counted_as_topology_counts_them() -> None:
    """Those without GPUs are none of those that might have room for workers with GPUs."""
    nodes = [*half_used(), GpuNode("cpu-1")]
    counts = {
        gpus: next(
            step.chosen for step in placed(Demand(1, gpus), cluster(nodes)).why if step.criterion == "fits"
        )
        for gpus in (8, 0)
    }

    assert {8: "1 of 2 nodes with GPUs has room", 0: "3 of 3 nodes have room"} == counts


@settings(max_examples=examples(300))
@given(snapshots(), demands())
def test_an_alternative_has_what_the_choice_gave_up(snapshot: Snapshot, demand: Demand) -> None:
    """More busbw than the choice, or fewer GPUs left over, and never both."""
    fleet = fleet_of(snapshot)
    capacity = capacity_for(demand, fleet)
    level = closest_level(fleet, capacity, demand.workers, level_limits(demand, fleet))
    assume(level is not None and demand.gpus > 0)
    problem = Problem(fleet, capacity, demand.workers, demand.gpus, objective=demand.objective)
    chosen = choose_domain(problem, level or 0)
    other = alternative(problem, chosen)
    if other:
        assert not isinf(other.busbw)
        gains_gpus = other.stranded < chosen.pick.stranded
        assert gains_gpus != (other.busbw > chosen.pick.busbw)
        assert gains_gpus == (OTHER[demand.objective] is Objective.PACK)
