"""When waiting jobs start, as the controller works it out:
step by step, and for users without the right to see all.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from arena_topo.controller.estimates import Estimator, TimedJob, is_news, seen_from
from arena_topo.controller.state import ClusterState
from arena_topo.model.plan_record import MOST_AHEAD, Stage, StartEstimate
from tests.controller.world import START, Controller, World, controller


def in_minutes(later: float = 0) -> StartEstimate:
    """Return an estimate of forty minutes, or so many more."""
    return StartEstimate(
        earliest=START + timedelta(minutes=30 + later),
        likely=START + timedelta(minutes=40 + later),
        latest=START + timedelta(minutes=60 + later),
        after=("default/one", "other/bert-7"),
        basis=("its deadline", "3 earlier runs of bert, of any size"),
    )


KNOWN = in_minutes()


def limited(world: World, name: str, minutes: float) -> None:
    """Let a job run for so many minutes at most, from now on."""
    job = world.latest["mpijobs"][f"uid-{name}"]
    job["spec"].setdefault("runPolicy", {})["activeDeadlineSeconds"] = int(60 * minutes)


def jobs_of(world: World) -> list[TimedJob]:
    """Return the planned jobs that there are."""
    return [*ClusterState(world.latest).ledger.jobs.values()]


def estimated(running: Controller, estimator: Estimator) -> int:
    """Estimate one round for what *running* has decided last, and let it know; return the steps."""
    prospect = running.reconciler.prospect(estimator.plan)
    assert prospect is not None
    estimator.begin(prospect, jobs_of(running.world))
    steps = 0
    while estimator.step():
        steps += 1
    running.reconciler.estimates = estimator.known
    return steps


def full(*, minutes: float = 0) -> tuple[World, Controller]:
    """Return a cluster with one job on all of it, which
    ends after so many *minutes* if any, and a controller.
    """
    world = World()
    world.submit("first", 4, 8)
    if minutes:
        limited(world, "first", minutes)
    running = controller(world)
    running.settle()
    return world, running


def test_a_job_that_waits_carries_when_it_starts() -> None:
    """With the range, and what that rests on."""
    world, running = full(minutes=60)
    world.submit("late", 2, 8)
    running.settle()
    assert None is world.record("late").estimate
    estimated(running, Estimator(lambda: 0.0))
    running.settle()
    estimate = world.record("late").estimate
    assert estimate is not None
    assert (("default/first",), ("its deadline",)) == (estimate.after, estimate.basis)
    assert estimate.latest == START + timedelta(minutes=60, seconds=world.seconds)


def test_without_an_end_there_is_no_estimate_and_the_job_in_the_way_is_named() -> None:
    """It may run forever."""
    world, running = full()
    world.submit("late", 2, 8)
    running.settle()
    estimated(running, Estimator(lambda: 0.0))
    running.settle()
    estimate = world.record("late").estimate
    assert estimate is not None
    assert "it is not known when default/first will end, and this job needs what it holds" == estimate.unknown


def test_a_job_that_gets_its_place_has_no_estimate() -> None:
    """It starts."""
    world, running = full(minutes=60)
    world.submit("late", 2, 8)
    running.settle()
    estimated(running, Estimator(lambda: 0.0))
    running.settle()
    world.delete("mpijobs", "uid-first")
    running.settle()
    assert (Stage.CONFIRMED, None) == (world.record("late").stage, world.record("late").estimate)


def test_what_was_written_stays_until_there_is_a_newer_estimate() -> None:
    """A controller that has just taken over has made none."""
    world, running = full(minutes=60)
    world.submit("late", 2, 8)
    running.settle()
    estimated(running, Estimator(lambda: 0.0))
    running.settle()
    written = world.record("late")
    world.submit("later", 1, 8)
    successor = controller(world)
    successor.settle()
    assert written == world.record("late")


def test_estimates_are_for_the_first_jobs_of_the_queue() -> None:
    """Nobody knows what those far behind wait for, and the others' estimates would take long."""
    world, running = full(minutes=60)
    for at in range(MOST_AHEAD + 2):
        world.submit(f"late-{at}", 4, 8)
    running.settle()
    assert [f"uid-late-{at}" for at in range(MOST_AHEAD)] == list(running.reconciler.waiting)
    estimator = Estimator(lambda: 0.0)
    steps = estimated(running, estimator)
    assert set(running.reconciler.waiting) == set(estimator.known)
    # Three courses of things, in each of which a job is planned once or more.
    assert steps >= 3 * MOST_AHEAD


def test_a_decision_may_come_between_two_steps() -> None:
    """A round stays with the moment at which it began, whatever changes."""
    world, running = full(minutes=60)
    world.submit("late", 2, 8)
    running.settle()
    estimator = Estimator(lambda: 0.0)
    prospect = running.reconciler.prospect(estimator.plan)
    assert prospect is not None
    estimator.begin(prospect, jobs_of(running.world))
    assert estimator.step()
    world.delete("mpijobs", "uid-first")
    running.settle()
    while estimator.step():
        pass
    assert ("default/first",) == estimator.known["uid-late"].after


def test_rounds_take_a_small_share_of_the_time() -> None:
    """The next one begins once twenty times as much time has passed as the last one took."""
    world, running = full(minutes=60)
    world.submit("late", 2, 8)
    running.settle()
    seconds = [0.0]

    def clock() -> float:
        # A quarter of a second for each step, by this clock.
        seconds[0] += 0.125
        return seconds[0]

    estimator, waiting = Estimator(clock), running.reconciler.waiting
    assert estimator.is_due(waiting)
    taken = 0.125 * estimated(running, estimator)
    assert {"uid-late"} == set(estimator.known)
    began, seconds[0] = seconds[0], seconds[0] + 15 * taken
    assert not estimator.is_due(waiting)
    seconds[0] = began + max(10.0, 20 * taken)
    assert estimator.is_due(waiting)
    assert not estimator.is_due([])


def test_a_round_ends_after_some_seconds_with_what_it_has() -> None:
    """The jobs at the head of the queue; those behind them have no estimate."""
    world, running = full(minutes=60)
    for at in range(MOST_AHEAD):
        world.submit(f"late-{at}", 4, 8)
    running.settle()
    seconds = [0.0]

    def clock() -> float:
        seconds[0] += 0.25
        return seconds[0]

    estimator = Estimator(clock)
    estimated(running, estimator)
    assert "uid-late-0" in estimator.known
    assert len(estimator.known) < MOST_AHEAD


@pytest.mark.parametrize(
    ("namespace", "after", "basis"),
    [
        (
            "default",
            ("default/one", "a job of another namespace"),
            ("its deadline", "3 earlier runs"),
        ),
        (
            "other",
            ("a job of another namespace", "other/bert-7"),
            ("its deadline", "3 earlier runs of bert, of any size"),
        ),
    ],
)
def test_jobs_of_other_namespaces_are_not_named(
    namespace: str, after: tuple[str, ...], basis: tuple[str, ...]
) -> None:
    """Neither they nor what their like are called."""
    seen = seen_from(namespace, KNOWN)
    assert (after, basis) == (seen.after, seen.basis)


@pytest.mark.parametrize(
    ("endless", "said"),
    [
        (
            ("default/one", "other/two", "third/three"),
            "it is not known when default/one and 2 jobs of other namespaces will end, and this job needs what they hold",
        ),
        (
            ("other/two",),
            "it is not known when 1 job of other namespaces will end, and this job needs what it holds",
        ),
        (("default/one",), "it is not known when default/one will end, and this job needs what it holds"),
    ],
)
def test_without_an_estimate_those_in_the_way_are_counted(endless: tuple[str, ...], said: str) -> None:
    """Where they are of other namespaces."""
    assert (
        said == seen_from("default", StartEstimate(unknown="as an admin reads it", endless=endless)).unknown
    )


@pytest.mark.parametrize(
    ("estimate", "written", "expected"),
    [
        (KNOWN, KNOWN, False),
        (in_minutes(5), KNOWN, False),
        (in_minutes(10), KNOWN, True),
        (in_minutes(-10), KNOWN, True),
        (replace(KNOWN, basis=("its deadline", "4 earlier runs of bert")), KNOWN, True),
        (KNOWN, None, True),
        (None, KNOWN, True),
        (StartEstimate(unknown="why"), KNOWN, True),
        (StartEstimate(unknown="why"), StartEstimate(unknown="why"), False),
        (None, None, False),
    ],
)
def test_an_estimate_is_written_anew_where_it_says_something_else(
    estimate: StartEstimate | None, written: StartEstimate | None, expected: bool
) -> None:
    """Some minutes in an hour are nothing new, and each word is a write."""
    assert expected is is_news(estimate, written, START)
