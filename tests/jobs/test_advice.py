"""A job's advice is the next command to type."""

from typing import Any

import pytest

from arena_topo.jobs.status import advice
from arena_topo.kinds.indexed_job import INDEXED_JOB
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from arena_topo.model.job_view import JobStatus
from tests.jobs.manifests import MANIFESTS
from tests.objects import mpijob, pod

LAUNCHER = pod("job-launcher-x", role="launcher")
WORKERS = [pod("job-worker-0"), pod("job-worker-1")]


def gated(name: str) -> Any:
    """Return a worker that waits at our gate."""
    held = pod(name, phase="Pending", node="")
    held["spec"]["schedulingGates"] = [{"name": "arena-topo.dev/gang"}]
    return held


def crashed(name: str) -> Any:
    """Return a worker that failed."""
    terminated = {"exitCode": 1, "finishedAt": "2026-11-21T01:10:00Z"}
    return pod(name, phase="Failed", containerStatuses=[{"name": "mpi", "state": {"terminated": terminated}}])


@pytest.mark.parametrize(
    ("status", "pods", "expected"),
    [
        (JobStatus.RUNNING, [LAUNCHER, *WORKERS], ""),
        (
            JobStatus.PENDING,
            [LAUNCHER, WORKERS[0], gated("job-worker-1")],
            "job-worker-1 was recreated and waits at its gate; release it with: arena-topo resume job",
        ),
        (
            JobStatus.PENDING,
            [gated("job-worker-0"), gated("job-worker-1")],
            "the workers wait at their gates; if no submit is running any more: arena-topo resume job",
        ),
        (JobStatus.PENDING, [crashed("job-worker-1")], "see arena-topo logs job -i job-worker-1"),
        (JobStatus.SUSPENDED, [], "the job is suspended; continue with: arena-topo resume job"),
        (JobStatus.FAILED, [LAUNCHER, *WORKERS], "see arena-topo logs job"),
        (
            JobStatus.FAILED,
            [LAUNCHER, crashed("job-worker-1")],
            "see arena-topo logs job -i job-worker-1, and arena-topo logs job for the launcher's side",
        ),
        (JobStatus.FAILED, [], "its pods are gone; arena-topo events job shows what is left"),
    ],
    ids=[
        "running",
        "one gated",
        "all gated",
        "pending",
        "suspended",
        "failed",
        "a worker failed",
        "pods are gone",
    ],
)
def test_what_would_help_is_a_command(status: JobStatus, pods: list[Any], expected: str) -> None:
    """Or nothing, where nothing needs to be done."""
    chief = LAUNCHER if LAUNCHER in pods else None

    assert expected == advice(ApiVersion.V2BETA1, mpijob("job"), pods, status, chief)


@pytest.mark.parametrize(
    ("kind", "chief", "pods"),
    [("PyTorchJob", "the master", "pods"), ("JobSet", "the leader", "pods"), ("Job", "worker 0", "workers")],
)
def test_advice_names_pods_as_their_kind_does(kind: str, chief: str, pods: str) -> None:
    """No job but an MPIJob has a launcher."""
    job = MANIFESTS[kind]

    assert f"see arena-topo logs bert -i bert-x, and arena-topo logs bert for {chief}'s side" == advice(
        kind_of(job), job, [crashed("bert-x")], JobStatus.FAILED, None
    )
    assert (
        f"the {pods} wait at their gates; if no submit is running any more: arena-topo resume bert"
        == advice(kind_of(job), job, [gated("bert-x")], JobStatus.PENDING, None)
    )


def test_a_recreated_chief_is_released_by_itself() -> None:
    """Where it is a planned pod, as worker 0 of an indexed Job, it counts as any other."""
    job = MANIFESTS["Job"]
    pods = [gated("bert-0-a"), pod("bert-1-b")]
    for index, each in enumerate(pods):
        each["metadata"]["labels"] = {"batch.kubernetes.io/job-completion-index": str(index)}

    assert advice(INDEXED_JOB, job, pods, JobStatus.PENDING, pods[0]).startswith("bert-0-a was recreated")
