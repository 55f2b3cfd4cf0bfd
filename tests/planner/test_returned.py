"""The cluster after some jobs have ended."""

from dataclasses import replace

from arena_topo.model.cluster import Holder
from arena_topo.model.plan_record import PlanRecord, Slot, Stage
from arena_topo.planner.queue import with_returned
from arena_topo.planner.reservations import OtherPlan, without_reserved
from tests.planner.fleets import NVIDIA, cluster, node


def plan(name: str, *slots: Slot, bound: frozenset[int] = frozenset()) -> OtherPlan:
    """Return a confirmed plan of two GPUs a worker."""
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots, worker_requests={NVIDIA: 2})
    return OtherPlan(order=("", name), record=record, bound=bound, namespace="ns", name=name)


def test_what_was_reserved_is_free_again() -> None:
    """The cluster is as if the plan had never been."""
    empty = cluster([node("a"), node("b")])
    ended = plan("job", Slot(0, "a", (0, 1)), Slot(1, "b", (2, 3)))
    after = with_returned(without_reserved(empty, [ended]), [ended])
    assert [(8, frozenset()), (8, frozenset())] == [(each.gpu_free, each.used) for each in after.nodes]


def test_a_worker_that_runs_gives_back_what_its_pod_holds() -> None:
    """Which may be other GPUs than the planned ones; those of another job of the name stay."""
    holders = (
        Holder("ns", "job-worker-0", "job", 2, (4, 5)),
        Holder("other", "job-worker-0", "job", 2, (6, 7)),
    )
    before = cluster([replace(node("a", used=(4, 5, 6, 7)), holders=holders)])
    after = with_returned(before, [plan("job", Slot(0, "a", (0, 1)), bound=frozenset({0}))])
    assert (6, frozenset({6, 7})) == (after.nodes[0].gpu_free, after.nodes[0].used)
    assert holders[1:] == after.nodes[0].holders


def test_on_an_empty_node_all_gpus_are_known_to_be_free() -> None:
    """Nobody said which ones the worker held."""
    before = cluster([node("a", used=(0, 1), lists_used=False)])
    after = with_returned(before, [plan("job", Slot(0, "a"), bound=frozenset({0}))])
    assert frozenset() == after.nodes[0].used
