"""Replicas that answer the check of the real Kueue, some of which die
or are stopped at any step: every job is answered once.
"""

import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Running
from tests.e2e.controller.replicas import WAYS, end, holder, reasons, replica
from tests.e2e.kueue.answer_history import Answers, answers
from tests.e2e.kueue.queues import (
    CHECK,
    KUEUE,
    check,
    create_check,
    message,
    pins,
    placed_as_pinned,
    reserved,
    set_checks,
    submit_to_queue,
    workload,
)
from tests.e2e.kueue.stopping import MOVED, Moment, Stop, has_stopped, stopping
from tests.harness.tiers import every_pair

pytestmark = pytest.mark.usefixtures("lease")


@dataclass(frozen=True, slots=True)
class Course:
    """A job ``late`` on its way through a queue, which waits for the GPUs of ``first``."""

    arena: Arena
    kube: Kube
    namespace: str
    servers: Sequence[str]

    def begin(self) -> None:
        """Have a job wait, which has its quota."""
        self.kube.patch("v1", "Node", self.servers[3], {"spec": {"unschedulable": True}})
        self.submit("first", 2)
        self.placed("first", 2)
        self.submit("late", 2)
        eventually(
            lambda: "do not fit" in message(self.kube, self.namespace, "late"), "the reason why it waits"
        )

    def submit(self, name: str, workers: int, *flags: str) -> None:
        """Submit a gang of whole servers."""
        assert 0 == submit_to_queue(self.arena, self.namespace, name, workers, 8, *flags).code

    def uids(self, name: str) -> set[str]:
        """Return the uids of the workers of a job."""
        found = pods.of_job(self.kube, self.namespace, name, "worker")
        return {pod["metadata"]["uid"] for pod in found}

    def placed(self, name: str, workers: int) -> None:
        """Wait until a job runs where it was answered."""
        placed_as_pinned(self.kube, self.namespace, name, workers)

    def free(self) -> None:
        """End the job that is in the way."""
        end(self.kube, self.namespace, "first")

    def run(self) -> None:
        """Have the job that waits run."""
        self.free()
        self.placed("late", 2)

    def withhold(self) -> None:
        """Have the job answered, and not admitted: another check has not agreed."""
        create_check(self.kube, self.namespace)
        set_checks(self.kube, self.namespace, CHECK, self.namespace)
        eventually(lambda: len(self._entries()) == 2, "the other check to be asked")
        self.free()
        eventually(
            lambda: check(self.kube, self.namespace, "late")["state"] == "Ready", "the answer of our check"
        )
        assert "" == pins(self.kube, self.namespace, "late")

    def agree(self) -> None:
        """Take the other check away."""
        set_checks(self.kube, self.namespace, CHECK)
        self.kube.delete(KUEUE, "AdmissionCheck", self.namespace)

    def lose(self) -> None:
        """Have the job run, and take the node of a worker of it."""
        self.run()
        node = self.kube.get("v1", "Pod", "late-worker-1", self.namespace)["spec"]["nodeName"]
        self.kube.patch("v1", "Node", self.servers[3], {"spec": {"unschedulable": False}})
        self.kube.patch("v1", "Node", node, {"spec": {"unschedulable": True}})
        self.kube.delete("v1", "Pod", "late-worker-1", self.namespace, gracePeriodSeconds="0")

    def go_on(self) -> None:
        """Change nothing: what has to come comes by itself."""

    def _entries(self) -> Sequence[Object]:
        status = (workload(self.kube, self.namespace, "late") or {}).get("status") or {}
        return status.get("admissionChecks") or ()


@dataclass(frozen=True, slots=True)
class Step:
    """What brings the job to a step, and what takes it on from there; ``stop`` is where the leader stops
    itself for it.
    """

    name: str
    reach: Callable[[Course], None]
    go_on: Callable[[Course], None] = Course.go_on
    stop: Stop | None = None


STEPS = [
    Step("while it waits", Course.go_on, Course.free),
    Step("before its answer is sent", Course.free, stop=Stop(Moment.DECIDED, "Ready", "late")),
    Step("once its answer is sent", Course.free, stop=Stop(Moment.SENT, "Ready", "late")),
    Step("before it is admitted", Course.withhold, Course.agree),
    Step("while it runs", Course.run),
    Step("once its node is lost", Course.lose),
    Step("once its lost worker is pinned again", Course.lose, stop=Stop(Moment.SENT, MOVED, "late")),
]
"""Each follows from the one before."""


@pytest.fixture
def course(arena: Arena, kube: Kube, servers: list[str], queued: str) -> Course:
    """Return the course of a job in a queue with quota for all servers, of which one is not to be had."""
    return Course(arena, kube, queued, servers)


def reach(course: Course, step: Step, leader: Running) -> None:
    """Bring the job to *step*."""
    course.begin()
    step.reach(course)
    if step.stop:
        eventually(lambda: has_stopped(leader), "the leader to stop")


def placed_with_another(course: Course, step: Step) -> None:
    """Have the job run, and another one next to it."""
    step.go_on(course)
    course.placed("late", 2)
    course.submit("next", 1)
    course.placed("next", 1)


def check_answers(course: Course) -> None:
    """Fail where a job was not answered once, or a node was given to two workers at any moment."""
    expected = {"first": 1, "late": 1, "next": 1}

    def found() -> Answers | None:
        # A server that is busy does not tell all that has happened in one look.
        seen = answers(course.kube, course.namespace)
        return seen if sum(seen.count.values()) >= sum(expected.values()) else None

    seen = eventually(found, f"{sum(expected.values())} answers")
    assert expected == seen.count
    assert dict.fromkeys(course.servers, 1).items() >= seen.most.items()


@pytest.mark.parametrize(
    ("step", "how"),
    every_pair(
        {step.name: step for step in STEPS}, WAYS, "each step of a replica's work with each way that it goes"
    ),
)
def test_another_replica_goes_on(course: Course, step: Step, how: signal.Signals, tmp_path: Path) -> None:
    """Where one that leads and one that waits go: each job is answered once, also one
    that loses a node, and no node is given twice.
    """
    leads = stopping(course.arena, step.stop, tmp_path) if step.stop else course.arena
    with (
        replica(leads) as leader,
        replica(course.arena, leads=False) as waiting,
        replica(course.arena, leads=False) as other,
    ):
        before = holder(course.kube)
        reach(course, step, leader)
        for each in (waiting, leader):
            each.process.send_signal(how)
        if how is signal.SIGTERM:
            leader.process.send_signal(signal.SIGCONT)
            assert [0, 0] == [each.wait().code for each in (waiting, leader)]
            # It was given up: nobody waits for its end.
            assert before != holder(course.kube)
        placed_with_another(course, step)
        other.until_said("leading", "the other one to lead")
        if how is signal.SIGSTOP:
            for each in (waiting, leader):
                each.process.send_signal(signal.SIGCONT)
            outcome = leader.wait()
            assert 1 == outcome.code
            assert "no longer the leader" in outcome.err
            waiting.process.send_signal(signal.SIGTERM)
            outcome = waiting.wait()
            assert 0 == outcome.code
            assert "leading" not in outcome.err
        check_answers(course)


def test_replicas_that_do_not_lead_are_not_missed(course: Course) -> None:
    """Whichever way they go, the leader stays the leader."""
    with ExitStack() as stack:
        stack.enter_context(replica(course.arena))
        others = [stack.enter_context(replica(course.arena, leads=False)) for _ in range(3)]
        before = holder(course.kube)
        course.begin()
        for other, how in zip(others, (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP), strict=True):
            other.process.send_signal(how)
        placed_with_another(course, STEPS[0])
        assert before == holder(course.kube)
        check_answers(course)


def test_an_answer_that_arrives_too_late_is_taken_back(course: Course, urgent: str, tmp_path: Path) -> None:
    """Another replica has given the place to an urgent job
    meanwhile: its pods run on, and the late job waits again.
    """
    leads = stopping(course.arena, Stop(Moment.DECIDED, "Ready", "late"), tmp_path)
    with ExitStack() as stack:
        leader = stack.enter_context(replica(leads))
        course.begin()
        course.free()
        eventually(lambda: has_stopped(leader), "the leader to stop")
        course.submit("urgent", 2, f"--priority={urgent}")
        # Both wait before anybody else can decide.
        for job in ("late", "urgent"):
            eventually(lambda job=job: reserved(course.kube, course.namespace, job), f"the quota of {job}")  # type: ignore[misc]  # a default that binds
        stack.enter_context(replica(course.arena, leads=False))
        course.placed("urgent", 2)
        running = course.uids("urgent")
        leader.process.send_signal(signal.SIGCONT)
        assert 1 == leader.wait().code
        eventually(
            lambda: "Moved" in reasons(course.kube, course.namespace, "late"), "the answer to be taken back"
        )
        eventually(
            lambda: (
                check(course.kube, course.namespace, "late")["state"] == "Pending"
                and "do not fit" in message(course.kube, course.namespace, "late")
            ),
            "the job to wait",
        )
        assert running == course.uids("urgent")
        end(course.kube, course.namespace, "urgent")
        course.placed("late", 2)
