"""Jobs that continue: retried after a lost worker, suspended
and resumed, ended by their limits, one after another.
"""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import MPIJOB, replaced
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.pinning import acts, admission_policy
from tests.ranks.jobs import Jobs, mpirun, places_of, ranks_in, running_ranks

pytestmark = pytest.mark.usefixtures("nodes")

_GANG = ("--gang", "--gputopology=true")
_ENDLESS = mpirun(2, "--until", "/never")


def lose_a_worker(jobs: Jobs, kube: Kube, name: str) -> str:
    """Delete a worker of a job whose ranks run, and return
    the uid of the one that the operator creates for it.
    """
    running_ranks(jobs, name, 2)
    return str(replaced(kube, jobs.namespace, f"{name}-worker-1")["metadata"]["uid"])


def once(jobs: Jobs, kube: Kube) -> str:
    """Return a command whose ranks wait forever at the first try, and end well at the next."""
    mark = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tries"}, "data": {"word": "first"}}
    kube.create(mark, jobs.namespace)
    return mpirun(2, '$([ "$TRY" = first ] && echo --until /never)')


def test_under_gates_a_retry_goes_on_when_it_is_resumed(jobs: Jobs, kube: Kube) -> None:
    """A recreated worker waits behind the gate; get says what continues."""
    command = once(jobs, kube)
    jobs.submit(
        "gated", *_GANG, "--retry=3", "--env-from=configmap/tries", workers=2, command=f"TRY=$word; {command}"
    )
    lose_a_worker(jobs, kube, "gated")
    kube.patch("v1", "ConfigMap", "tries", {"data": {"word": "again"}}, jobs.namespace)
    hint = "1 worker waits at the scheduling gate, continue with: arena-topo resume gated"
    eventually(lambda: hint in jobs.get("gated"), "the hint")
    assert 0 == jobs.arena("resume", "gated").code

    jobs.wait("gated", "SUCCEEDED")


def test_under_the_policy_a_retry_needs_nobody(jobs: Jobs, kube: Kube, plane: ControlPlane) -> None:
    """The recreated worker gets its place again, from the API server."""
    with admission_policy(plane):
        command = once(jobs, kube)
        jobs.submit(
            "pinned",
            *_GANG,
            "--retry=3",
            "--env-from=configmap/tries",
            workers=2,
            command=f"TRY=$word; {command}",
        )
        assert "by the cluster's admission policy" in jobs.arena("describe", "pinned").out
        lose_a_worker(jobs, kube, "pinned")
        kube.patch("v1", "ConfigMap", "tries", {"data": {"word": "again"}}, jobs.namespace)
        jobs.wait("pinned", "SUCCEEDED")
        last = ranks_in(jobs.arena("logs", "pinned").out)
        assert jobs.places("pinned") == places_of(last)
        jobs.remove_all()
    eventually(lambda: not acts(kube), "the policy to be gone")


def test_a_job_that_is_suspended_ends_its_ranks_and_goes_on_when_resumed(jobs: Jobs, kube: Kube) -> None:
    """Its pods go, its GPUs are free, and its ranks compute again where the new plan says."""
    command = once(jobs, kube)
    jobs.submit("pause", *_GANG, "--env-from=configmap/tries", workers=2, command=f"TRY=$word; {command}")
    running_ranks(jobs, "pause", 2)
    assert 0 == jobs.arena("suspend", "pause").code
    eventually(lambda: not jobs.pods("pause"), "the pods to go")
    jobs.wait("pause", "SUSPENDED")
    kube.patch("v1", "ConfigMap", "tries", {"data": {"word": "again"}}, jobs.namespace)
    assert 0 == jobs.arena("resume", "pause").code

    assert jobs.places("pause") == places_of(jobs.ranks("pause"))
    jobs.wait("pause", "SUCCEEDED")


def test_a_job_ends_at_its_limit_and_its_pods_go_after_their_time(jobs: Jobs, kube: Kube) -> None:
    """--running-timeout ends ranks that never would.

    --ttl-after-finished is that of the launcher's Job, to which the operator passes it; the MPIJob itself
    stays.
    """
    limits = ("--running-timeout=5s", "--ttl-after-finished=1s")
    jobs.submit("short", *limits, workers=2, command=_ENDLESS)
    running_ranks(jobs, "short", 2)

    assert "active longer than specified deadline" in jobs.wait("short", "FAILED")
    eventually(lambda: not jobs.pods("short"), "the end of all pods")
    eventually(lambda: not kube.list("batch/v1", "Job", jobs.namespace), "the end of the launcher's Job")
    assert ["short"] == [job["metadata"]["name"] for job in kube.list(*MPIJOB, jobs.namespace)]
    jobs.wait("short", "FAILED")


def test_jobs_that_contend_run_one_after_the_other(jobs: Jobs) -> None:
    """Each takes more than half of the GPUs. As gangs the second waits whole, and both end."""
    # The first continues until the second has been submitted, however long that takes.
    jobs.submit("one", *_GANG, workers=6, command=f"while [ ! -f /go ]; do sleep 0.1; done; {mpirun(6)}")
    jobs.submit("two", *_GANG, workers=6, command=mpirun(6))
    eventually(lambda: 0 == jobs.arena("exec", "one", "--", "touch", "/go").code, "the launcher to run")
    assert 6 == len(jobs.ranks("one"))
    jobs.wait("one", "SUCCEEDED")
    assert 0 == jobs.arena("delete", "one").code
    assert 0 == jobs.arena("resume", "two").code
    assert 6 == len(jobs.ranks("two"))
    jobs.wait("two", "SUCCEEDED")
