"""What was decided is sent, for as long as the Lease is held."""

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime

import pytest

from arena_topo.controller.objects import (
    Action,
    DeletePod,
    MoveWorkers,
    Notice,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
    trimmed_job,
)
from arena_topo.controller.run import Failure, Sender, carry_out
from arena_topo.errors import Conflict
from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.plan_on_job import Pins, with_pins
from arena_topo.model.keys import MOVES
from arena_topo.model.moves import Move, moves_of, with_move
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, encode
from tests.fakes import Answer, refusal, session
from tests.objects import mpijob

ANNOTATIONS = "/metadata/annotations/arena-topo.dev~1"
PATCH = PatchStatus("/apis/kueue.x-k8s.io/v1beta2/namespaces/team/workloads/w/status", "uid", [])


def sent(answer: Answer, may_write: Callable[[], bool], *actions: Action) -> tuple[list[str], list[Failure]]:
    """Return the methods of the requests by which *actions* were sent, and what went wrong."""
    opened, transport = session(lambda _: answer)
    sender = Sender([opened], may_write)
    sender.start()
    for action in actions:
        sender.send(action)
    sender.stop()
    return [call.method for call in transport.calls], sender.failures()


def test_what_is_decided_is_sent_before_the_end() -> None:
    """All of it, and nothing is reported then."""
    assert (["PATCH", "PATCH"], []) == sent(
        Answer(body={"metadata": {"name": "w"}}), lambda: True, PATCH, PATCH
    )


def test_nothing_is_sent_without_the_lease() -> None:
    """The reconciler learns of it."""
    assert ([], [Failure(PATCH, "the Lease has expired")]) == sent(Answer(), lambda: False, PATCH)


def test_what_the_server_refuses_is_reported() -> None:
    """In its own words, and the next action is sent anyway."""
    methods, failures = sent(refusal(422, "Invalid", "no such entry"), lambda: True, PATCH, PATCH)
    assert ["PATCH", "PATCH"] == methods
    assert [PATCH, PATCH] == [failure.action for failure in failures]
    assert "no such entry" in failures[0].message


def test_an_object_that_nobody_can_read_ends_no_thread() -> None:
    """One user's pod must not stop what all others wait for."""
    garbled = ReleaseWorker({"metadata": {}}, "node")
    methods, failures = sent(Answer(body={"metadata": {"name": "w"}}), lambda: True, garbled, PATCH)
    assert ["PATCH"] == methods
    assert [(garbled, KeyError)] == [(failure.action, type(failure.fault)) for failure in failures]


def test_the_write_that_starts_a_job_puts_all_of_its_templates_back() -> None:
    """Though the controller keeps a part of them: the job is read
    again, and one that somebody else has planned is left to him.
    """
    whole = with_pins(mpijob("job", workers=1), suspended_with_plan(PlanRecord(stage=Stage.PROPOSED)))
    worker = whole["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    opened, transport = session(lambda _: Answer(body=whole))
    record = PlanRecord(stage=Stage.CONFIRMED, slots=(Slot(0, "a"),), enforcement=Enforcement.ADMISSION)
    carry_out(opened, WritePlan(trimmed_job(ApiVersion.V2BETA1, whole), record))
    read, write = transport.calls

    assert ("GET", "PATCH") == (read.method, write.method)
    (template,) = [each["value"] for each in write.body if each["path"].endswith("/Worker/template")]
    assert worker == template["spec"]
    assert "0:a,1:" == template["metadata"]["annotations"]["arena-topo.dev/pin-nodes"]
    other = trimmed_job(ApiVersion.V2BETA1, with_pins(whole, Pins(plan="{}")))
    with pytest.raises(Conflict, match="somebody else is placing the job job"):
        carry_out(opened, WritePlan(other, record))


@pytest.mark.parametrize(
    ("again", "first_node"), [(False, "b"), (True, "a")], ids=["moved since", "never confirmed"]
)
def test_the_write_that_proposes_a_new_node_notes_why(again: bool, first_node: str) -> None:
    """Both or neither: a note that somebody else wrote since it was read lets the write fail."""
    job = with_pins(mpijob("job", workers=2), suspended_with_plan(PlanRecord(stage=Stage.PROPOSED)))
    at = datetime(2026, 5, 1, tzinfo=UTC)
    old = with_move(None, Move(at, "a is gone", {1: ("a", "b")}))
    job["metadata"]["annotations"][MOVES] = old
    opened, transport = session(lambda _: Answer(body=job))
    move = Move(at, "b is taken", {1: ("b", "c")})
    record = PlanRecord(stage=Stage.PROPOSED, slots=(Slot(0, "x"), Slot(1, "c")))
    carry_out(opened, WritePlan(trimmed_job(ApiVersion.V2BETA1, job), record, move=move, again=again))
    _, write = transport.calls

    values = {(each["op"], each["path"]): each["value"] for each in write.body}
    assert encode(record) == values["replace", f"{ANNOTATIONS}plan"]
    assert old == values["test", f"{ANNOTATIONS}moves"]
    noted = moves_of({"metadata": {"annotations": {MOVES: values["add", f"{ANNOTATIONS}moves"]}}})
    assert {1: (first_node, "c")} == noted[-1].workers


def test_an_object_without_a_namespace_has_its_event_where_such_events_are() -> None:
    """The API server takes it nowhere else."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "", "uid": "u"}}
    opened, transport = session(lambda _: Answer(body={}))
    carry_out(opened, Notice(node, "InternalError", "m"))
    (call,) = transport.calls
    assert "/api/v1/namespaces/default/events" == call.path
    assert {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"} == call.body["involvedObject"]


def test_workers_that_move_are_pinned_before_their_pods_are_deleted() -> None:
    """Of the lists only what is theirs changes; somebody else's write in between is read, and kept."""
    job = mpijob("job", workers=3)
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"annotations": {"arena-topo.dev/pin-nodes": "0:a,1:b,2:c,3:"}}
    other = deepcopy(job)
    template["metadata"]["annotations"]["arena-topo.dev/pin-nodes"] = "0:a,3:"
    answers = iter(
        [Answer(body=job), refusal(422, "Invalid", "test failed"), Answer(body=other), Answer(body=job)]
    )
    opened, transport = session(lambda _: next(answers))
    deletion = DeletePod(
        {"metadata": {"name": "job-worker-1", "namespace": "default", "uid": "u"}}, at_once=True
    )
    move = Move(datetime(2026, 11, 23, tzinfo=UTC), "b is gone", {1: ("b", "d")})
    action = MoveWorkers(job, move, {1: "d"}, pods=(deletion,))
    assert (deletion,) == carry_out(opened, action)
    first, second = (call.body for call in transport.calls if call.method == "PATCH")
    assert "0:a,1:d,2:a,3:" == first[-1]["value"]
    assert ["0:a,1:b,2:c,3:", "0:a,1:d,2:c,3:"] == [operation["value"] for operation in second[-2:]]
    opened, transport = session(lambda _: Answer(body={}))
    carry_out(opened, deletion)
    (call,) = transport.calls
    assert (0, {"uid": "u"}) == (call.body["gracePeriodSeconds"], call.body["preconditions"])


def test_a_job_that_is_not_pinned_yet_is_not_moved() -> None:
    """Kueue has admitted it and starts it in a moment: the move is tried again then."""
    opened, _ = session(lambda _: Answer(body=mpijob("job")))
    move = Move(datetime(2026, 11, 23, tzinfo=UTC), "b is gone", {1: ("b", "d")})
    with pytest.raises(Conflict, match="no pins"):
        carry_out(opened, MoveWorkers(mpijob("job"), move, {1: "d"}))
