"""Planned against actual: where the workers are, and how far a plan got."""

import pytest

from arena_topo.jobs.status.plan_drift import plan_view
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import Enforcement, PlanRecord, Stage, encode
from tests.objects import mpijob, pod

RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "n0"), Slot(1, "n1")),
    enforcement=Enforcement.GATES,
    hostnames={"n1": "host-1"},
)


def job(record: PlanRecord | str) -> Object:
    """Return the job with a plan."""
    made = mpijob("job")
    made["metadata"]["annotations"] = {PLAN: record if isinstance(record, str) else encode(record)}
    return made


@pytest.mark.parametrize(
    ("record", "nodes", "message", "moved"),
    [
        (RECORD, ("n0", "n1"), "2 of 2 workers where planned (gates)", ()),
        (RECORD, ("n0",), "1 of 2 workers where planned (gates)", ()),
        (
            RECORD,
            ("n0", "n9"),
            "1 of 2 workers where planned (gates); elsewhere: job-worker-1",
            ("job-worker-1",),
        ),
        (
            PlanRecord(stage=Stage.WAITING, waiting_reason="full", position=2),
            (),
            "waits for a placement: full; number 2 in the controller's queue",
            (),
        ),
        (
            PlanRecord(stage=Stage.WAITING, waiting_reason="full"),
            (),
            "waits for a placement: full; retry with: arena-topo resume job",
            (),
        ),
        (
            PlanRecord(stage=Stage.PROPOSED),
            (),
            "submission was interrupted; continue with: arena-topo resume job",
            (),
        ),
        (
            "{}",
            (),
            "the annotation arena-topo.dev/plan cannot be read: it is of version None, and this tool knows 1",
            (),
        ),
    ],
    ids=["there", "not yet", "moved", "queued", "waiting", "interrupted", "unreadable"],
)
def test_planned_is_told_against_actual(
    record: PlanRecord | str, nodes: tuple[str, ...], message: str, moved: tuple[str, ...]
) -> None:
    """In one line, with the workers that are elsewhere."""
    pods = [pod(f"job-worker-{at}", node=node) for at, node in enumerate(nodes)]
    view = plan_view(job(record), pods)
    assert view is not None
    assert (message, moved) == (view.message, view.moved)


@pytest.mark.parametrize(
    ("record", "nodes", "message"),
    [
        (RECORD, (), "2 workers on 2 nodes (gates); the job has ended"),
        (RECORD, ("n0", "n1"), "2 of 2 workers where planned (gates)"),
        (PlanRecord(stage=Stage.WAITING, waiting_reason="full"), (), "the job ended without a place"),
    ],
    ids=["pods gone", "pods kept", "never placed"],
)
def test_an_ended_job_is_not_said_to_lack_its_workers(
    record: PlanRecord, nodes: tuple[str, ...], message: str
) -> None:
    """The operator cleans pods up, and there is nothing left to resume."""
    made = job(record)
    made["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    view = plan_view(made, [pod(f"job-worker-{at}", node=node) for at, node in enumerate(nodes)])

    assert view is not None
    assert message == view.message


def test_a_job_without_a_plan_tells_none() -> None:
    """As those of other tools."""
    assert None is plan_view(mpijob("job"), [])


def test_a_worker_behind_the_gate_is_told_with_what_continues() -> None:
    """A recreated worker waits there, and a retried launcher waits for it."""
    gated = pod("job-worker-1", node="")
    gated["spec"] |= {"nodeName": None, "schedulingGates": [{"name": "arena-topo.dev/gang"}]}
    view = plan_view(job(RECORD), [pod("job-worker-0", node="n0"), gated])

    assert view is not None
    assert (
        "1 of 2 workers where planned (gates); 1 worker waits at the scheduling gate, "
        "continue with: arena-topo resume job"
    ) == view.message
