"""What the controller decides, whatever it has seen so far
and however many others decide: no GPU is booked twice.
"""

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from arena_topo.controller.objects import ReleaseWorker, WritePlan
from arena_topo.controller.reconciler import Rules
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.controller.world import GPU, Controller, World, controller

BOTH = pytest.mark.parametrize("enforcement", [Enforcement.ADMISSION, Enforcement.GATES])


@BOTH
def test_jobs_that_fit_run_and_the_others_wait_in_order(enforcement: Enforcement) -> None:
    """Each worker is on its node, and who waits knows the number."""
    world = World()
    for name, workers in (("one", 2), ("two", 2), ("three", 4), ("four", 1)):
        world.submit(name, workers, 8, enforcement)
    controller(world).settle()
    assert {Stage.CONFIRMED: 2, Stage.WAITING: 2} == world.stages()
    assert {0: "a", 1: "b"} == world.hosts("one")
    assert [1, 2] == [world.record(name).position for name in ("three", "four")]


@BOTH
def test_a_job_that_ends_makes_room_for_the_next(enforcement: Enforcement) -> None:
    """The waiting job starts pinned."""
    world = World()
    world.submit("one", 3, 8, enforcement)
    world.submit("two", 2, 8, enforcement)
    running = controller(world)
    running.settle()
    world.delete("mpijobs", "uid-one")
    running.settle()
    assert 2 == len(world.hosts("two"))


@BOTH
def test_a_recreated_worker_returns_to_its_place(enforcement: Enforcement) -> None:
    """Whether the policy sends it there, or its gate is opened."""
    world = World()
    world.submit("one", 2, 8, enforcement)
    running = controller(world)
    running.settle()
    before = world.hosts("one")
    uid = next(uid for uid, pod in world.latest["pods"].items() if pod["metadata"]["name"] == "one-worker-1")
    world.delete("pods", uid)
    running.settle()
    assert before == world.hosts("one")


@BOTH
def test_a_worker_whose_node_is_closed_moves(enforcement: Enforcement) -> None:
    """The others stay, and the bad node is left out."""
    world = World()
    world.submit("one", 2, 8, enforcement)
    running = controller(world)
    running.settle()
    world.close("b")
    uid = next(uid for uid, pod in world.latest["pods"].items() if pod["metadata"]["name"] == "one-worker-1")
    world.delete("pods", uid)
    running.settle()
    assert "a" == world.hosts("one")[0]
    assert world.hosts("one")[1] in {"c", "d"}
    assert "Moved" in {notice.reason for notice in world.notices}


def gated(world: World, name: str, workers: int) -> Controller:
    """Return a controller that has confirmed the plan of
    the one job of a world, whose workers are still gated.
    """
    world.submit(name, workers, 8, Enforcement.GATES)
    one = controller(world)
    for _ in range(2):
        one.catch_up()
        one.decide()
        while one.sent:
            one.deliver()
    assert Stage.CONFIRMED is world.record(name).stage
    return one


def test_a_pod_of_a_deleted_job_that_is_bound_at_the_last_moment_moves_nobody() -> None:
    """It goes by itself: who has its place since the job was deleted waits for that."""
    world = World(nodes=("a", "b", "c"))
    one = gated(world, "first", 2)
    one.catch_up()
    one.decide()
    releases = [action for action in one.sent if isinstance(action, ReleaseWorker)]
    one.sent = []
    world.begin_end("first")
    world.submit("second", 2, 8, Enforcement.GATES)
    for _ in range(2):
        one.catch_up()
        one.decide()
        while one.sent:
            one.deliver()
    planned = {slot.worker: slot.node for slot in world.record("second").slots}
    taken = next(release for release in releases if release.hostname in planned.values())
    assert world.do(taken)
    assert 1 == len(world.hosts("first"))
    one.settle()
    world.delete_pods_of_ended()
    one.settle()
    assert planned == world.hosts("second")
    assert "Moved" not in {notice.reason for notice in world.notices}


def test_a_worker_whose_gate_is_being_opened_is_not_moved() -> None:
    """It may have its node before anybody sees that, even if another job seems to have taken its place."""
    world = World()
    one = gated(world, "one", 1)
    one.catch_up()
    one.decide()
    planned = world.record("one").slots
    other = world.occupy(planned[0].node)
    one.catch_up()
    one.decide()
    one.settle()
    world.delete("pods", other)
    one.settle()
    assert planned == world.record("one").slots
    assert {0: planned[0].node} == world.hosts("one")


def test_a_worker_that_has_its_node_before_its_new_place_is_confirmed_stays_there() -> None:
    """Its owner opened the gate: the plan follows the worker."""
    world = World()
    one = gated(world, "one", 2)
    first = {slot.worker: slot.node for slot in world.record("one").slots}
    other = world.occupy(first[1])
    one.catch_up()
    one.decide()
    one.deliver(next(at for at, action in enumerate(one.sent) if isinstance(action, WritePlan)))
    assert Stage.PROPOSED is world.record("one").stage
    world.delete("pods", other)
    world.write_pod("one-worker-1", {"nodeSelector": {HOSTNAME: first[1]}, "schedulingGates": []})
    assert {1: first[1]} == world.hosts("one")
    one.settle()
    assert Stage.CONFIRMED is world.record("one").stage
    assert first == world.hosts("one") == {slot.worker: slot.node for slot in world.record("one").slots}


def test_a_gated_worker_that_asks_for_another_node_is_recreated() -> None:
    """The node that a pod asks for can never be changed."""
    world = World()
    one = gated(world, "one", 1)
    planned = world.record("one").slots[0].node
    world.write_pod("one-worker-0", {"nodeSelector": {HOSTNAME: "d" if planned != "d" else "a"}})
    one.settle()
    assert {0: planned} == world.hosts("one")


@BOTH
def test_a_place_is_kept_for_the_head(enforcement: Enforcement) -> None:
    """Nobody starts before a job of the whole cluster that has waited for long enough."""
    world = World()
    world.submit("first", 2, 8, enforcement)
    running = controller(world, Rules(timedelta()))
    running.settle()
    world.submit("whole", 4, 8, enforcement)
    running.settle()
    world.submit("small", 1, 8, enforcement)
    running.settle()
    assert "is reserved for the job default/whole" in world.record("small").waiting_reason
    world.end("first")
    running.settle()
    assert Stage.WAITING is world.record("small").stage, "the pods of the first one are about to go"
    for uid in [
        uid for uid, pod in world.latest["pods"].items() if pod["metadata"]["name"].startswith("first-")
    ]:
        world.delete("pods", uid)
    running.settle()
    assert 4 == len(world.hosts("whole"))


def test_who_is_just_being_told_why_he_waits_keeps_his_turn() -> None:
    """A job that comes later does not get ahead of him while the text is on its way."""
    world = World()
    world.submit("first", 4, 8)
    running = controller(world)
    running.settle()
    world.submit("whole", 4, 8)
    running.catch_up()
    running.decide()
    assert ["uid-whole"] == [action.uid for action in running.sent if action.uid]
    world.delete("mpijobs", "uid-first")
    world.submit("small", 1, 8)
    running.catch_up()
    running.decide()
    running.settle()
    assert Stage.CONFIRMED is world.record("whole").stage
    assert Stage.WAITING is world.record("small").stage


def test_what_is_under_way_is_not_given_away() -> None:
    """Between the decision and the server's word nothing
    has been seen, and a second decision changes nothing.
    """
    world = World()
    world.submit("one", 4, 8)
    running = controller(world)
    running.catch_up()
    running.decide()
    world.submit("two", 4, 8)
    sent = list(running.sent)
    running.catch_up()
    running.decide()
    assert ["uid-one"] == [action.uid for action in sent if action.uid]
    assert "uid-two" in {action.uid for action in running.sent}
    running.settle()
    assert Stage.CONFIRMED is world.record("one").stage
    assert Stage.WAITING is world.record("two").stage


def test_a_proposal_of_a_controller_that_died_is_planned_again() -> None:
    """Once nobody can confirm it any more."""
    world = World()
    world.submit("one", 4, 8)
    dead = controller(world)
    dead.catch_up()
    dead.decide()
    dead.deliver()
    assert Stage.PROPOSED is world.record("one").stage
    heir = controller(world)
    heir.settle()
    assert Stage.PROPOSED is world.record("one").stage
    world.seconds += 31
    heir.settle()
    assert Stage.CONFIRMED is world.record("one").stage


def test_a_plan_of_a_submit_is_respected() -> None:
    """It was confirmed without the controller, and its pods do not exist yet."""
    world = World()
    slots = tuple(Slot(worker, node) for worker, node in enumerate("abc"))
    record = PlanRecord(
        stage=Stage.PROPOSED, slots=slots, worker_requests={GPU: 8}, enforcement=Enforcement.ADMISSION
    )
    world.submit("theirs", 3, 8, record=record)
    world.submit("mine", 2, 8)
    controller(world).settle()
    assert Stage.WAITING is world.record("mine").stage


def test_a_plan_that_was_confirmed_before_ours_was_proposed_stands() -> None:
    """A submit reserved the same between our look and our
    proposal: ours is seen with it, and is planned again.
    """
    world = World()
    world.submit("mine", 2, 8)
    running = controller(world)
    running.catch_up()
    running.decide()
    slots = tuple(Slot(worker, node) for worker, node in enumerate("abc"))
    record = PlanRecord(
        stage=Stage.PROPOSED, slots=slots, worker_requests={GPU: 8}, enforcement=Enforcement.ADMISSION
    )
    world.submit("theirs", 3, 8, record=record)
    theirs = world.latest["mpijobs"]["uid-theirs"]
    assert world.do(WritePlan(theirs, replace(record, stage=Stage.CONFIRMED)))
    running.settle()
    assert (Stage.CONFIRMED, Stage.WAITING) == (world.record("theirs").stage, world.record("mine").stage)


SIZES = [(1, 1), (1, 8), (2, 4), (2, 8), (3, 8), (4, 4), (4, 8), (1, 2)]


def something(random: Random, world: World, one: Controller, left: list[str]) -> None:
    """Let anything happen: a job comes or ends, a controller sees more, decides, or gets a write through."""
    latest = len(world.history)
    match random.randrange(8):
        case 0 if left:
            enforcement = random.choice([Enforcement.ADMISSION, Enforcement.GATES])
            world.submit(left.pop(), *random.choice(SIZES), enforcement)
        case 1 | 2:
            one.catch_up(random.randrange(latest), random.randrange(latest))
        case 3 | 4:
            one.decide()
        case 5 | 6 if one.sent:
            one.deliver(random.randrange(len(one.sent)))
        case 7:
            world.seconds += random.choice([0, 1, 5])
            if random.random() < 0.2 and (ended := started(world)):
                world.delete("mpijobs", random.choice(ended))
            elif random.random() < 0.4 and (confirmed := names_of_running(world)):
                world.begin_end(random.choice(confirmed))
            elif random.random() < 0.3:
                world.delete_pods_of_ended()
        case _:
            pass


def started(world: World) -> list[str]:
    """Return the uids of the jobs that have workers on nodes."""
    return [uid for uid in world.latest["mpijobs"] if world.hosts(uid.removeprefix("uid-"))]


def names_of_running(world: World) -> list[str]:
    """Return the names of the jobs whose plans are confirmed, and that are not being deleted."""
    names = [
        job["metadata"]["name"]
        for job in world.latest["mpijobs"].values()
        if not job["metadata"].get("deletionTimestamp")
    ]
    return [name for name in names if world.record(name).stage is Stage.CONFIRMED]


@pytest.mark.parametrize("seed", range(25))
def test_two_controllers_that_both_believe_to_lead_never_book_twice(seed: int) -> None:
    """In any order of what they see, decide and write, one of
    them restarted at any moment: ``World.check`` fails else.
    """
    random = Random(seed)
    world = World()
    rules = Rules(timedelta(seconds=random.choice([0, 300])))
    pair = [controller(world, rules), controller(world, rules)]
    left = [f"job-{at}" for at in range(12)]
    for _ in range(300):
        one = random.randrange(2)
        if random.random() < 0.01:
            pair[one] = controller(world, rules)
        something(random, world, pair[one], left)
    # One of them is left, and everything that fits alone runs in the end.
    last = controller(world, rules)
    for _ in range(40):
        world.seconds += 40
        last.settle()
        for uid in started(world):
            world.delete("mpijobs", uid)
        world.delete_pods_of_ended()
    assert {} == world.latest["mpijobs"]


@pytest.mark.parametrize("seed", range(25))
def test_workers_are_where_their_job_is_planned(seed: int) -> None:
    """However late the controller sees pods, and whichever jobs are deleted just as they start."""
    random = Random(seed)
    world = World()
    one = controller(world, Rules(timedelta(seconds=random.choice([0, 300]))))
    left = [f"job-{at}" for at in range(16)]
    for _ in range(400):
        something(random, world, one, left)
    world.delete_pods_of_ended()
    one.settle()
    for name in names_of_running(world):
        planned = {slot.worker: slot.node for slot in world.record(name).slots}
        assert planned == world.hosts(name), name


def test_what_was_decided_and_never_sent_is_decided_again() -> None:
    """Where a decision failed before its end; else its job would wait for a write that nobody has seen."""
    world = World()
    world.submit("one", 1, 8)
    running = controller(world)
    running.catch_up()
    for expected in (1, 0):
        running.sent = []
        running.decide()
        assert expected == len(running.sent)
    running.reconciler.lost()
    running.decide()
    assert 1 == len(running.sent)


def test_of_a_namespace_the_oldest_jobs_have_their_turns() -> None:
    """The others are told so once, and those of another namespace
    wait for none of them; they come up as the oldest go.
    """
    most = 20
    world = World()
    for number in range(most + 2):
        # None of them ever fits.
        world.submit(f"many-{number}", 9, 8)
    world.submit("one", 1, 8, namespace="other")
    running = controller(world, Rules(most_queued=most))
    running.settle()

    assert Stage.CONFIRMED is world.record("one").stage
    reasons = [world.record(f"many-{number}").waiting_reason for number in range(most + 2)]
    later = f"{most} older jobs of its namespace wait: it is planned once fewer do"
    assert [later] * 2 == reasons[most:]
    assert later not in reasons[:most]
    # The job of the other namespace has had its turn before them.
    assert [most + 2, most + 3] == [world.record(f"many-{number}").position for number in (most, most + 1)]
    assert most + 2 == running.reconciler.queued
    assert 2 == sum(notice.message == later for notice in world.notices)
    world.delete("mpijobs", "uid-many-0")
    world.seconds += 60
    running.settle()
    assert [True, False] == [
        later != world.record(f"many-{number}").waiting_reason for number in (most, most + 1)
    ]
