"""A gang that not even the idle cluster could hold is told apart from one that has to wait."""

from dataclasses import replace

import pytest
from hypothesis import given

from arena_topo.model.cluster import GpuNode, Snapshot, Taint
from arena_topo.model.plan import Demand, Placement
from arena_topo.planner.plan import never_fits, plan
from tests.planner.fleets import cluster, demands, node, snapshots

FULL = range(8)
TAINT = Taint("node.kubernetes.io/not-ready", "", "NoExecute")


@pytest.mark.parametrize(
    "nodes",
    [
        [node("a", FULL), node("b", FULL)],
        [node("a", unschedulable=True), node("b", ready=False, taints=[TAINT])],
        [replace(node("a"), allocatable={"nvidia.com/gpu": 7, "pods": 9}, unhealthy=1), node("b")],
    ],
)
def test_a_gang_that_fits_once_nodes_are_free_has_to_wait(nodes: list[GpuNode]) -> None:
    """Other jobs end, drained nodes come back, broken GPUs are replaced."""
    assert None is never_fits(Demand(2, 8), cluster(nodes))


@pytest.mark.parametrize(
    ("demand", "why"),
    [
        (
            Demand(20, 1),
            "the cluster has 16 GPUs; 20 workers of 1 GPU do not fit in the cluster: 16 of 20 do",
        ),
        (Demand(1, 9), "the cluster has 16 GPUs; 1 worker of 9 GPUs does not fit on any node"),
        (
            Demand(3, 8, required_level="node"),
            "the cluster has 16 GPUs; 3 workers of 8 GPUs do not fit in one",
        ),
    ],
)
def test_a_gang_that_is_too_large_never_fits(demand: Demand, why: str) -> None:
    """The answer says how large the cluster is, and what would fit."""
    never = never_fits(demand, cluster([node("a", FULL), node("b")]))
    assert never
    assert never.summary.startswith(why)
    assert never.summary.endswith(", even when it is idle")


@given(demands(), snapshots())
def test_what_fits_now_is_never_impossible(demand: Demand, snapshot: Snapshot) -> None:
    """Whatever the cluster."""
    if isinstance(plan(demand, snapshot), Placement):
        assert None is never_fits(demand, snapshot)
