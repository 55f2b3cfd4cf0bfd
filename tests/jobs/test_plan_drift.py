"""Planned against actual: where the workers are, and how far a plan got."""

from datetime import UTC, datetime

import pytest

from arena_topo.jobs.plan_drift import plan_view
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import (
    MOST_AHEAD,
    Enforcement,
    PlanRecord,
    Slot,
    Stage,
    StartEstimate,
)
from tests.objects import mpijob, pod, with_plan

JOB = mpijob("job")
RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "n0"), Slot(1, "n1")),
    enforcement=Enforcement.GATES,
    hostnames={"n1": "host-1"},
)


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
    view = plan_view(with_plan(JOB, record), pods)
    assert view is not None
    assert (message, moved) == (view.message, view.moved)


@pytest.mark.parametrize(
    ("record", "nodes", "message"),
    [
        (RECORD, (), "2 workers on 2 nodes (gates); the job has ended"),
        (RECORD, ("n0", "n1"), "2 of 2 workers where planned (gates)"),
        (PlanRecord(stage=Stage.WAITING, waiting_reason="full"), (), "the job ended before it was placed"),
    ],
    ids=["pods gone", "pods kept", "never placed"],
)
def test_an_ended_job_is_not_said_to_lack_its_workers(
    record: PlanRecord, nodes: tuple[str, ...], message: str
) -> None:
    """The operator cleans pods up, and there is nothing left to resume."""
    made = with_plan(JOB, record)
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
    view = plan_view(with_plan(JOB, RECORD), [pod("job-worker-0", node="n0"), gated])

    assert view is not None
    assert (
        "1 of 2 workers where planned (gates); 1 worker waits at the scheduling gate, "
        "continue with: arena-topo resume job"
    ) == view.message


AT = datetime(2026, 11, 22, 8, tzinfo=UTC)
KNOWN = StartEstimate(earliest=AT, likely=AT, latest=AT, after=("default/a",), basis=("its deadline",))


@pytest.mark.parametrize(
    ("position", "estimate", "start"),
    [
        (2, KNOWN, KNOWN),
        (2, None, StartEstimate(unknown="the controller has made none yet")),
        (MOST_AHEAD + 1, None, StartEstimate(unknown=f"{MOST_AHEAD} jobs wait before it")),
        (
            0,
            None,
            StartEstimate(unknown="no controller has it in its queue"),
        ),
    ],
    ids=["estimated", "not yet", "far behind", "no controller"],
)
def test_a_job_that_waits_tells_when_it_starts_or_why_nothing_tells(
    position: int, estimate: StartEstimate | None, start: StartEstimate
) -> None:
    """With its number in the queue, and the reason."""
    record = PlanRecord(stage=Stage.WAITING, waiting_reason="full", position=position, estimate=estimate)
    view = plan_view(with_plan(JOB, record), [])

    assert view is not None
    assert ("full", position, start) == (view.reason, view.position, view.start)


def test_a_job_that_has_a_place_or_has_ended_awaits_no_start() -> None:
    """Whatever its plan still says."""
    ended = with_plan(JOB, PlanRecord(stage=Stage.WAITING, waiting_reason="full", position=1, estimate=KNOWN))
    ended["status"] = {"conditions": [{"type": "Succeeded", "status": "True"}]}
    for each in (ended, with_plan(JOB, RECORD)):
        view = plan_view(each, [])
        assert view is not None
        assert ("", 0, None) == (view.reason, view.position, view.start)


def in_a_queue(pins: str = "0:host-0,1:host-1,2:") -> Object:
    """Return a job of two workers that Kueue has admitted, whose templates have *pins*."""
    job = mpijob("job", workers=2)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    worker["metadata"] = {"annotations": {"arena-topo.dev/pin-nodes": pins} if pins else {}}
    return job


def test_a_job_that_our_check_has_placed_shows_where_and_by_what() -> None:
    """Its templates have the pins that the check answered, and it has no other plan."""
    job = in_a_queue()
    view = plan_view(job, [pod("job-worker-0", node="n0")])

    assert view is not None
    assert "1 of 2 workers where planned (admission)" == view.message
    assert view.enforced.startswith(
        "all workers together, each on its node, by the cluster's admission policy"
    )
    assert ["host-0", "host-1"] == [worker.node for worker in view.workers]
    # Pins have hostname labels, which need not be the names of nodes.
    assert () == view.moved


@pytest.mark.parametrize("pins", ["", "nonsense"])
def test_a_job_that_kueue_has_started_by_itself_has_no_plan(pins: str) -> None:
    """Nor does one whose pins cannot be read."""
    assert None is plan_view(in_a_queue(pins), [])
