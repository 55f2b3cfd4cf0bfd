"""Gangs of roles as their callers ask: one role as ever, all roles or none, levels, and why not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from arena_topo.model.cluster import Holder, Snapshot
from arena_topo.model.placement_options import Objective, TopologyPolicy
from arena_topo.model.plan import Demand, GangDemand, Infeasible, Placement, Role, Slice, Tie
from arena_topo.planner.plan import plan, plan_on
from tests.examples import examples
from tests.planner.fleets import (
    PCIE,
    SWITCHED,
    V100,
    cluster,
    demands,
    fleet_of,
    node,
    placed,
    refused,
    snapshots,
)
from tests.planner.roles.oracle import without_gpus

WORKERS = Role(name="worker", pods=4, gpus=4)


def two_racks(*used: int) -> Snapshot:
    """Return two racks of two machines, each with so many GPUs in use."""
    nodes = [node(f"n{number}", range(count), SWITCHED) for number, count in enumerate(used)]
    return cluster(nodes, {f"n{number}": (f"r{number // 2}",) for number in range(len(used))}, "rack")


@settings(max_examples=examples(500))
@given(snapshots(), demands())
def test_a_gang_of_one_role_is_planned_as_ever(snapshot: Snapshot, demand: Demand) -> None:
    """The same pods on the same nodes and GPUs, for the same reasons."""
    fleet = fleet_of(snapshot)
    role = Role(name="worker", pods=demand.workers, gpus=demand.gpus, requests=demand.requests)
    known = plan_on(demand, fleet)
    found = plan_on(GangDemand(roles=(role,), objective=demand.objective), fleet)
    if isinstance(known, Placement):
        assert isinstance(found, Placement)
        assert known.slots == found.roles[0].slots
        assert known.shares == found.roles[0].shares
        assert known.why == found.roles[0].why
    else:
        assert isinstance(found, Infeasible)
        assert known == found.roles[0].answer


@given(snapshots(), demands())
def test_an_answer_says_whether_roles_are_told_apart(snapshot: Snapshot, demand: Demand) -> None:
    """Those of a gang of roles are, even if it has one; workers that are all alike have no role."""
    fleet = fleet_of(snapshot)
    role = Role(name="worker", pods=demand.workers, gpus=demand.gpus, requests=demand.requests)
    gang = GangDemand(roles=(role,), objective=demand.objective)

    assert [False, True] == [plan_on(demand, fleet).by_role, plan_on(gang, fleet).by_role]


@settings(max_examples=examples(200))
@given(snapshots(), demands())
def test_two_alike_roles_get_the_nodes_of_one(snapshot: Snapshot, demand: Demand) -> None:
    """A master and its workers are planned as that many workers: the first pod is the master's."""
    fleet = fleet_of(snapshot)
    master = Role(name="master", gpus=demand.gpus, requests=demand.requests)
    worker = Role(name="worker", pods=demand.workers, gpus=demand.gpus, requests=demand.requests)
    whole = Demand(demand.workers + 1, demand.gpus, requests=demand.requests)
    known, found = plan_on(whole, fleet), plan_on(GangDemand(roles=(master, worker)), fleet)
    if isinstance(known, Infeasible):
        assert isinstance(found, Infeasible)
        return
    assert isinstance(found, Placement)
    slots = [*found.role("master").slots, *found.role("worker").slots]
    assert [(slot.node, slot.gpus) for slot in known.slots] == [(slot.node, slot.gpus) for slot in slots]
    assert known.level == found.level


def test_the_order_of_nodes_makes_no_difference() -> None:
    """As with a gang of one role."""
    snapshot = two_racks(0, 4, 0, 0)
    gang = GangDemand(roles=(WORKERS, Role(name="leader", gpus=1, tie=Tie("worker"))))
    other = Snapshot(tuple(reversed(snapshot.nodes)), snapshot.fabric)
    assert plan(gang, snapshot) == plan(gang, other)


def test_no_role_has_a_place_where_one_has_none() -> None:
    """The answer says which one, and that the other would have had one."""
    roles = (WORKERS, Role(name="evaluator", gpus=9))
    answer = refused(GangDemand(roles=roles), two_racks(0, 0))

    assert "evaluator: 1 pod of 9 GPUs does not fit on any node" == answer.summary
    assert ["worker", "evaluator"] == [role.role for role in answer.roles]
    assert answer.roles[0].answer is None
    assert answer.roles[1].answer is not None


def test_roles_that_fit_one_by_one_only_are_told_so() -> None:
    """Each has a place by itself."""
    roles = (WORKERS, Role(name="evaluator", gpus=1))
    answer = refused(GangDemand(roles=roles), two_racks(0, 0))

    assert (
        "each role fits by itself, but worker (4 pods) and evaluator (1 pod) do not fit together"
        == answer.summary
    )
    assert [None, None] == [role.answer for role in answer.roles]
    assert answer.proven
    assert (
        "3 pods of worker fit next to the other roles",
        "without worker all other roles fit",
        "without evaluator all other roles fit",
    ) == answer.remedies


def test_a_required_level_binds_all_roles_that_exchange_data() -> None:
    """A launcher may stand elsewhere; a wider level that would do is named."""
    evaluator = Role(name="evaluator", gpus=1)
    gang = GangDemand(roles=(WORKERS, evaluator), required_level="rack")
    answer = plan(gang, two_racks(0, 0, 4, 4))
    launcher = Role(name="evaluator", gpus=1, anywhere=True)
    beside = plan(GangDemand(roles=(WORKERS, launcher), required_level="rack"), two_racks(0, 0, 4, 4))

    assert isinstance(answer, Infeasible)
    assert (
        "without --require-topology=rack all roles fit in the cluster",
        "3 pods of worker fit next to the other roles",
        "without worker all other roles fit",
        "without evaluator all other roles fit",
    ) == answer.remedies
    assert isinstance(beside, Placement)
    assert "rack" == beside.level
    assert ("r1",) == beside.role("evaluator").shares[0].domain


def test_a_restricted_gang_takes_no_wider_level_than_on_the_idle_cluster() -> None:
    """One rack would hold it, were it idle."""
    gang = GangDemand(roles=(WORKERS, Role(name="leader")), policy=TopologyPolicy.RESTRICTED)
    answer = refused(gang, two_racks(4, 0, 4, 0))

    assert "would need the whole cluster now; one idle rack would hold them" in answer.summary


def test_slices_keep_to_two_levels_at_once() -> None:
    """Of twelve pods each four are in a rack and each two
    of them on a node, in the order of their indices.
    """
    roles = (
        Role(name="worker", pods=12, gpus=1, slices=(Slice(4, "rack"), Slice(2, "node"))),
        Role(name="leader", requests={"cpu": 1000}),
    )
    answer = placed(GangDemand(roles=roles), two_racks(1, 1, 5, 1))

    slots = answer.role("worker").slots
    rack = {f"n{number}": number // 2 for number in range(4)}
    assert [1, 1, 1] == [len({rack[slot.node] for slot in slots[at : at + 4]}) for at in range(0, 12, 4)]
    assert [1] * 6 == [len({slot.node for slot in slots[at : at + 2]}) for at in range(0, 12, 2)]


def test_pods_without_gpus_leave_the_machines_alone() -> None:
    """An evaluator that goes anywhere takes a node without GPUs."""
    snapshot = cluster([node("a"), without_gpus("b", cpu=4000)])
    roles = (Role(name="worker", gpus=4), Role(name="evaluator", requests={"cpu": 1000}, anywhere=True))
    answer = placed(GangDemand(roles=roles), snapshot)

    assert "b" == answer.role("evaluator").slots[0].node


def test_the_smallest_job_whose_end_is_enough_is_named() -> None:
    """Either of two would do; where none does, none is named."""
    small, big = Holder("ml", "s-0", "small", 1, (0,)), Holder("ml", "b-0", "big", 4, (4, 5, 6, 7))
    snapshot = cluster(
        [
            replace(node("a", (0,), SWITCHED), holders=(small,)),
            replace(node("b", (4, 5, 6, 7), SWITCHED), holders=(big,)),
        ]
    )
    master = Role(name="master", gpus=8)
    answer, never = (
        plan(GangDemand(roles=(Role(name="worker", pods=pods, gpus=4), master)), snapshot) for pods in (1, 3)
    )

    assert isinstance(answer, Infeasible)
    assert "it fits when job ml/small ends" in answer.remedies
    assert isinstance(never, Infeasible)
    assert not any(remedy.endswith("ends") for remedy in never.remedies)


def half_used() -> Snapshot:
    """Return an empty machine whose best four GPUs have 93
    GB/s, and one with four free GPUs that have 31 GB/s.
    """
    return cluster([node("empty", links=V100), node("half", (1, 3, 4, 7), links=V100)])


@pytest.mark.parametrize(
    ("objective", "where", "other"),
    [
        (Objective.BANDWIDTH, "empty", "31.1 GB/s on half, 0 GPUs left over, with --objective=pack"),
        (Objective.PACK, "half", "93.2 GB/s on empty, 4 GPUs left over, with --objective=bandwidth"),
    ],
)
def test_each_role_is_chosen_by_the_objective_and_told_the_other(
    objective: Objective, where: str, other: str
) -> None:
    """As a gang of workers alone is."""
    roles = (Role(name="worker", gpus=4), Role(name="leader", requests={"cpu": 1000}))
    answer = placed(GangDemand(roles=roles, objective=objective), half_used())

    worker = answer.role("worker")
    assert where == worker.slots[0].node
    assert other == next(step.runner_up for step in worker.why if step.criterion == "objective")
    last = "busbw" if objective is Objective.PACK else "left over"
    assert ["nodes", last, "objective"] == [worker.why[index].criterion for index in (0, 2, 3)]


def test_one_node_more_is_told_where_it_is_faster() -> None:
    """Two workers on one node have PCIe between them, and NICs of a higher rate on two."""
    nodes = [node(name, (), PCIE, nic=25.0) for name in ("a", "b")]
    roles = (Role(name="worker", pods=2, gpus=1), Role(name="leader", requests={"cpu": 1000}))
    answer = placed(GangDemand(roles=roles), cluster(nodes))

    step = answer.role("worker").why[0]
    assert ("nodes", "1 node") == (step.criterion, step.chosen)
    assert "on a and 1 other" in step.runner_up
