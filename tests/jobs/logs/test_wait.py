"""Following a log waits for its container to start, and says what for."""

import pytest

from arena_topo.errors import ArenaTopoError, NotFound
from arena_topo.jobs.logs.wait import LogTarget, check_possible, why_not_started
from arena_topo.jobs.lookup import ServedJob
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from tests.fakes import missing
from tests.jobs.logs.scripted import LAUNCHER, Cluster, followed, launcher, line
from tests.jobs.manifests import MANIFESTS
from tests.objects import condition, mpijob, pod


def test_following_waits_and_says_what_for() -> None:
    """Each reason once: no launcher yet, the scheduler's words, a worker that failed, the image."""
    text = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    held = pod(
        "job-worker-0",
        phase="Pending",
        node="",
        conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}],
    )
    terminated = {"terminated": {"exitCode": 127, "reason": "Error"}}
    failed = pod("job-worker-0", phase="Failed", containerStatuses=[{"name": "mpi", "state": terminated}])
    pulling = launcher(phase="Pending")
    pulling["status"]["containerStatuses"] = [
        {"name": "mpi", "state": {"waiting": {"reason": "ContainerCreating"}}}
    ]
    cluster = Cluster(
        [[line(1, "a")], []],
        [launcher(ended=0)],
        waits=[[], [held], [held], [failed], [pulling], [launcher()]],
    )
    printed, said, slept, _ = followed(cluster)

    assert b"a\n" == printed
    assert [
        "waiting for the launcher: not created yet by the Kubeflow MPI operator",
        f"waiting for the launcher: job-worker-0: Unschedulable: {text}",
        "waiting for the launcher: job-worker-0: exited with code 127",
        f"waiting for {LAUNCHER}: ContainerCreating",
    ] == said
    assert [1.0] * 5 == slept


@pytest.mark.parametrize(
    ("kind", "title", "operator"),
    [
        ("MPIJob.v2beta1", "the launcher", "the Kubeflow MPI operator"),
        ("PyTorchJob", "the master", "the Kubeflow training operator"),
        ("JobSet", "the leader", "the JobSet controller"),
        ("Job", "worker 0", "the Job controller of Kubernetes"),
    ],
)
def test_what_is_waited_for_is_named_as_its_kind_does(kind: str, title: str, operator: str) -> None:
    """By the role of the pod whose log is the job's, whether it is to come or has gone."""
    job = MANIFESTS[kind]
    served, target = ServedJob(kind_of(job), job), LogTarget()
    ended = {**job, "status": {"conditions": [condition("Failed", message="evicted")]}}

    assert f"waiting for {title}: not created yet by {operator}" == why_not_started(
        served.kind, target.title(served), None, []
    )
    with pytest.raises(ArenaTopoError, match=f"and {title} has no log any more"):
        check_possible(ServedJob(served.kind, ended), [], target)


def test_a_named_instance_is_waited_for_by_its_name() -> None:
    """Not by the chief's."""
    served = ServedJob(ApiVersion.V2BETA1, mpijob("job"))

    assert "job-worker-1" == LogTarget("job-worker-1").title(served)


def test_waiting_ends_when_the_job_has_ended() -> None:
    """A job that failed before its launcher ran has no log to wait for."""
    job = mpijob("job", status={"conditions": [condition("Failed", message="evicted")]})
    with pytest.raises(ArenaTopoError, match=r"has ended \(Failed: evicted\)"):
        followed(Cluster([], [], waits=[[]], job=job))


def test_waiting_ends_when_the_job_is_deleted() -> None:
    """With the usual error."""
    with pytest.raises(NotFound, match="training job job not found"):
        followed(Cluster([], [], job=missing("job")))


def test_an_instance_that_cannot_be_is_an_error() -> None:
    """And one that is not there yet is waited for."""
    with pytest.raises(NotFound, match="invalid instance name other-worker-0 in job job"):
        followed(Cluster([], []), target=LogTarget("other-worker-0"))


def test_a_container_that_does_not_exist_is_an_error() -> None:
    """With the names that do."""
    with pytest.raises(NotFound, match="container nope is not valid") as caught:
        followed(Cluster([], []), target=LogTarget(container="nope"))
    assert "its containers are mpi" == caught.value.hint
