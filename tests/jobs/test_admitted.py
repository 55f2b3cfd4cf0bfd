"""Waiting for a job that Kueue starts once our planner has a place for it."""

import pytest

from arena_topo.errors import NotFound, WaitTimeout
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.submit import admitted
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement
from tests.fakes import Answer, Call, missing, session
from tests.objects import condition, mpijob


def queued(*, suspended: bool = True, nodes: str = "") -> Object:
    """Return a job in a queue; *nodes* are the pins of its workers."""
    job = mpijob("job", workers=2)
    job["spec"]["runPolicy"] = {"suspend": suspended}
    if nodes:
        worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        worker["metadata"] = {"annotations": {"arena-topo.dev/pin-nodes": nodes}}
    return job


def waiting_workload(message: str = "2 workers do not fit") -> Object:
    """Return the Workload of the job, with quota and without a place."""
    entry = {"name": "arena-topo", "state": "Pending", "message": message}
    status = {"conditions": [condition("QuotaReserved")], "admissionChecks": [entry]}
    return {"metadata": {"name": "w", "uid": "w"}, "spec": {}, "status": status}


def test_it_ends_once_kueue_has_started_the_job() -> None:
    """With the places that the job was started with; until then it tells why the job waits."""
    jobs = [queued(), queued(suspended=False, nodes="0:a,1:b,2:")]
    told: list[str] = []

    def answer(call: Call) -> Answer:
        if "workloads" in call.path:
            assert "kueue.x-k8s.io/job-uid=uid-job" == call.query["labelSelector"]
            return Answer(body={"items": [waiting_workload()]})
        return Answer(body=jobs.pop(0))

    waiter = Waiter(told.append, sleep=lambda _: None)
    served = ServedJob(ApiVersion.V2BETA1, queued())
    placed = admitted(session(answer)[0], served, "v1beta2", 0.0, waiter)
    assert ["waiting for room: 2 workers do not fit"] == told
    assert ["a", "b"] == [slot.node for slot in placed.record.slots]
    assert Enforcement.ADMISSION is placed.record.enforcement


def test_after_the_time_that_the_user_waits_the_reason_is_told() -> None:
    """The job waits on in its queue."""

    def answer(call: Call) -> Answer:
        return Answer(body={"items": [waiting_workload()]} if "workloads" in call.path else queued())

    seconds = iter((0.0, 10.0))
    waiter = Waiter(lambda _: None, sleep=lambda _: None)
    served = ServedJob(ApiVersion.V2BETA1, queued())
    with pytest.raises(WaitTimeout, match="not admitted after 5 seconds: 2 workers do not fit"):
        admitted(session(answer)[0], served, "v1beta2", 5.0, waiter, clock=lambda: next(seconds))


def test_a_job_that_was_deleted_meanwhile_is_not_waited_for() -> None:
    """Nor one of the same name that somebody else has created."""
    other = {**queued(), "metadata": {**queued()["metadata"], "uid": "another"}}
    waiter = Waiter(lambda _: None, sleep=lambda _: None)
    served = ServedJob(ApiVersion.V2BETA1, queued())
    for found in (missing("mpijob"), Answer(body=other)):

        def answer(call: Call, found: Answer = found) -> Answer:
            return found if "mpijobs/job" in call.path else missing("x")

        with pytest.raises(NotFound):
            admitted(session(answer)[0], served, "v1beta2", 0.0, waiter)
