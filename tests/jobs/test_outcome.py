"""A submitter who stays learns how the job ends, whatever the server does meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from arena_topo.errors import ExitCode, JobFailed, NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.wait import followed_to_the_end, wait_for_goal
from arena_topo.kube.session import Session
from arena_topo.model.job_view import Goal, JobStatus
from arena_topo.model.objects import Object
from tests.fakes import Answer, Call, FakeTransport, Script, missing, session
from tests.jobs.logs.scripted import LAUNCHER, Cluster, launcher, line
from tests.objects import condition, mpijob, pod

WORKERS = [pod(f"job-worker-{index}") for index in range(4)]
RUNNING = [launcher(), *WORKERS]
UNSERVED_JOB = missing("job")


def job_that_ended(kind: str, message: str = "") -> Object:
    """Return the job with its last condition."""
    return mpijob("job", status={"conditions": [condition(kind, message=message)]})


def in_stages(*jobs: Any, pods: list[Any]) -> Script:
    """Return a cluster whose job is another one at each look, the last one from then on."""
    left = list(jobs)

    def answer(call: Call) -> Answer:
        if call.path.endswith("/pods"):
            return Answer(body={"items": pods})
        stage = left.pop(0) if len(left) > 1 else left[0]
        return stage if isinstance(stage, Answer) else Answer(body=stage)

    return answer


def waited(script: Script, goal: Goal, **limits: Any) -> tuple[JobStatus, list[str]]:
    """Return how the wait ended, and what it said."""
    said: list[str] = []
    waiter = Waiter(said.append, sleep=lambda _: None)
    return wait_for_goal(opened(script), "job", "uid-job", goal, waiter, **limits).status, said


def opened(script: Script) -> Session:
    """Return a session with a cluster."""
    return session(script)[0]


def test_a_job_that_runs_has_reached_that_goal() -> None:
    """It is not waited for its end."""
    assert JobStatus.RUNNING is waited(in_stages(mpijob("job"), pods=RUNNING), Goal.RUNNING)[0]


@pytest.mark.parametrize("goal", [Goal.RUNNING, Goal.SUCCEEDED])
def test_a_job_that_has_succeeded_has_reached_every_goal(goal: Goal) -> None:
    """It may end between two looks; until then each change of its state is told once."""
    job = mpijob("job")
    status, said = waited(in_stages(job, job, job, job_that_ended("Succeeded"), pods=WORKERS), goal)

    assert JobStatus.SUCCEEDED is status
    assert 1 == len(said)


def test_a_failed_job_is_an_error_of_its_own() -> None:
    """With the operator's message, and the exit code that says so."""
    with pytest.raises(JobFailed, match="the job job failed: ranks died") as caught:
        waited(in_stages(mpijob("job"), job_that_ended("Failed", "ranks died"), pods=[]), Goal.RUNNING)
    assert ExitCode.JOB_FAILED is caught.value.exit_code
    assert "arena-topo events job shows what is left" in caught.value.hint


@pytest.mark.parametrize("end", [UNSERVED_JOB, mpijob("job") | {"metadata": mpijob("x")["metadata"]}])
def test_a_job_that_is_deleted_or_replaced_is_missing(end: Any) -> None:
    """Another job under the name is not waited for."""
    with pytest.raises(NotFound, match="was deleted before it was seen to end"):
        waited(in_stages(mpijob("job"), end, pods=[]), Goal.SUCCEEDED)


def test_a_server_that_restarts_is_waited_for() -> None:
    """A wait of hours must not end with a 503, in the reading of the job or of its pods."""
    down = Answer(503, {"kind": "Status", "message": "apiserver is shutting down"})
    script = in_stages(mpijob("job"), down, down, job_that_ended("Succeeded"), pods=[])
    said: list[str] = []
    opened = Session(
        FakeTransport(script), namespace="default", reconnect=300, notify=said.append, sleep=lambda _: None
    )
    waiter = Waiter(lambda _: None, sleep=lambda _: None)

    assert JobStatus.SUCCEEDED is wait_for_goal(opened, "job", "uid-job", Goal.SUCCEEDED, waiter).status
    assert [
        "apiserver is shutting down; trying again for up to 5m",
        "the API server answers again",
    ] == said


def test_the_time_is_limited() -> None:
    """The job is left as it is."""
    seconds = iter([0.0, 5.0, 31.0])
    with pytest.raises(WaitTimeout, match="the job job did not end within 30s"):
        waited(in_stages(mpijob("job"), pods=[]), Goal.SUCCEEDED, timeout=30.0, clock=lambda: next(seconds))


def followed(cluster: Callable[[Call], Answer]) -> list[bytes]:
    """Return the lines that following the job to its end yields."""
    waiter = Waiter(lambda _: None, sleep=lambda _: None)
    return list(followed_to_the_end(opened(cluster), "job", "uid-job", waiter))


class Ending(Cluster):
    """A job that ends once its launcher's log was read."""

    def __init__(self, end: Object, **script: Any) -> None:
        super().__init__(**script)
        self.end = end

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        if call.path.endswith("/job") and not self.streams:
            return Answer(body=self.end)
        return super().__call__(call)


def test_the_log_is_followed_until_the_job_has_ended() -> None:
    """Every line, and then the end."""
    script = {"streams": [[line(1, "a"), line(2, "b")], []], "looks": [launcher(ended=0)] * 2}
    assert [b"a\n", b"b\n"] == followed(Ending(job_that_ended("Succeeded"), **script))


def test_a_followed_job_that_fails_fails_the_command() -> None:
    """After its last line."""
    with pytest.raises(JobFailed, match="the job job failed"):
        followed(
            Ending(job_that_ended("Failed"), streams=[[line(1, "a")], []], looks=[launcher(ended=1)] * 2)
        )


def test_a_job_that_ended_without_a_log_still_says_how() -> None:
    """Its pods may be gone before the first look."""
    with pytest.raises(JobFailed, match="the job job failed: too slow"):
        followed(in_stages(job_that_ended("Failed", "too slow"), pods=[]))
    assert [] == followed(in_stages(job_that_ended("Succeeded"), pods=[]))


def test_a_launcher_that_is_tried_again_is_followed_too() -> None:
    """The operator makes another pod for each try of --retry."""

    def second(call: Call) -> bool:
        return f"{LAUNCHER}-2" in call.path

    again = launcher(ended=0) | {"metadata": {**launcher()["metadata"], "name": f"{LAUNCHER}-2", "uid": "2"}}
    calls: list[str] = []

    def answer(call: Call) -> Answer:
        if call.path.endswith("/log"):
            calls.append(call.path)
            return Answer(lines=[line(len(calls), "second" if second(call) else "first")])
        if "/pods/" in call.path:
            return Answer(body=again if second(call) else launcher(ended=1))
        if call.path.endswith("/pods"):
            return Answer(body={"items": [again] if calls else [launcher(ended=1)]})
        return Answer(
            body=job_that_ended("Succeeded") if any("-2" in path for path in calls) else mpijob("job")
        )

    assert [b"first\n", b"second\n"] == list(dict.fromkeys(followed(answer)))
