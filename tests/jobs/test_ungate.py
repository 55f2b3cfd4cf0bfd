"""Gated workers are released to their places: each once, whatever happens between."""

import pytest

from arena_topo.errors import WaitTimeout
from arena_topo.jobs.enforce import Released, ungate_as_created, ungate_existing
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, Call, Script, missing, refusal, session
from tests.objects import mpijob, pod

GATE = {"name": "arena-topo.dev/gang"}
OTHER = {"name": "example.com/other"}
RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "n0"), Slot(1, "n1")),
    enforcement=Enforcement.GATES,
    hostnames={"n1": "host-1"},
)
SERVED = ServedJob(ApiVersion.V2BETA1, mpijob("job"))


def gated(index: int, *others: Object) -> Object:
    """Return a worker that waits at our gate."""
    made = pod(f"job-worker-{index}", phase="Pending", node="")
    made["metadata"]["resourceVersion"] = "7"
    made["spec"] |= {"nodeName": None, "schedulingGates": [GATE, *others]}
    return made


def server(*pods: Object, answers: list[Answer] | None = None) -> Script:
    """Return a script that lists *pods*, and answers patches in turn, or well."""
    left = list(answers or [])

    def answer(call: Call) -> Answer:
        if call.method == "PATCH":
            changed = Answer(body={"metadata": {"name": call.path.rpartition("/")[2]}})
            return left.pop(0) if left else changed
        if call.path.endswith("/pods"):
            return Answer(body={"items": list(pods)})
        return Answer(body=next(each for each in pods if call.path.endswith(each["metadata"]["name"])))

    return answer


def test_each_gated_worker_gets_its_node_and_loses_our_gate() -> None:
    """In one patch that holds for the state that was read; gates of others stay."""
    opened, transport = session(server(gated(0), gated(1, OTHER)))
    assert Released(now=2, before=0, missing=0) == ungate_existing(opened, SERVED, RECORD)
    first, second = (call.body for call in transport.calls if call.method == "PATCH")
    assert {"nodeSelector": {"kubernetes.io/hostname": "n0"}, "schedulingGates": []} == first["spec"]
    assert {"nodeSelector": {"kubernetes.io/hostname": "host-1"}, "schedulingGates": [OTHER]} == second[
        "spec"
    ]
    assert "7" == first["metadata"]["resourceVersion"]


def test_workers_that_run_are_left_alone() -> None:
    """And those that do not exist yet are counted."""
    opened, transport = session(server(pod("job-worker-0")))
    assert Released(now=0, before=1, missing=1) == ungate_existing(opened, SERVED, RECORD)
    assert {"GET"} == {call.method for call in transport.calls}


def test_a_change_in_between_is_no_harm() -> None:
    """The worker is read again, and released as it is then."""
    opened, transport = session(server(gated(0), gated(1), answers=[refusal(409, "Conflict")]))
    ungate_existing(opened, SERVED, RECORD)
    assert 3 == sum(call.method == "PATCH" for call in transport.calls)


def test_a_worker_that_vanishes_is_recreated_by_its_operator() -> None:
    """It is not waited for here."""
    opened, _ = session(server(gated(0), gated(1), answers=[missing("job-worker-0")]))
    assert 2 == ungate_existing(opened, SERVED, RECORD).now


def test_workers_that_never_come_are_told() -> None:
    """With what to look at, and how to continue."""
    opened, _ = session(server(gated(0)))
    told: list[str] = []
    times = iter([0.0, 1.0, 200.0])
    waiter = Waiter(told.append, sleep=lambda _: None)
    with pytest.raises(WaitTimeout, match="1 of 2 workers were not created within 2m") as late:
        ungate_as_created(opened, SERVED, RECORD, waiter, clock=lambda: next(times))
    assert "arena-topo resume job" in late.value.hint
    assert ["waiting for the Kubeflow MPI operator to create 1 of 2 workers"] == told
