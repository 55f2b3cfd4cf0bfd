"""A new leader reports what is wrong with existing plans, and changes none of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from arena_topo.controller.report import audit
from arena_topo.controller.state import ClusterState
from arena_topo.model.keys import CONTROLLER, PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, GpuEnforcement, PlanRecord, Slot, Stage
from tests.controller.world import START, World, controller
from tests.objects import plan_record


def confirmed(*nodes: str, gpus: int = 8, enforcement: Enforcement = Enforcement.ADMISSION) -> PlanRecord:
    """Return a confirmed plan with a worker on each of *nodes*."""
    return plan_record(*nodes, gpus=gpus, enforcement=enforcement)


def submit_running(world: World, name: str, record: PlanRecord, gpus: int = 8) -> None:
    """Create a job that runs by *record*."""
    workers = len(record.slots)
    world.submit(name, workers, gpus, record=record)
    job = world.latest["mpijobs"][f"uid-{name}"]
    job["spec"]["runPolicy"] = {**job["spec"].get("runPolicy", {}), "suspend": False}


def found(world: World, *, names_others: bool = False) -> list[tuple[str, str, str]]:
    """Return the findings: the job, the reason and the text."""
    now = START + timedelta(seconds=world.seconds)
    notices = audit(ClusterState(world.latest), now, names_others=names_others)
    return [(notice.job["metadata"]["name"], notice.reason, notice.message) for notice in notices]


def test_nothing_is_amiss_with_the_plans_of_a_controller() -> None:
    """Of jobs that run, and of those that wait."""
    world = World()
    for name, workers in (("one", 2), ("two", 2), ("three", 4)):
        world.submit(name, workers, 8)
    controller(world).settle()
    assert [] == found(world)


def test_two_plans_for_the_same_gpus_are_told_on_the_younger_job() -> None:
    """With the older one's name, and the node."""
    world = World()
    submit_running(world, "old", confirmed("a", "b"))
    submit_running(world, "young", confirmed("b", "c"))
    before = world.latest
    assert [("young", "PlanConflict", "more is planned than there is on b next to default/old")] == found(
        world
    )
    assert before is world.latest


@pytest.mark.parametrize(
    ("names_others", "expected"),
    [(False, "default/old and 1 job of other namespaces"), (True, "other/older, default/old")],
)
def test_jobs_of_other_namespaces_are_counted(*, names_others: bool, expected: str) -> None:
    """They are named where everybody may read who uses the GPUs."""
    world = World()
    submit_running(world, "older", confirmed("a"))
    world.latest["mpijobs"]["uid-older"]["metadata"]["namespace"] = "other"
    submit_running(world, "old", confirmed("b"))
    submit_running(world, "young", confirmed("a", "b"))
    ((_, _, message),) = found(world, names_others=names_others)
    assert f"more is planned than there is on a, b next to {expected}" == message


def test_the_same_gpus_are_found_where_there_would_be_enough_of_them() -> None:
    """By their numbers, where these are enforced."""
    world = World()
    for name, gpus in (("old", (0, 1)), ("young", (1, 2)), ("other", (4, 5))):
        record = confirmed("a", gpus=2)
        slots = (Slot(0, "a", gpus),)
        submit_running(
            world, name, replace(record, slots=slots, gpu_enforcement=GpuEnforcement.UUIDS), gpus=2
        )
    assert [("young", "PlanConflict")] == [finding[:2] for finding in found(world)]


def test_what_is_planned_on_a_spare_node_is_told() -> None:
    """The spare itself is no conflict."""
    world = World()
    submit_running(world, "old", replace(confirmed("a"), spares=(Slot(1, "b"),)))
    assert [] == found(world)
    submit_running(world, "young", confirmed("b"))
    assert [("young", "PlanConflict", "more is planned than there is on b next to default/old")] == found(
        world
    )


def test_a_worker_that_runs_elsewhere_is_told() -> None:
    """Its plan was to be enforced, and was not; what it runs on is what counts as taken."""
    world = World()
    world.submit("job", 1, 8)
    controller(world).settle()
    (pod,) = world.latest["pods"].values()
    pod["spec"]["nodeName"] = "d"
    submit_running(world, "next", confirmed("a"))
    assert [("job", "PlanNotKept", "it runs elsewhere than planned: worker 0 on d, planned on a")] == found(
        world
    )


def test_a_worker_that_leaves_is_nobodys_concern() -> None:
    """It was given another place, perhaps."""
    world = World()
    world.submit("job", 1, 8)
    controller(world).settle()
    (pod,) = world.latest["pods"].values()
    pod["spec"]["nodeName"] = "d"
    pod["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:09Z"
    assert [] == found(world)


@pytest.mark.parametrize(
    ("enforcement", "expected"),
    [
        (Enforcement.AFFINITY, [("job", "PlanNotKept")]),
        # These workers get another place by themselves.
        (Enforcement.ADMISSION, []),
        (Enforcement.GATES, []),
    ],
)
def test_a_job_that_may_use_closed_nodes_alone_is_told(
    enforcement: Enforcement, expected: list[tuple[str, str]]
) -> None:
    """Nobody but its user can have it planned again."""
    world = World()
    world.close("a")
    submit_running(world, "job", confirmed("a", enforcement=enforcement))
    assert expected == [finding[:2] for finding in found(world)]


def test_a_plan_that_cannot_be_true_is_told() -> None:
    """It gives a worker more GPUs than the job asks for, and so reserves nothing."""
    world = World()
    record = confirmed("a", gpus=4)
    submit_running(world, "job", replace(record, slots=(Slot(0, "a", tuple(range(8))),)), gpus=4)
    ((name, reason, message),) = found(world)
    assert ("job", "PlanIgnored") == (name, reason)
    assert "its plan gives worker 0 8 GPUs, and the job asks for 4" in message


@pytest.mark.parametrize(("writer", "expected"), [(CONTROLLER, ["PlanAbandoned"]), ("arena-topo", [])])
def test_a_proposal_of_a_leader_that_died_is_told(writer: str, expected: list[str]) -> None:
    """And not one of somebody who may still confirm it."""
    world = World()
    world.submit("job", 1, 8, record=replace(confirmed("a"), stage=Stage.PROPOSED))
    fields: Object = {"f:metadata": {"f:annotations": {f"f:{PLAN}": {}}}}
    world.latest["mpijobs"]["uid-job"]["metadata"]["managedFields"] = [
        {"manager": writer, "time": "2026-11-22T00:00:01Z", "fieldsV1": fields}
    ]
    assert expected == [finding[1] for finding in found(world)]


def ended(world: World) -> None:
    """End the job."""
    world.latest["mpijobs"]["uid-job"]["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}


def garbled(world: World) -> None:
    """Spoil its plan."""
    world.latest["mpijobs"]["uid-job"]["metadata"]["annotations"][PLAN] = "]"


@pytest.mark.parametrize(("spoil", "expected"), [(ended, []), (garbled, ["PlanIgnored"])])
def test_jobs_that_have_ended_and_plans_that_cannot_be_read(
    spoil: Callable[[World], None], expected: list[str]
) -> None:
    """The former are nobody's concern; the latter are told."""
    world = World()
    submit_running(world, "old", confirmed("a"))
    world.end("old")
    world.submit("job", 1, 8, record=confirmed("a"))
    spoil(world)
    assert expected == [finding[1] for finding in found(world)]
