"""A failed job says how its launcher or first pod ended, and which of the others failed first."""

from typing import Any

import pytest

from arena_topo.jobs.conditions import failure_message, first_failed_worker, pod_failure
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.table import kind_of
from tests.jobs.manifests import MANIFESTS
from tests.objects import condition, mpijob, pod

LIMIT = "Job has reached the specified backoff limit: "
FAILED = mpijob(
    "job", status={"conditions": [condition("Failed", message=LIMIT, reason="BackoffLimitExceeded")]}
)


def pod_that_exited(name: str, code: int, *, role: str = "worker", state: str = "state", **extra: Any) -> Any:
    """Return a pod whose container exited with *code*; in ``lastState`` it was started again since."""
    terminated = {"exitCode": code, "reason": "Error", "finishedAt": "2026-11-21T01:10:00Z", **extra}
    phase = "Running" if state == "lastState" else "Failed"
    statuses = [{"name": "mpi", "restartCount": 1, state: {"terminated": terminated}}]
    return pod(name, role=role, phase=phase, containerStatuses=statuses)


def message(*pods: Any) -> str:
    """Return the message of an MPIJob with these pods, the first of which is its launcher."""
    return failure_message(ApiVersion.V2BETA1, FAILED, pods, pods[0] if pods else None)


def test_the_launchers_exit_code_comes_first() -> None:
    """In place of the operator's limit."""
    assert "the launcher exited with code 7" == message(pod_that_exited("job-launcher-x", 7, role="launcher"))


def test_without_pods_the_operator_has_the_last_word() -> None:
    """Without the colon that it ends with."""
    assert "Job has reached the specified backoff limit" == message()


@pytest.mark.parametrize(
    ("code", "extra", "expected"),
    [
        (137, {"reason": "OOMKilled"}, "exited with code 137 (OOMKilled, SIGKILL)"),
        (139, {}, "exited with code 139 (SIGSEGV)"),
        (1, {"message": "no such\nfile"}, "exited with code 1: no such file"),
        (
            128,
            {"reason": "StartError", "message": "x" * 400},
            f"exited with code 128 (StartError): {'x' * 300}...",
        ),
    ],
)
def test_an_end_is_put_into_words(code: int, extra: dict[str, str], expected: str) -> None:
    """The kubelet's reason, the signal, and the container's last words on one line."""
    failure = pod_failure(pod_that_exited("job-worker-0", code, **extra))

    assert failure is not None
    assert expected == failure.words


def test_the_first_failure_by_the_clock_is_the_cause() -> None:
    """Here worker 2, whose container was started again since; the launcher failed as a consequence."""
    launcher = pod_that_exited("job-launcher-x", 1, role="launcher")
    late = pod_that_exited("job-worker-1", 1, finishedAt="2026-11-21T01:09:59Z")
    first = pod_that_exited(
        "job-worker-2", 137, state="lastState", reason="OOMKilled", finishedAt="2026-11-21T01:09:50Z"
    )

    assert (
        "the launcher exited with code 1; "
        "first worker to fail: job-worker-2, which exited with code 137 (OOMKilled, SIGKILL)"
    ) == message(launcher, late, first)


@pytest.mark.parametrize(
    ("kind", "labels", "chief", "other"),
    [
        ("MPIJob.v2beta1", {"training.kubeflow.org/job-role": "launcher"}, "the launcher", "worker"),
        ("PyTorchJob", {"training.kubeflow.org/job-role": "master"}, "the master", "other pod"),
        (
            "JobSet",
            {
                "jobset.sigs.k8s.io/jobset-name": "bert",
                "jobset.sigs.k8s.io/global-replicas": "0",
                "jobset.sigs.k8s.io/job-global-index": "0",
                "batch.kubernetes.io/job-completion-index": "0",
            },
            "the leader",
            "other pod",
        ),
        ("Job", {"batch.kubernetes.io/job-completion-index": "0"}, "worker 0", "other worker"),
    ],
)
def test_pods_are_named_as_their_kind_does(kind: str, labels: dict[str, str], chief: str, other: str) -> None:
    """No job but an MPIJob has a launcher, and where the
    chief is a worker the next to fail is another one.
    """
    job, first, second = MANIFESTS[kind], pod_that_exited("bert-first", 7), pod_that_exited("bert-second", 1)
    first["metadata"]["labels"], second["metadata"]["labels"] = labels, {}

    assert (
        f"{chief} exited with code 7; first {other} to fail: bert-second, which exited with code 1"
        == failure_message(kind_of(job), job, [first, second], first)
    )


def test_an_evicted_pod_says_so() -> None:
    """Its containers have no end on record, and no time."""
    evicted = pod(
        "job-worker-0", phase="Failed", reason="Evicted", message="low on memory", containerStatuses=[]
    )
    failure = first_failed_worker([evicted, pod("job-worker-1")])

    assert failure is not None
    assert ("job-worker-0", "ended: Evicted (low on memory)") == (failure.pod, failure.words)


def test_a_deadline_is_named_beside_the_launchers_end() -> None:
    """It is why the launcher was ended."""
    job = mpijob(
        "job",
        status={"conditions": [condition("Failed", reason="DeadlineExceeded", message="Job was too slow")]},
    )
    launcher = pod_that_exited("job-launcher-x", 143, role="launcher")

    assert "the launcher exited with code 143 (SIGTERM); Job was too slow" == failure_message(
        ApiVersion.V2BETA1, job, [launcher], launcher
    )


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded"])
def test_a_pod_that_did_not_fail_has_no_failure(phase: str) -> None:
    """Whatever its phase."""
    assert None is pod_failure(pod("job-worker-0", phase=phase))
