"""Jobs that fail for real: what their users are told, and what continues."""

import re

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import delete_nodes
from tests.controlplane.polling import eventually
from tests.ranks.agent.knobs import Knob
from tests.ranks.cluster import RankCluster
from tests.ranks.jobs import Jobs, mpirun, ranks_in, running_ranks

pytestmark = pytest.mark.usefixtures("nodes")

_NEVER = ("--until", "/never")


def saying(jobs: Jobs, name: str, pattern: str) -> str | None:
    """Return what get shows of a job if *pattern* is in it."""
    text = jobs.get(name)
    return text if re.search(pattern, text) else None


def test_a_rank_that_exits_ends_the_job_with_its_code(jobs: Jobs) -> None:
    """All ranks are ended, submit --follow and get tell the code of the first that failed."""
    followed = jobs.submit("seven", "--follow", workers=2, command=mpirun(2, "--exit", "1", "7"), code=5)
    table = jobs.wait("seven", "FAILED")
    log = jobs.arena("logs", "seven")

    assert 2 == len(ranks_in(followed.out))
    assert "error: the job seven failed: the launcher exited with code 7\n" in followed.err
    assert "failed: the launcher exited with code 7\nhint: see arena-topo logs seven\n" in table
    assert (0, 2) == (log.code, len(ranks_in(log.out)))


def test_a_worker_that_is_killed_fails_the_job(jobs: Jobs, kube: Kube) -> None:
    """Its ranks are lost, and mpirun notices at once."""
    jobs.submit("lost", workers=2, command=mpirun(2, *_NEVER))
    running_ranks(jobs, "lost", 2)
    kube.delete("v1", "Pod", "lost-worker-1", jobs.namespace, gracePeriodSeconds="0")

    assert "failed: the launcher exited with code " in jobs.wait("lost", "FAILED")
    assert "lost-worker-1" in jobs.arena("logs", "lost").out


def test_an_image_without_mpirun_says_so(jobs: Jobs) -> None:
    """The shell's code for a command that is not found, and its words in the log."""
    jobs.submit("nompi", workers=2, image="without-mpirun", command=mpirun(2))
    table = jobs.wait("nompi", "FAILED")

    assert "failed: the launcher exited with code 127\n" in table
    assert "mpirun: not found" in jobs.arena("logs", "nompi").out


def test_a_worker_without_an_ssh_server_holds_its_job_up(jobs: Jobs) -> None:
    """No launcher is created: the job is not RUNNING, get and
    logs -f name the worker and its code, its log says why.
    """
    # A container without a probe is ready from its start to its end, which is enough for the operator to
    # continue.
    unready = ("-a", f"{Knob.READY}=worker")
    jobs.submit("nosshd", *unready, workers=2, image="without-sshd", command=mpirun(2))
    failed = r"pending: nosshd-worker-(\d): exited with code 127"
    table = eventually(lambda: saying(jobs, "nosshd", failed), "get to say why")
    assert re.search(r"^Status: +PENDING$", table, re.MULTILINE)
    found = re.search(r"hint: see arena-topo (logs nosshd -i nosshd-worker-\d)", table)
    assert found, table

    log = jobs.arena(*found[1].split())
    assert (0, True) == (log.code, "/usr/sbin/sshd: not found" in log.out)
    launcher = jobs.arena("logs", "nosshd")
    assert (1, "") == (launcher.code, launcher.out)
    with jobs.arena.running("logs", "-f", "nosshd") as following:
        said = "waiting for the launcher: nosshd-worker-0: exited with code 127"
        following.until_said(said, "logs -f to say why it waits")


def test_a_launcher_that_is_deleted_is_not_called_a_success(jobs: Jobs, kube: Kube) -> None:
    """The Job counts the lost pod as a failure of its only try."""
    jobs.submit("gone", workers=2, command=mpirun(2, *_NEVER))
    launcher = running_ranks(jobs, "gone", 2)
    kube.delete("v1", "Pod", launcher, jobs.namespace, gracePeriodSeconds="1")

    # It fails while the pod is still there, or once that has gone.
    why = "failed: Job has reached the specified backoff limit\nhint: its pods are gone; "
    eventually(lambda: saying(jobs, "gone", why), "the job to have failed without its pods")
    log = jobs.arena("logs", "-f", "gone")
    assert (1, True) == (log.code, "the launcher has no log any more" in log.err)


def test_a_node_that_is_gone_fails_its_job(jobs: Jobs, kube: Kube, nodes: RankCluster) -> None:
    """Both of its workers' nodes are needed; the node's pods go with it."""
    jobs.submit("node", "--gang", "--gputopology=true", workers=2, gpus=4, command=mpirun(2, *_NEVER))
    running_ranks(jobs, "node", 2)
    places = dict(jobs.places("node"))
    launcher = jobs.pods("node", "launcher")[0]["spec"]["nodeName"]
    victim = next(node for node in places.values() if node != launcher)
    assert victim in nodes.nodes
    delete_nodes(kube, [victim])

    assert "failed: the launcher exited with code " in jobs.wait("node", "FAILED")


def test_retry_starts_the_launcher_again(jobs: Jobs) -> None:
    """The second try finds what the first left on the worker, and succeeds."""
    first = "[ $OMPI_COMM_WORLD_RANK = 0 ] && [ ! -f /mark ] && touch /mark && exit 5"
    program = f"sh -c '{first}; exec /opt/ranks/ranks'"
    jobs.submit("again", "--retry=1", workers=2, command=mpirun(2).replace("/opt/ranks/ranks", program))
    jobs.wait("again", "SUCCEEDED")

    assert 2 == len(ranks_in(jobs.arena("logs", "again").out))
