"""What was decided is sent, for as long as the Lease is held."""

from collections.abc import Callable

import pytest

from arena_topo.controller.objects import Action, Notice, PatchStatus, ReleaseWorker, WritePlan, trimmed_job
from arena_topo.controller.run import Failure, Sender, carry_out
from arena_topo.errors import Conflict
from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.plan_on_job import Pins, with_pins
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, refusal, session
from tests.objects import mpijob

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


def test_an_object_without_a_namespace_has_its_event_where_such_events_are() -> None:
    """The API server takes it nowhere else."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "", "uid": "u"}}
    opened, transport = session(lambda _: Answer(body={}))
    carry_out(opened, Notice(node, "InternalError", "m"))
    (call,) = transport.calls
    assert "/api/v1/namespaces/default/events" == call.path
    assert {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"} == call.body["involvedObject"]
