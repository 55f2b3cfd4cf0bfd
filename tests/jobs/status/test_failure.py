"""A failed job says how its launcher ended, and which worker failed first."""

from typing import Any

import pytest

from arena_topo.jobs.status.failure import failure_message, first_failed_worker, pod_failure
from tests.objects import condition, mpijob, pod

LIMIT = "Job has reached the specified backoff limit: "
FAILED = mpijob(
    "job", status={"conditions": [condition("Failed", message=LIMIT, reason="BackoffLimitExceeded")]}
)


def ended(name: str, code: int, *, role: str = "worker", state: str = "state", **extra: Any) -> Any:
    """Return a pod whose container exited with *code*; in ``lastState`` it was started again since."""
    terminated = {"exitCode": code, "reason": "Error", "finishedAt": "2026-11-21T01:10:00Z", **extra}
    phase = "Running" if state == "lastState" else "Failed"
    statuses = [{"name": "mpi", "restartCount": 1, state: {"terminated": terminated}}]
    return pod(name, role=role, phase=phase, containerStatuses=statuses)


def told(*pods: Any) -> str:
    """Return the message of a job with these pods, the first of which is its launcher."""
    return failure_message(FAILED, pods, pods[0] if pods else None)


def test_the_launchers_exit_code_comes_first() -> None:
    """In place of the operator's limit."""
    assert "the launcher exited with code 7" == told(ended("job-launcher-x", 7, role="launcher"))


def test_without_pods_the_operator_has_the_last_word() -> None:
    """Without the colon that it ends with."""
    assert "Job has reached the specified backoff limit" == told()


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
def test_an_end_is_told_in_words(code: int, extra: dict[str, str], expected: str) -> None:
    """The kubelet's reason, the signal, and the container's last words on one line."""
    failure = pod_failure(ended("job-worker-0", code, **extra))

    assert failure is not None
    assert expected == failure.words


def test_the_first_failure_by_the_clock_is_the_cause() -> None:
    """Here worker 2, whose container was started again since; the launcher failed as a consequence."""
    launcher = ended("job-launcher-x", 1, role="launcher")
    late = ended("job-worker-1", 1, finishedAt="2026-11-21T01:09:59Z")
    first = ended(
        "job-worker-2", 137, state="lastState", reason="OOMKilled", finishedAt="2026-11-21T01:09:50Z"
    )

    assert (
        "the launcher exited with code 1; "
        "first worker to fail: job-worker-2, which exited with code 137 (OOMKilled, SIGKILL)"
    ) == told(launcher, late, first)


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
    launcher = ended("job-launcher-x", 143, role="launcher")

    assert "the launcher exited with code 143 (SIGTERM); Job was too slow" == failure_message(
        job, [launcher], launcher
    )


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded"])
def test_a_pod_that_did_not_fail_has_no_failure(phase: str) -> None:
    """Whatever its phase."""
    assert None is pod_failure(pod("job-worker-0", phase=phase))
