"""A list of jobs takes few calls however many there are, and says of each what ``get`` says."""

from typing import Any

import pytest

from arena_topo.errors import Forbidden, NotFound
from arena_topo.jobs.lists import list_jobs
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job_view import JobStatus
from tests.fakes import Answer, Call, FakeTransport, Script, refusal, session, unserved
from tests.objects import condition, mpijob, pod

MANY = 200
"""Workers, of which not all are read whole."""

LAUNCHER = pod("job-launcher-x", role="launcher", hostIP="10.0.0.9")


def table(*rows: tuple[str, str, str]) -> Answer:
    """Return pods as the server prints them for kubectl: name, status and node."""
    names = ("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node")
    cells = [[name, "1/1", word, 0, "1m", "10.1.0.1", node] for name, word, node in rows]
    return Answer(
        body={
            "kind": "Table",
            "columnDefinitions": [{"name": name} for name in names],
            "rows": [{"cells": row, "object": {"metadata": {"namespace": "default"}}} for row in cells],
        }
    )


def newest_version_with(jobs: list[Any], rows: Answer, launchers: list[Any]) -> Script:
    """Return a script of a cluster with these jobs in the newest version."""

    def script(call: Call) -> Answer:
        if call.path.endswith("/mpijobs"):
            return Answer(body={"items": jobs}) if "v2beta1" in call.path else unserved()
        return rows if "includeObject" in call.query else Answer(body={"items": launchers})

    return script


def called(transport: FakeTransport) -> list[str]:
    """Return the resources that were asked for; some are asked for at the same time, in any order."""
    return [call.path.rpartition("/")[2] for call in transport.calls]


@pytest.mark.parametrize(
    ("word", "node", "status", "allocated"),
    [
        ("Running", "n1", JobStatus.RUNNING, 1),
        ("Terminating", "n1", JobStatus.RUNNING, 1),
        ("Error", "n1", JobStatus.RUNNING, 0),
        ("Completed", "n1", JobStatus.RUNNING, 0),
        ("Pending", "<none>", JobStatus.PENDING, 0),
        ("SchedulingGated", "<none>", JobStatus.PENDING, 0),
        ("ContainerCreating", "n1", JobStatus.PENDING, 1),
        ("Init:0/1", "n1", JobStatus.PENDING, 1),
        ("ImagePullBackOff", "n1", JobStatus.PENDING, 1),
        ("ErrImagePull", "n1", JobStatus.PENDING, 1),
        ("CrashLoopBackOff", "n1", JobStatus.PENDING, 1),
    ],
)
def test_a_line_says_enough_of_a_worker(word: str, node: str, status: JobStatus, allocated: int) -> None:
    """Whether it keeps its job from running, and whether it holds its GPUs."""
    opened, _ = session(
        newest_version_with([mpijob("job", workers=MANY)], table(("job-worker-0", word, node)), [LAUNCHER])
    )
    (job,) = list_jobs(opened)

    assert (status, MANY, allocated) == (job.status, job.requested_gpus, job.allocated_gpus)
    assert job.chief is not None
    assert "10.0.0.9" == job.chief.node_ip


def test_few_jobs_take_three_calls() -> None:
    """The jobs, all their pods, and what else is served."""
    worker = pod("job-worker-0", phase="Pending")
    opened, transport = session(newest_version_with([mpijob("job", workers=1)], table(), [LAUNCHER, worker]))
    (job,) = list_jobs(opened, selector="team=a")

    assert (JobStatus.PENDING, 1) == (job.status, job.requested_gpus)
    assert ["apis", "mpijobs", "pods"] == sorted(called(transport))
    assert "team=a" == next(call for call in transport.calls if "mpijobs" in call.path).query["labelSelector"]


@pytest.mark.parametrize("all_namespaces", [False, True])
def test_many_take_four(all_namespaces: bool) -> None:
    """Launchers and workers apart, of which the lines are
    enough; their metadata only where namespaces matter.
    """
    rows = table(("job-worker-0", "Running", "n1"), ("other-worker-0", "Pending", "<none>"))
    opened, transport = session(newest_version_with([mpijob("job", workers=MANY)], rows, [LAUNCHER]))
    (job,) = list_jobs(opened, all_namespaces=all_namespaces)
    lines = next(call for call in transport.calls if "includeObject" in call.query)

    assert JobStatus.RUNNING is job.status
    assert ["apis", "mpijobs", "pods", "pods"] == sorted(called(transport))
    assert ("Metadata" if all_namespaces else "None") == lines.query["includeObject"]
    assert all_namespaces == ("namespaces" not in lines.path)


def test_every_page_is_read() -> None:
    """Also those behind one in which nothing matches; few jobs on a page are no sign of few pods."""
    first, second = mpijob("first"), mpijob("second")

    def script(call: Call) -> Answer:
        if not call.path.endswith("/mpijobs"):
            return newest_version_with([], table(), [])(call)
        pages = {None: ([], "1"), "1": ([first], "2"), "2": ([second], "")}
        items, following = pages[call.query.get("continue")]
        return Answer(body={"items": items, "metadata": {"continue": following}})

    opened, transport = session(script)

    assert ["first", "second"] == [job.name for job in list_jobs(opened)]
    assert 2 == called(transport).count("pods")


def test_what_fails_meanwhile_is_told() -> None:
    """As if it had been asked for alone."""

    def script(call: Call) -> Answer:
        if "pods" in call.path and "includeObject" not in call.query:
            return refusal(403, "Forbidden", "pods is forbidden")
        return newest_version_with([mpijob("job", workers=MANY)], table(), [])(call)

    with pytest.raises(Forbidden, match="pods is forbidden"):
        list_jobs(session(script)[0])


def test_an_empty_list_takes_two() -> None:
    """There are no pods to ask for, only whether other kinds are served."""
    opened, transport = session(newest_version_with([], table(), []))

    assert ([], 2) == (list_jobs(opened), len(transport.calls))


def test_whole_jobs_take_three_calls() -> None:
    """With all that get shows, plans included."""
    opened, transport = session(
        newest_version_with([mpijob("job")], table(), [LAUNCHER, pod("job-worker-0")])
    )
    (job,) = list_jobs(opened, whole=True)

    assert ["job-launcher-x", "job-worker-0"] == [one.name for one in job.instances]
    assert 3 == len(transport.calls)


def test_the_newest_job_stands_first() -> None:
    """And those of one second in the order in which people count."""
    jobs = [mpijob(name) for name in ("a10", "a9", "b")]
    jobs[2]["metadata"]["creationTimestamp"] = "2026-11-21T02:00:00Z"
    opened, _ = session(newest_version_with(jobs, table(), []))

    assert ["b", "a9", "a10"] == [job.name for job in list_jobs(opened)]


def test_a_job_of_v1alpha1_ends_when_its_launchers_job_does() -> None:
    """One more call, where a job has ended."""
    job = mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Succeeded"})
    batch = {
        "metadata": {"name": "job-launcher", "namespace": "default"},
        "status": {"completionTime": "2026-11-21T01:03:00Z"},
    }

    def script(call: Call) -> Answer:
        if call.path.endswith("/mpijobs"):
            return Answer(body={"items": [job]}) if "v1alpha1" in call.path else unserved()
        if call.path.endswith("/jobs"):
            return Answer(body={"items": [batch]})
        return table() if "includeObject" in call.query else Answer(body={"items": []})

    (view,) = list_jobs(session(script)[0])
    assert (JobStatus.SUCCEEDED, 180.0) == (view.status, view.duration)


def test_a_job_that_failed_is_shown_as_get_shows_it() -> None:
    """By its condition."""
    job = mpijob("job", status={"conditions": [condition("Failed", message="out of memory")]})
    (view,) = list_jobs(session(newest_version_with([job], table(), []))[0])

    assert (JobStatus.FAILED, "out of memory") == (view.status, view.message)


def test_without_the_operator_there_is_one_error() -> None:
    """As for get."""
    with pytest.raises(NotFound, match="has no MPIJob resource"):
        list_jobs(session(lambda _: unserved())[0])
