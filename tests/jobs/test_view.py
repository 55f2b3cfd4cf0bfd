"""A job's state is what Arena's rules say, in all three versions of the API."""

from datetime import UTC, datetime
from typing import Any

import pytest

from arena_topo.jobs.status import job_view
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.hang import Hang
from arena_topo.model.job_view import JobStatus, JobView, PlannedWorker
from arena_topo.model.keys import HANG
from arena_topo.model.moves import Move, with_move
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.objects import condition, mpijob, pod, with_plan

NOW = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
LAUNCHER = pod("job-launcher-x", role="launcher")
WORKERS = [pod(f"job-worker-{at}") for at in range(4)]


def seen(job: Any, pods: list[Any], version: ApiVersion = ApiVersion.V2BETA1, **extra: Any) -> JobView:
    """Return the view of *job* at NOW."""
    return job_view(version, job, pods, now=NOW, **extra)


def conditions(*kinds: str) -> dict[str, Any]:
    """Return a status with true conditions."""
    return {"status": {"conditions": [condition(kind) for kind in kinds]}}


@pytest.mark.parametrize(
    ("job", "pods", "status"),
    [
        (mpijob("job"), [], JobStatus.PENDING),
        (mpijob("job"), WORKERS, JobStatus.PENDING),
        (mpijob("job"), [LAUNCHER, *WORKERS], JobStatus.RUNNING),
        (mpijob("job"), [LAUNCHER, pod("job-worker-0", phase="Pending")], JobStatus.PENDING),
        (mpijob("job"), [pod("job-launcher-x", role="launcher", phase="Pending")], JobStatus.PENDING),
        (mpijob("job", **conditions("Created", "Running", "Succeeded")), [], JobStatus.SUCCEEDED),
        (mpijob("job", **conditions("Created", "Failed")), [LAUNCHER], JobStatus.FAILED),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Active"}), [LAUNCHER], JobStatus.RUNNING),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Succeeded"}), [], JobStatus.SUCCEEDED),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Failed"}), [], JobStatus.FAILED),
    ],
    ids=[
        "no pods", "no launcher", "all run", "a worker waits", "the launcher waits", "succeeded", "failed",
        "v1alpha1 runs", "v1alpha1 succeeded", "v1alpha1 failed",
    ],
)  # fmt: skip
def test_the_status_follows_arena(job: Any, pods: list[Any], status: JobStatus) -> None:
    """Final states first, then the launcher, then the workers."""
    assert status is seen(job, pods).status


def test_a_suspended_job_says_so() -> None:
    """In a queue it is queuing."""
    job = mpijob("job")
    job["spec"]["runPolicy"] = {"suspend": True}
    assert JobStatus.SUSPENDED is seen(job, []).status
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    assert JobStatus.QUEUING is seen(job, []).status


def test_a_false_condition_is_not_true() -> None:
    """Only status True counts."""
    job = mpijob("job", status={"conditions": [{"type": "Failed", "status": "False"}]})

    assert JobStatus.RUNNING is seen(job, [LAUNCHER]).status


def test_instances_are_the_launcher_and_the_workers_by_index() -> None:
    """worker-10 comes after worker-9."""
    names = [f"job-worker-{at}" for at in range(12)]
    pods = [pod(name) for name in sorted(names)]

    assert ["job-launcher-x", *names] == [
        each.name for each in seen(mpijob("job"), [*pods, LAUNCHER]).instances
    ]


def test_gpus_are_those_of_every_vendor() -> None:
    """The vendor's topology resource counts, where Arena's list shows 0."""
    vendor = pod("job-worker-1")
    vendor["spec"]["containers"][0]["resources"]["limits"] = {"aliyun.com/gpu": "2"}
    view = seen(mpijob("job"), [LAUNCHER, WORKERS[0], vendor])

    assert [0, 1, 2] == [each.gpus for each in view.instances]
    assert (4, 3) == (view.requested_gpus, view.allocated_gpus)


def test_gpus_are_allocated_once_a_pod_has_a_node() -> None:
    """Neither a pod that waits nor a job that has ended holds any."""
    waiting = pod("job-worker-1", phase="Pending", node="")
    assert 1 == seen(mpijob("job"), [LAUNCHER, WORKERS[0], waiting]).allocated_gpus
    assert 0 == seen(mpijob("job", **conditions("Succeeded")), [LAUNCHER, *WORKERS]).allocated_gpus


def test_ages_are_the_pods_own() -> None:
    """Not the job's."""
    young = pod("job-worker-0")
    young["metadata"]["creationTimestamp"] = "2026-11-21T01:04:50Z"
    view = seen(mpijob("job"), [LAUNCHER, young])

    assert [300.0, 10.0] == [each.age for each in view.instances]
    assert 300.0 == view.duration


@pytest.mark.parametrize(
    ("job", "pods", "launcher_job", "ended"),
    [
        (mpijob("job", status={**conditions("Succeeded")["status"], "completionTime": "2026-11-21T01:02:00Z"}), [], None, 120.0),
        (mpijob("job", **conditions("Failed")), [], None, 600.0),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Succeeded"}), [], {"status": {"completionTime": "2026-11-21T01:03:00Z"}}, 180.0),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Failed"}), [pod("l", role="launcher", conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T01:04:00Z"}])], None, 240.0),
    ],
    ids=["completion time", "condition", "v1alpha1 launcher job", "v1alpha1 chief pod"],
)  # fmt: skip
def test_a_job_that_ended_has_the_duration_of_its_life(
    job: Any, pods: list[Any], launcher_job: Any, ended: float
) -> None:
    """The best witness of the end is believed."""
    assert ended == seen(job, pods, launcher_job=launcher_job).duration


def test_a_pending_job_says_what_it_waits_for() -> None:
    """The scheduler's own words."""
    text = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
    held = pod("job-worker-0", phase="Pending", node="", conditions=[scheduled])

    assert f"job-worker-0: Unschedulable: {text}" == seen(mpijob("job"), [held]).message
    assert "the Kubeflow MPI operator has not started on the job" in seen(mpijob("job"), []).message


def test_a_worker_that_has_failed_holds_a_job_up() -> None:
    """The launcher waits for all workers, and the operator does not replace one that has failed."""
    terminated = {"exitCode": 127, "reason": "Error", "finishedAt": "2026-11-21T01:10:00Z"}
    failed = pod(
        "job-worker-1",
        phase="Failed",
        containerStatuses=[{"name": "mpi", "state": {"terminated": terminated}}],
    )
    creating = [{"name": "mpi", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    view = seen(mpijob("job"), [pod("job-worker-0", phase="Pending", containerStatuses=creating), failed])

    assert JobStatus.PENDING is view.status
    assert "job-worker-1: exited with code 127" == view.message
    assert "see arena-topo logs job -i job-worker-1" == view.advice
    assert ["ContainerCreating", "exited with code 127"] == [each.reason for each in view.instances]


def test_a_failed_job_says_why() -> None:
    """The operator's own words."""
    job = mpijob("job", status={"conditions": [condition("Failed", message="BackoffLimitExceeded")]})

    assert "BackoffLimitExceeded" == seen(job, []).message


def test_the_priority_is_the_workers() -> None:
    """The first class named in a template."""
    job = mpijob("job")
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["priorityClassName"] = "high"

    assert "high" == seen(job, []).priority


def test_a_claimed_gpu_counts() -> None:
    """No container requests it: submit wrote the number into an annotation of the template."""
    job, worker = mpijob("job", workers=2), pod("job-worker-0")
    for template in (worker, job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]):
        template.setdefault("metadata", {})["annotations"] = {"arena-topo.dev/claimed-gpus": "2"}
        template["spec"]["containers"][0]["resources"] = {}
    view = seen(job, [LAUNCHER, worker])

    assert [0, 2] == [each.gpus for each in view.instances]
    assert (4, 2) == (view.requested_gpus, view.allocated_gpus)


def test_a_job_whose_worker_keeps_crashing_is_not_running() -> None:
    """The pod's phase is Running, and nothing can be computed on it."""
    terminated = {"exitCode": 255, "reason": "Error"}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}
    statuses = [
        {
            "name": "mpi",
            "restartCount": 4,
            "state": {"waiting": waiting},
            "lastState": {"terminated": terminated},
        }
    ]
    view = seen(mpijob("job"), [LAUNCHER, WORKERS[0], pod("job-worker-1", containerStatuses=statuses)])

    assert JobStatus.PENDING is view.status
    assert "job-worker-1: CrashLoopBackOff: it exited with code 255, 4 restarts" == view.message
    assert ["", "", "CrashLoopBackOff: it exited with code 255, 4 restarts"] == [
        each.reason for each in view.instances
    ]


def test_the_plan_of_a_job_is_in_its_view() -> None:
    """With the place of each worker."""
    job = mpijob("job", workers=1)
    slots = (Slot(0, "n1", (3,)),)
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=Enforcement.GATES, level="node")
    plan = seen(with_plan(job, record), [LAUNCHER, WORKERS[0]]).plan

    assert plan is not None
    assert ("confirmed", "gates", "node") == (plan.stage, plan.enforcement, plan.level)
    assert (PlannedWorker("job-worker-0", "n1", (3,)),) == plan.workers


def test_workers_that_moved_are_told_with_their_nodes() -> None:
    """Since the job started; one that waited and has a node now is left out."""
    job = mpijob("job", workers=4)
    moves = [
        ("2026-11-20T00:00:00Z", "old", {3: ("a", "b")}, ""),
        ("2026-11-23T00:00:00Z", "b is gone", {1: ("b", "c")}, ""),
        ("2026-11-23T01:00:00Z", "d is gone", {0: ("d", ""), 2: ("d", "")}, "no room"),
    ]
    text = ""
    for at, why, workers, waits in moves:
        text = with_move(text, Move(datetime.fromisoformat(at), why, workers, waits))
    job["metadata"]["annotations"] = {"arena-topo.dev/moves": text}
    job["status"] = {"startTime": "2026-11-22T00:00:00Z"}
    view = job_view(ApiVersion.V2BETA1, job, [pod("job-worker-0")], now=datetime.now(UTC))
    assert (
        "1 of 4 workers moved: b is gone; 1 of 4 workers lost their nodes and wait: d is gone; no room"
        == view.moved
    )
    assert [(("job-worker-1", "b", "c"),), (("job-worker-2", "d", ""),)] == [
        each.workers for each in view.moves
    ]


def test_a_job_says_that_it_hangs_and_that_it_was_stopped_for_it() -> None:
    """As the controller has noted; what cannot be read says nothing."""
    hang = Hang(NOW, "stuck", "3 ranks wait for rank 2")
    job = mpijob("job")
    job["metadata"]["annotations"] = {HANG: hang.annotation}
    view = seen(job, [LAUNCHER, *WORKERS])
    assert view.message == "hung since 01:05 UTC (21 Nov): 3 ranks wait for rank 2"
    assert view.advice == "arena-topo why job --saved shows what was seen"
    job["spec"]["runPolicy"] = {"suspend": True}
    stopped = seen(job, [])
    assert (JobStatus.SUSPENDED, view.message) == (stopped.status, stopped.message)
    assert stopped.advice.startswith(view.advice)
    job["metadata"]["annotations"] = {HANG: "[]"}
    assert "hung" not in seen(job, [LAUNCHER, *WORKERS]).message
