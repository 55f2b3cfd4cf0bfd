"""A reservation counts up to what its job asks for, where
that could run, within the quotas of its namespace.
"""

from dataclasses import replace
from functools import partial

import pytest

from arena_topo.model.cluster import GpuNode, Taint
from arena_topo.model.plan import Demand
from arena_topo.model.plan_record import PlannedRole, PlanRecord
from arena_topo.model.pods import Requirement, SelectorTerm, Toleration
from arena_topo.planner.reservations import credible
from tests.objects import plan_record
from tests.planner.fleets import NVIDIA, PAIRS, node

DEMAND = Demand(workers=2, gpus=2, gpu_resource=NVIDIA, requests={"cpu": 1000}, node_selector={"pool": "a"})
POOL = {"pool": "a"}


def pool_node(name: str, **changes: object) -> GpuNode:
    """Return a node of pool a with four GPUs."""
    return replace(node(name, links=PAIRS), labels=POOL, **changes)  # type: ignore[arg-type]  # fields of a node


NODES = {each.name: each for each in (pool_node("a1"), pool_node("a2"), replace(pool_node("b1"), labels={}))}


plan = partial(plan_record, gpus=2, requests={"cpu": 1000})


def counted(record: PlanRecord, demand: Demand = DEMAND) -> list[tuple[int, str]]:
    """Return the workers that count, and their nodes."""
    return [(slot.worker, slot.node) for slot in credible(record, [("", demand)], NODES).slots]


def test_a_plan_that_its_job_asks_for_counts_whole() -> None:
    """As it stands."""
    honest = plan(("a1", (0, 1)), ("a2", None))
    assert honest == credible(honest, [("", DEMAND)], NODES)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([("a1", (0, 1)), ("a1", (2, 3)), ("a2", (0, 1))], [(0, "a1"), (1, "a1")]),
        ([("a1", (0, 1)), ("b1", (0, 1))], [(0, "a1")]),
        ([("gone", (0, 1)), ("a2", (0, 1))], [(1, "a2")]),
        ([("a1", (0, 9)), ("a2", (0, 1))], [(1, "a2")]),
    ],
    ids=[
        "more workers",
        "a node that its selector excludes",
        "a node that is gone",
        "a GPU that is not there",
    ],
)
def test_what_the_job_could_not_have_does_not_count(
    places: list[tuple[str, tuple[int, ...] | None]], expected: list[tuple[int, str]]
) -> None:
    """The other workers do."""
    assert expected == counted(plan(*places))


def test_each_role_counts_up_to_what_the_job_asks_for_it() -> None:
    """The server of another plan, on a node without its label
    and with more cores than asked, and a worker too many.
    """
    job = [("worker", replace(DEMAND, workers=1)), ("ps", Demand(workers=1, gpus=0, requests={"cpu": 2000}))]
    record = replace(
        plan(("a1", (0, 1)), ("b1", None), ("a2", (0, 1))),
        roles=(
            PlannedRole("worker", 1, {NVIDIA: 2, "cpu": 1000}),
            PlannedRole("ps", 2, {"cpu": 9000, NVIDIA: 4}),
        ),
    )
    left = credible(record, job, NODES)

    assert [(0, "a1", (0, 1)), (1, "b1", ())] == list(map(tuple, left.slots))
    assert [{NVIDIA: 2, "cpu": 1000}, {"cpu": 2000}] == [dict(left.requests_of(number)) for number in (0, 1)]


def test_a_plan_of_a_program_without_roles_counts_by_those_of_the_job() -> None:
    """It has one amount for all pods; no pod takes more than its role asks for."""
    job = [("worker", replace(DEMAND, workers=1)), ("ps", Demand(workers=1, gpus=0, requests={"cpu": 500}))]
    left = credible(plan(("a1", (0, 1)), ("a2", ())), job, NODES)

    assert [{NVIDIA: 2, "cpu": 1000}, {"cpu": 500}] == [dict(left.requests_of(number)) for number in (0, 1)]


def test_amounts_below_nothing_free_nothing() -> None:
    """A false plan must not give away what others hold."""
    left = credible(plan(("a1", (0, 1)), requests={"cpu": -4000}), [("", DEMAND)], NODES)
    assert 0 == left.worker_requests["cpu"]


def test_a_job_of_more_pods_than_any_plan_costs_no_more() -> None:
    """Its number is whatever its writer likes."""
    many = [("worker", replace(DEMAND, workers=2**70)), ("ps", Demand(workers=2**70, gpus=0))]
    assert 1 == len(credible(plan(("a1", (0, 1))), many, NODES).slots)


def test_a_plan_for_more_gpus_than_the_job_asks_for_is_void() -> None:
    """It is the plan of another job."""
    with pytest.raises(ValueError, match="gives worker 0 4 GPUs, and the job asks for 2"):
        credible(plan(("a1", (0, 1, 2, 3))), [("", DEMAND)], NODES)


def test_a_job_without_gpus_reserves_none() -> None:
    """Neither by index, nor by number, nor by leaving open which."""
    bare = replace(DEMAND, gpus=0, gpu_resource="")
    with pytest.raises(ValueError, match="the job asks for 0"):
        credible(plan(("a1", (0,))), [("", bare)], NODES)
    left = credible(plan(("a1", None)), [("", bare)], NODES)
    assert ({"cpu": 1000}, ()) == (left.worker_requests, left.slots[0].gpus)


def test_requests_count_up_to_those_of_the_job() -> None:
    """A plan may name others, and larger ones."""
    left = credible(plan(("a1", (0, 1)), requests={"cpu": 96_000, "memory": 2**40}), [("", DEMAND)], NODES)
    assert {NVIDIA: 2, "cpu": 1000} == left.worker_requests


@pytest.mark.parametrize(
    ("demand", "changes"),
    [
        (replace(DEMAND, workers=3), {}),
        (DEMAND, {"taints": (Taint("x", "", "NoSchedule"),)}),
        (replace(DEMAND, affinity=(SelectorTerm((Requirement("pool", "In", ("b",)),)),)), {}),
        (replace(DEMAND, gpu_resource="amd.com/gpu"), {}),
        (replace(DEMAND, requests={"cpu": 10**9}), {}),
    ],
    ids=["more than the node has", "taint", "affinity", "GPUs of another kind", "cpu"],
)
def test_where_a_worker_could_not_run_nothing_is_reserved(demand: Demand, changes: dict[str, object]) -> None:
    """By the rules of kube-scheduler; a node that is empty has room for two workers."""
    nodes = {"a1": pool_node("a1", **changes)}
    left = credible(plan(("a1", None), ("a1", None), ("a1", None)), [("", demand)], nodes)
    assert (2 if demand.workers == 3 else 0) == len(left.slots)


def test_a_tolerated_taint_and_a_cordon_keep_the_reservation() -> None:
    """Nobody else gets a cordoned node, and it may be opened again."""
    tainted = {"a1": pool_node("a1", taints=(Taint("x", "", "NoSchedule"),), unschedulable=True)}
    tolerant = replace(DEMAND, tolerations=(Toleration("x", "Exists"),))
    assert 1 == len(credible(plan(("a1", (0, 1))), [("", tolerant)], tainted).slots)
