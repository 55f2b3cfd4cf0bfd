"""What is reserved is taken off a snapshot once, and a plan stands only next to what is left."""

from dataclasses import replace
from functools import partial

import pytest

from arena_topo.model.plan_record import PlannedRole, Stage
from arena_topo.planner.reservations import Decision, OtherPlan, decide, stands, without_reserved
from tests.objects import plan_record
from tests.planner.fleets import NVIDIA, PAIRS, cluster, node

CLUSTER = cluster([node("a", links=PAIRS), node("b", links=PAIRS)])
OLDER, ME, YOUNGER = ("1", "x"), ("2", "x"), ("3", "x")


plan = partial(plan_record, stage=Stage.PROPOSED)


def test_each_role_takes_what_its_own_pods_request() -> None:
    """A worker on a, and next to it a parameter server without GPUs."""
    record = replace(
        plan(("a", (0,)), ("a", ())),
        roles=(PlannedRole("worker", 1, {NVIDIA: 1, "cpu": 1000}), PlannedRole("ps", 1, {"cpu": 4000})),
    )
    remaining = without_reserved(CLUSTER, [OtherPlan(order=OLDER, record=record)]).nodes[0]

    assert {NVIDIA: 1, "cpu": 5000, "pods": 2} == remaining.requested
    assert frozenset({0}) == remaining.used


def test_a_plan_stands_where_its_roles_fit_together() -> None:
    """Three cores for the server next to the worker's one, of four; and not of three."""
    record = replace(
        plan(("a", (0,)), ("a", ())),
        roles=(PlannedRole("worker", 1, {NVIDIA: 1, "cpu": 1000}), PlannedRole("ps", 1, {"cpu": 3000})),
    )
    for cores, expected in ((4000, True), (3000, False)):
        small = replace(CLUSTER.nodes[0], allocatable={**CLUSTER.nodes[0].allocatable, "cpu": cores})
        assert expected is stands(record, replace(CLUSTER, nodes=(small,)))


def test_promised_gpus_are_used() -> None:
    """By index and by count, and their pods count among the node's."""
    left = without_reserved(CLUSTER, [OtherPlan(order=OLDER, record=plan(("a", (0,)), ("a", (1,))))])
    remaining = left.nodes[0]
    assert frozenset({0, 1}) == remaining.used
    assert (2, 2) == (remaining.gpu_free, remaining.requested["pods"])
    assert CLUSTER.nodes[1] is left.nodes[1]


def test_workers_that_have_a_node_count_no_second_time() -> None:
    """The snapshot has their pods."""
    other = OtherPlan(order=OLDER, record=plan(("a", (0,)), ("a", (1,))), bound=frozenset({0}))
    assert frozenset({1}) == without_reserved(CLUSTER, [other]).nodes[0].used


def test_a_promise_by_number_leaves_open_which_are_free() -> None:
    """The count is taken off, and the indices are unknown."""
    remaining = without_reserved(CLUSTER, [OtherPlan(order=OLDER, record=plan(("a", None)))]).nodes[0]
    assert (None, 3) == (remaining.used, remaining.gpu_free)


def test_promises_on_nodes_that_are_gone_harm_nobody() -> None:
    """A node may leave the cluster while a job is planned for it."""
    assert (
        CLUSTER.nodes
        == without_reserved(CLUSTER, [OtherPlan(order=OLDER, record=plan(("gone", (0,))))]).nodes
    )


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (OtherPlan(order=OLDER, record=plan(("a", (0,)))), Decision.REPLAN),
        (OtherPlan(order=YOUNGER, record=plan(("a", (0,)))), Decision.LOOK_AGAIN),
        (OtherPlan(order=YOUNGER, record=plan(("a", (0,))), stale=True), Decision.REPLAN),
        (OtherPlan(order=YOUNGER, record=plan(("a", (0,)), stage=Stage.CONFIRMED)), Decision.REPLAN),
        (OtherPlan(order=OLDER, record=plan(("a", (1,)))), Decision.CONFIRM),
        (OtherPlan(order=OLDER, record=plan(("b", (0,)))), Decision.CONFIRM),
    ],
    ids=["older", "younger", "stale", "confirmed", "other GPU", "other node"],
)
def test_who_gives_way(other: OtherPlan, expected: Decision) -> None:
    """An older, a stale or a confirmed plan stays; a younger one is given time to go."""
    assert expected is decide(plan(("a", (0,))), ME, [other], CLUSTER)


def test_cpu_counts_as_gpus_do() -> None:
    """Two plans on different GPUs do not stand together where the node's cpu is not enough."""
    small = cluster([node("a", links=PAIRS, cpu=5000)])
    mine = replace(plan(("a", (0,))), worker_requests={NVIDIA: 1, "cpu": 3000})
    other = OtherPlan(
        order=OLDER, record=replace(plan(("a", (1,))), worker_requests={NVIDIA: 1, "cpu": 3000})
    )
    assert stands(mine, small)
    assert Decision.REPLAN is decide(mine, ME, [other], small)


@pytest.mark.parametrize("gpus", [None, (0, 1, 2)], ids=["by number", "by index"])
def test_a_node_that_tells_no_cpu_or_memory_is_not_given_twice(gpus: tuple[int, ...] | None) -> None:
    """It has enough of both, but no more than its four GPUs: two plans of three do not stand together."""
    silent = cluster([replace(node("a", links=PAIRS), allocatable={NVIDIA: 4})])
    mine = replace(plan(("a", gpus)), worker_requests={NVIDIA: 3, "cpu": 3000})
    other = OtherPlan(
        order=OLDER, record=replace(plan(("a", None)), worker_requests={NVIDIA: 3, "cpu": 3000})
    )

    assert stands(mine, silent)
    assert Decision.REPLAN is decide(mine, ME, [other], silent)
    assert Decision.CONFIRM is decide(mine, ME, [], silent)
