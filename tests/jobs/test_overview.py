"""A cluster is read seldom, its jobs at once, and what may not be read is said."""

from collections.abc import Sequence

import pytest

from arena_topo.errors import ConnectionFailed
from arena_topo.jobs.overview import ClusterWatch
from arena_topo.model.job_view import JobStatus
from arena_topo.model.objects import Object
from tests.fakes import Answer, Broken, Call, Line, refusal, session
from tests.jobs.streams import JOBS, PODS, Streams, event, versioned
from tests.objects import mpijob, pod, ready_node

JOB = mpijob("job", workers=1)
LAUNCHER, WORKER = pod("job-launcher-x", role="launcher"), pod("job-worker-0")
NODE = ready_node("n1", {"nvidia.com/gpu": "8", "cpu": "8", "pods": "110"})


class Clock:
    """A time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return it."""
        return self.now


def nodes_read(cluster: Streams) -> int:
    """Return how often the nodes were listed."""
    return sum(call.path.endswith("/nodes") for call in cluster.calls)


def streams(lines: dict[str, list[list[Line]]] | None = None, *, jobs: Object = JOB) -> Streams:
    """Return a cluster of one node and one job."""
    lists: dict[str, list[Sequence[Object]]] = {
        JOBS: [[jobs]],
        PODS: [[LAUNCHER, WORKER]],
        "nodes": [[NODE]],
        "apis": [[]],
        "resourcequotas": [[]],
    }
    return Streams(lists, lines or {})


def test_everything_is_there_at_the_first_look() -> None:
    """The nodes, the jobs, and the links that these use."""
    seen = ClusterWatch(streams().session(), clock=Clock()).look()

    assert ["n1"] == [node.name for node in seen.snapshot.nodes]
    assert [("job", JobStatus.RUNNING)] == [(job.name, job.status) for job in seen.jobs]
    assert [{"n1": 1}] == [use.workers for use in seen.uses]
    assert ("", ()) == (seen.namespace, seen.notes)


def test_the_nodes_are_read_again_when_it_is_time() -> None:
    """Not at every look, which a change of a job may ask for each second."""
    cluster, clock = streams(), Clock()
    watch = ClusterWatch(cluster.session(), clock=clock)
    watch.look()
    watch.look()
    assert 1 == nodes_read(cluster)

    clock.now = 31.0
    watch.look()
    assert 2 == nodes_read(cluster)


def test_pods_that_come_make_the_nodes_due() -> None:
    """Five seconds after the last time, not thirty."""
    new = pod("job-worker-1", node="n1")
    cluster, clock = streams({PODS: [[event("ADDED", versioned(new, "8"))]]}), Clock()
    watch = ClusterWatch(cluster.session(), clock=clock)
    watch.look()
    watch.wait()
    clock.now = 4.0
    watch.look()
    assert 1 == nodes_read(cluster)

    clock.now = 6.0
    watch.look()
    assert 2 == nodes_read(cluster)


def test_a_lost_server_is_an_error_and_the_next_look_begins_anew() -> None:
    """As often as it takes."""
    cluster = streams({JOBS: [[Broken], [Broken]]})
    watch = ClusterWatch(cluster.session(), clock=Clock())
    watch.look()
    with pytest.raises(ConnectionFailed):
        watch.wait()

    assert 1 == len(watch.look().jobs)
    assert 2 == nodes_read(cluster)


def test_whoever_may_not_list_all_jobs_sees_those_of_a_namespace() -> None:
    """And learns it."""
    cluster = streams()

    def answer(call: Call) -> Answer:
        everywhere = call.path.endswith(("v2beta1/mpijobs", "v1/pods"))
        return refusal(403, "Forbidden", "no") if everywhere else cluster.answer(call)

    seen = ClusterWatch(session(answer)[0], clock=Clock()).look()
    assert ("default", 1) == (seen.namespace, len(seen.jobs))
    assert ("only the jobs of namespace default: you cannot list those of all namespaces",) == seen.notes


def test_whoever_may_not_list_nodes_sees_the_jobs() -> None:
    """And learns why there is no cluster."""
    cluster = streams()

    def answer(call: Call) -> Answer:
        return refusal(403, "Forbidden", "no") if call.path.endswith("/nodes") else cluster.answer(call)

    seen = ClusterWatch(session(answer)[0], clock=Clock()).look()
    assert ((), 1) == (seen.snapshot.nodes, len(seen.jobs))
    assert seen.notes[0].startswith("no nodes: ")


def test_a_cluster_without_mpijobs_is_shown() -> None:
    """It is asked for some from time to time, and nothing else is waited for."""
    cluster, slept = streams(), list[float]()

    def answer(call: Call) -> Answer:
        return Answer(status=404, body={}) if JOBS in call.path else cluster.answer(call)

    watch = ClusterWatch(session(answer)[0], clock=Clock(), sleep=slept.append)
    seen = watch.look()
    watch.wait()
    assert (1, [5.0]) == (len(seen.snapshot.nodes), slept)
    assert "this cluster has no MPIJob resource" in seen.notes[0]
