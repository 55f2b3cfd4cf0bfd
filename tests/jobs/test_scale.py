"""The size of a job changes in one write, and what could not be finished is taken back."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError, Conflict, DoesNotFit, UsageError
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.reserve import WaitPolicy
from arena_topo.jobs.scale import Leave, Size, planned_scaling, scale_job
from arena_topo.kinds.training_operator import PYTORCHJOB
from arena_topo.kube.session import Session
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, decode
from tests.fakes import Answer, Call, FakeTransport, refusal, session, unserved
from tests.kinds.jobs import training_job
from tests.objects import mpijob, ready_node, with_plan

AT_ONCE = WaitPolicy(waiter=Waiter(lambda _: None, sleep=lambda _: None), clock=time.monotonic)
NO_GRACE = Leave(grace=0, report=lambda _: None)
REPLICAS = "/spec/pytorchReplicaSpecs/Worker/replicas"


def elastic(workers: int, *, planned: bool) -> Object:
    """Return an elastic PyTorchJob of one to six workers, on node a where it is *planned*."""
    job = training_job(PYTORCHJOB, {"Worker": workers})
    job["metadata"] |= {"creationTimestamp": "2026-11-22T00:00:00Z"}
    job["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 6}
    slots = tuple(Slot(worker, "a") for worker in range(workers))
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=Enforcement.ADMISSION)
    job["metadata"]["annotations"] = {}
    return with_plan(job, record) if planned else job


def node(pods: int) -> Object:
    """Return node a, which has room for a number of pods."""
    return ready_node("a", {"cpu": "64", "memory": "64Gi", "pods": str(pods)})


def after(job: Object, call: Call) -> Object:
    """Return *job* with the plan that *call* writes, if it does."""
    for operation in call.body or ():
        if operation["op"] == "replace" and operation["path"].endswith(PLAN.replace("/", "~1")):
            job["metadata"]["annotations"][PLAN] = operation["value"]
    return job


def opened(
    job: Object, *, pods: int = 10, patched: Answer | None = None, controller: bool = False
) -> tuple[Session, FakeTransport]:
    """Return a session with a cluster that has *job* and one
    node; a patch is carried out as far as plans need it.
    """
    lists = {"nodes": [node(pods)], "pods": [], "pytorchjobs": [], "resourcequotas": []}

    def answer(call: Call) -> Answer:
        plural = call.path.rpartition("/")[2]
        if call.path.endswith("/pytorchjobs/job"):
            return patched if patched and call.method == "PATCH" else Answer(body=after(job, call))
        if controller and call.path.startswith("/apis/coordination.k8s.io"):
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            return Answer(body={"spec": {"holderIdentity": "replica", "renewTime": now}})
        if call.path == "/apis":
            return Answer(body={"groups": []})
        return Answer(body={"items": lists[plural]}) if plural in lists else unserved()

    found, transport = session(answer)
    return found.of_kinds((PYTORCHJOB,)), transport


def patches(transport: FakeTransport) -> list[list[Any]]:
    """Return the operations of each patch of the job that was sent."""
    return [call.body for call in transport.calls if call.method == "PATCH"]


def written(operations: list[Any]) -> dict[str, Any]:
    """Return what *operations* write, and where."""
    return {step["path"]: step["value"] for step in operations if step["op"] != "test"}


def test_pins_and_number_change_in_one_write_that_confirms_the_places() -> None:
    """The write before it proposes the places, and changes neither."""
    connection, transport = opened(elastic(2, planned=True))
    scaling = scale_job(connection, "job", Size(4), AT_ONCE, NO_GRACE)

    proposal, confirmation = patches(transport)
    (text,) = written(proposal).values()
    assert (Stage.PROPOSED, 4) == (decode(text).stage, len(decode(text).slots))
    wrote = written(confirmation)
    assert 4 == wrote[REPLICAS]
    template = wrote["/spec/pytorchReplicaSpecs/Worker/template"]
    assert "0:a,4:" == template["metadata"]["annotations"]["arena-topo.dev/pin-nodes"]
    assert {"op": "test", "path": REPLICAS, "value": 2} in confirmation
    assert (2, 4, ("job-worker-2", "job-worker-3")) == (scaling.before, scaling.after, scaling.pods)


def test_fewer_workers_lose_their_pins_in_the_same_write() -> None:
    """Those with the highest indices."""
    connection, transport = opened(elastic(4, planned=True))
    scaling = scale_job(connection, "job", Size(1), AT_ONCE, NO_GRACE)

    (operations,) = patches(transport)
    wrote = written(operations)
    assert 1 == wrote[REPLICAS]
    template = wrote["/spec/pytorchReplicaSpecs/Worker/template"]
    assert "0:a,1:" == template["metadata"]["annotations"]["arena-topo.dev/pin-nodes"]
    assert ("job-worker-1", "job-worker-2", "job-worker-3") == scaling.pods


ASKED = {"policy": "best-effort", "grow": "true"}
FIXED = {"policy": "best-effort"}


def elastic_with_options(workers: int, options: dict[str, str]) -> Object:
    """Return an elastic job with a plan that was asked for with *options*."""
    job = elastic(workers, planned=True)
    record = decode(job["metadata"]["annotations"][PLAN])
    return with_plan(job, replace(record, requested_options=options))


@pytest.mark.parametrize("before", [ASKED, FIXED], ids=["grows", "of a fixed size"])
@pytest.mark.parametrize(
    ("size", "after"),
    [(Size(4), FIXED), (Size(1), FIXED), (Size(None), ASKED)],
    ids=["more", "fewer", "as many as fit"],
)
def test_what_was_asked_last_says_whether_the_controller_gives_it_more(
    size: Size, before: dict[str, str], after: dict[str, str]
) -> None:
    """It would change a number that a user gave; a job that was shrunk grows again once its user says so."""
    connection, transport = opened(elastic_with_options(2, before))
    scale_job(connection, "job", size, AT_ONCE, NO_GRACE)

    plan = written(patches(transport)[-1])["/metadata/annotations/arena-topo.dev~1plan"]
    assert after == decode(plan).requested_options


@pytest.mark.parametrize(
    ("workers", "size", "before", "after"), [(2, Size(2), ASKED, FIXED), (6, Size(None), FIXED, ASKED)]
)
def test_it_says_so_in_the_size_that_it_has_too(
    workers: int, size: Size, before: dict[str, str], after: dict[str, str]
) -> None:
    """Nothing but the plan is written, and of the plan nothing else is changed."""
    job = elastic_with_options(workers, before)
    record = decode(job["metadata"]["annotations"][PLAN])
    connection, transport = opened(job)
    scaling = scale_job(connection, "job", size, AT_ONCE, NO_GRACE)

    assert scaling.before == scaling.after == workers
    (operations,) = patches(transport)
    (text,) = written(operations).values()
    assert replace(record, requested_options=after) == decode(text)


@pytest.mark.parametrize(
    ("runs", "hint"), [(True, "the controller gives it more"), (False, "retry when jobs have ended")]
)
def test_without_room_a_job_grows_later_where_the_controller_runs(runs: bool, hint: str) -> None:
    """The node is full: the job stays as it is, and its plan says that it may have more."""
    connection, transport = opened(elastic_with_options(2, FIXED), pods=2, controller=runs)
    with pytest.raises(DoesNotFit) as caught:
        scale_job(connection, "job", Size(None), AT_ONCE, NO_GRACE)

    assert hint in caught.value.hint
    (operations,) = patches(transport)
    (text,) = written(operations).values()
    assert (2, ASKED) == (len(decode(text).slots), decode(text).requested_options)


def test_whoever_loses_the_room_to_an_older_job_is_told_so_too() -> None:
    """It took the place when more workers were proposed: the
    proposal is taken back in the write that asks for more later.
    """
    older = elastic(4, planned=True)
    older["metadata"] |= {"name": "older", "uid": "older", "creationTimestamp": "2026-11-21T00:00:00Z"}
    connection, transport = opened(elastic_with_options(2, FIXED), pods=4)
    answered = transport.script

    def overtaken(call: Call) -> Answer:
        if call.path.endswith("/pytorchjobs") and patches(transport):
            return Answer(body={"items": [older]})
        return answered(call)

    transport.script = overtaken
    with pytest.raises(DoesNotFit):
        scale_job(connection, "job", Size(None), AT_ONCE, NO_GRACE)

    proposal, withdrawal = [
        decode(written(operations)["/metadata/annotations/arena-topo.dev~1plan"])
        for operations in patches(transport)
    ]
    assert (Stage.PROPOSED, 4) == (proposal.stage, len(proposal.slots))
    assert (Stage.CONFIRMED, 2, ASKED) == (
        withdrawal.stage,
        len(withdrawal.slots),
        withdrawal.requested_options,
    )


@pytest.mark.parametrize(("size", "number"), [(Size(5), 5), (Size(None), 6), (Size(2), 2)])
def test_without_a_plan_the_number_alone_changes(size: Size, number: int) -> None:
    """Its scheduler places what comes."""
    connection, transport = opened(elastic(3, planned=False))
    scaling = scale_job(connection, "job", size, AT_ONCE, NO_GRACE)
    (operations,) = patches(transport)
    assert {REPLICAS: number} == written(operations)
    assert scaling.change is None


def test_as_many_as_there_is_room_for() -> None:
    """The node holds four pods; two of the job's own are not shown as running, and keep their places."""
    connection, transport = opened(elastic(2, planned=True), pods=4)
    assert 4 == scale_job(connection, "job", Size(None), AT_ONCE, NO_GRACE).after
    assert 4 == written(patches(transport)[-1])[REPLICAS]


@pytest.mark.parametrize("size", [Size(3), Size(None), Size(1)])
def test_a_plan_of_it_changes_nothing(size: Size) -> None:
    """More, as many as there is room for, and fewer."""
    connection, transport = opened(elastic(2, planned=True))
    assert planned_scaling(connection, "job", size).change
    assert [] == patches(transport)


def test_the_size_that_it_has_changes_nothing() -> None:
    """And is no error, as with kubectl scale."""
    connection, transport = opened(elastic(2, planned=True))
    scaling = scale_job(connection, "job", Size(2), AT_ONCE, NO_GRACE)
    assert ([], 2, 2) == (patches(transport), scaling.before, scaling.after)


def test_two_who_scale_at_once_do_not_write_over_each_other() -> None:
    """The number is tested in the write that changes it."""
    connection, _ = opened(elastic(2, planned=False), patched=refusal(422, "Invalid", "the test failed"))
    with pytest.raises(Conflict, match="the test failed"):
        scale_job(connection, "job", Size(3), AT_ONCE, NO_GRACE)


def test_a_proposal_that_was_not_confirmed_is_taken_back() -> None:
    """Whatever stopped it: the job has the plan that it had."""
    job = elastic(2, planned=True)
    before = decode(job["metadata"]["annotations"][PLAN])
    connection, transport = opened(job)
    answered = transport.script

    def breaking(call: Call) -> Answer:
        if call.method == "PATCH" and any(step["path"] == REPLICAS for step in call.body):
            return refusal(403, "Forbidden", "no")
        return answered(call)

    transport.script = breaking
    with pytest.raises(ArenaTopoError, match="no"):
        scale_job(connection, "job", Size(4), AT_ONCE, NO_GRACE)
    assert before == decode(job["metadata"]["annotations"][PLAN])


def test_a_framework_has_its_time_before_workers_leave() -> None:
    """The list is written, then comes the grace, and then the number."""
    job = mpijob("job", workers=3)
    job["metadata"]["annotations"] = {"arena-topo.dev/elastic": "1:4"}
    events: list[str] = []

    def answer(call: Call) -> Answer:
        if call.method == "PATCH":
            events.append(call.path.rpartition("/")[2])
        return Answer(body=job) if "/v2beta1/" in call.path or "configmaps" in call.path else unserved()

    wait = WaitPolicy(
        waiter=Waiter(lambda _: None, sleep=lambda seconds: events.append(f"{seconds:g} s")),
        clock=time.monotonic,
    )
    scale_job(session(answer)[0], "job", Size(2), wait, Leave(grace=90.0, report=lambda _: None))
    assert ["job-elastic", "90 s", "job"] == events


def test_a_job_of_two_billion_pods_is_not_scaled() -> None:
    """Anybody may write that number: the names of the pods that would leave are not listed."""
    job = elastic(2, planned=False)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 2**31 - 1

    with pytest.raises(UsageError, match="asks for 2,147,483,647 pods, and at most 10,000 are scaled"):
        planned_scaling(opened(job)[0], "job", Size(2))
