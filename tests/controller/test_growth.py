"""Elastic jobs get more workers from what nobody waits for, and keep those that they have."""

import pytest

from arena_topo.model.plan_record import Enforcement, PlanRecord, Stage
from tests.controller.world import GPU, Controller, World, controller

BOTH = pytest.mark.parametrize("enforcement", [Enforcement.ADMISSION, Enforcement.GATES])


def growing(enforcement: Enforcement, *, grow: bool = True) -> PlanRecord:
    """Return the plan of a job that waits, and that may grow once it runs."""
    options = {"grow": "true"} if grow else {}
    return PlanRecord(stage=Stage.WAITING, enforcement=enforcement, requested_options=options)


def pass_time(running: Controller) -> None:
    """Let the next look for room come."""
    running.world.seconds += 60
    running.settle()


@BOTH
def test_a_job_has_as_many_workers_as_there_is_room_for(enforcement: Enforcement) -> None:
    """Of five that it may have the cluster holds four; those
    that it had stay, and all are where they were planned.
    """
    world = World()
    world.submit("one", 2, 8, enforcement, growing(enforcement), most=5)
    running = controller(world)
    running.settle()

    assert {0: "a", 1: "b", 2: "c", 3: "d"} == world.hosts("one")
    assert list(world.hosts("one").values()) == [slot.node for slot in world.record("one").slots]


def test_a_job_that_was_not_told_to_grow_stays_as_it_is() -> None:
    """Its user changes its size."""
    world = World()
    world.submit("one", 2, 8, record=growing(Enforcement.ADMISSION, grow=False), most=4)
    controller(world).settle()

    assert 2 == len(world.hosts("one"))


@BOTH
def test_nobody_who_waits_is_delayed(enforcement: Enforcement) -> None:
    """What is free stays free while a job waits that needs
    more than that, and goes to the one that grows after it.
    """
    world = World()
    world.submit("small", 1, 8, enforcement)
    world.submit("one", 1, 8, enforcement, growing(enforcement), most=2)
    world.submit("large", 3, 8, enforcement)
    running = controller(world)
    running.settle()
    pass_time(running)
    assert 1 == len(world.hosts("one"))

    world.delete("mpijobs", "uid-small")
    running.settle()
    pass_time(running)
    assert (3, 1) == (len(world.hosts("large")), len(world.hosts("one")))
    world.delete("mpijobs", "uid-large")
    pass_time(running)
    assert 2 == len(world.hosts("one"))


def test_nobody_who_waits_in_a_queue_of_kueue_is_delayed() -> None:
    """What is free is for the jobs in it, and goes to the one that grows after them."""
    world = World()
    world.submit("one", 1, 8, record=growing(Enforcement.ADMISSION), most=2)
    running = controller(world)
    running.others_wait = True
    running.settle()
    pass_time(running)
    assert 1 == len(world.hosts("one"))

    running.others_wait = False
    pass_time(running)
    assert 2 == len(world.hosts("one"))


def test_the_oldest_job_grows_first() -> None:
    """It takes all that it may have, and the next one the rest."""
    world = World()
    for name in ("new", "old"):
        world.submit(name, 1, 4, record=growing(Enforcement.ADMISSION), most=6)
    running = controller(world)
    running.settle()
    pass_time(running)

    assert (6, 2) == (len(world.hosts("new")), len(world.hosts("old")))


def test_a_growth_that_nobody_confirms_leaves_the_job_its_places() -> None:
    """Its proposer has gone: no worker is taken for one that lost its node."""
    world = World()
    world.submit("one", 2, 8, record=growing(Enforcement.ADMISSION, grow=False), most=4)
    running = controller(world)
    running.settle()
    world.propose_growth("one", "c")
    running.settle()
    pass_time(running)

    record = world.record("one")
    assert (Stage.CONFIRMED, ["a", "b"]) == (record.stage, [slot.node for slot in record.slots])
    assert "Moved" not in {notice.reason for notice in world.notices}


def test_no_gpu_is_booked_twice_while_a_job_grows() -> None:
    """A job that comes when more workers were proposed is planned around them."""
    world = World()
    world.submit("one", 2, 8, record=growing(Enforcement.ADMISSION), most=3)
    running = controller(world)
    while Stage.PROPOSED not in world.stages() or len(world.hosts("one")) < 2:
        running.catch_up()
        running.decide()
        while running.sent:
            running.deliver()
    world.submit("two", 2, 8)
    running.settle()

    assert 3 == len(world.hosts("one"))
    assert Stage.WAITING is world.record("two").stage
    assert {8} == {world.record("one").worker_requests[GPU]}
