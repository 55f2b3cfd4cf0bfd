"""What comes late on real clusters: names, ssh servers, the report of an end. Jobs survive it."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.ranks.agent.knobs import Knob
from tests.ranks.jobs import Jobs, mpirun, ranks_in

pytestmark = pytest.mark.usefixtures("nodes")


def release(kube: Kube, jobs: Jobs, name: str, knob: Knob) -> None:
    """Take the annotation of *knob* from all pods of the job that have it."""
    for pod in jobs.pods(name):
        change = {"metadata": {"annotations": {knob: None}}}
        kube.patch("v1", "Pod", pod["metadata"]["name"], change, jobs.namespace)


def running_launcher(jobs: Jobs, name: str) -> str:
    """Return the name of the job's launcher once it runs."""
    found = eventually(
        lambda: list(filter(pods.running, jobs.pods(name, "launcher"))), "a launcher that runs"
    )
    return str(found[0]["metadata"]["name"])


def test_a_launcher_waits_for_the_names_of_its_workers(jobs: Jobs, kube: Kube) -> None:
    """Cluster DNS learns of pods seconds after they run, and mpirun gives up at the first unknown name."""
    jobs.submit("names", "-a", f"{Knob.NAMES}=launcher", workers=2, command=mpirun(2))
    launcher = running_launcher(jobs, "names")
    path = f"{kube.path('v1', 'Pod', jobs.namespace, launcher)}/log"
    waiting = "waiting for names-worker-0.names."
    eventually(lambda: waiting in kube.request("GET", path), "the launcher to say that it waits")
    release(kube, jobs, "names", Knob.NAMES)

    assert 2 == len(ranks_in(jobs.log("names")))
    jobs.wait("names", "SUCCEEDED")


def test_a_launcher_waits_for_the_ssh_servers_of_its_workers(jobs: Jobs, kube: Kube) -> None:
    """A container runs before its server listens; Ready says nothing of that."""
    jobs.submit("sshd", "-a", f"{Knob.PROCESS}=worker", workers=2, command=mpirun(2))
    running_launcher(jobs, "sshd")
    release(kube, jobs, "sshd", Knob.PROCESS)

    assert 2 == len(jobs.ranks("sshd"))
    jobs.wait("sshd", "SUCCEEDED")


def test_an_end_that_is_reported_late_is_waited_for_quietly(jobs: Jobs, kube: Kube) -> None:
    """A kubelet reports the end of a container a moment after its log has ended."""
    jobs.submit("late", "-a", f"{Knob.STATUS}=launcher", workers=2, command=mpirun(2))
    with jobs.arena.running("logs", "-f", "late") as following:
        eventually(lambda: len(ranks_in("".join(following.out))) == 2, "the lines of the ranks")
        release(kube, jobs, "late", Knob.STATUS)
        outcome = following.wait()

    # What it waits for before the first line depends on how far the job has come.
    notices = [line for line in outcome.err.splitlines() if not line.startswith("waiting for ")]
    assert (0, 2, []) == (outcome.code, len(outcome.out.splitlines()), notices)
