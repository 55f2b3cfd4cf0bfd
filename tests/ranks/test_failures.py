"""Jobs that fail for real: what their users are told, and what goes on."""

import pytest

from tests.controlplane.kube import Kube
from tests.controlplane.machines.nodes import delete_nodes
from tests.ranks.cluster import RankCluster
from tests.ranks.jobs import Jobs, mpirun, ranks_in, running_ranks

pytestmark = pytest.mark.usefixtures("nodes")

_NEVER = ("--until", "/never")


def test_a_rank_that_exits_ends_the_job_with_its_code(jobs: Jobs) -> None:
    """All ranks are ended, and get tells the code of the first that failed."""
    jobs.submit("seven", workers=2, command=mpirun(2, "--exit", "1", "7"))
    table = jobs.wait("seven", "FAILED")
    log = jobs.arena("logs", "seven")

    assert "exited with code 7" in table or "exit code 7" in table, table
    assert 2 == len(ranks_in(log.out))


def test_a_worker_that_is_killed_fails_the_job(jobs: Jobs, kube: Kube) -> None:
    """Its ranks are lost, and mpirun notices at once."""
    jobs.submit("lost", workers=2, command=mpirun(2, *_NEVER))
    running_ranks(jobs, "lost", 2)
    kube.delete("v1", "Pod", "lost-worker-1", jobs.namespace, gracePeriodSeconds="0")

    table = jobs.wait("lost", "FAILED")
    assert "launcher" in table


def test_an_image_without_mpirun_says_so(jobs: Jobs) -> None:
    """The shell's code for a command that is not found, and its words in the log."""
    jobs.submit("nompi", workers=2, image="without-mpirun", command=mpirun(2))
    table = jobs.wait("nompi", "FAILED")

    assert "127" in table
    assert "mpirun" in jobs.arena("logs", "nompi").out


def test_a_launcher_that_is_deleted_is_not_called_a_success(jobs: Jobs, kube: Kube) -> None:
    """The Job counts the lost pod as a failure of its only try."""
    jobs.submit("gone", workers=2, command=mpirun(2, *_NEVER))
    launcher = running_ranks(jobs, "gone", 2)
    kube.delete("v1", "Pod", launcher, jobs.namespace)

    jobs.wait("gone", "FAILED")


def test_a_node_that_is_gone_fails_its_job(jobs: Jobs, kube: Kube, nodes: RankCluster) -> None:
    """Both of its workers' nodes are needed; the node's pods go with it."""
    jobs.submit("node", "--gang", "--gputopology=true", workers=2, gpus=4, command=mpirun(2, *_NEVER))
    running_ranks(jobs, "node", 2)
    places = dict(jobs.places("node"))
    launcher = jobs.pods("node", "launcher")[0]["spec"]["nodeName"]
    victim = next(node for node in places.values() if node != launcher)
    assert victim in nodes.nodes
    delete_nodes(kube, [victim])

    jobs.wait("node", "FAILED")


def test_retry_starts_the_launcher_again(jobs: Jobs) -> None:
    """The second try finds what the first left on the worker, and succeeds."""
    first = "[ $OMPI_COMM_WORLD_RANK = 0 ] && [ ! -f /mark ] && touch /mark && exit 5"
    program = f"sh -c '{first}; exec /opt/ranks/ranks'"
    jobs.submit("again", "--retry=1", workers=2, command=mpirun(2).replace("/opt/ranks/ranks", program))
    jobs.wait("again", "SUCCEEDED")

    assert 2 == len(ranks_in(jobs.arena("logs", "again").out))
