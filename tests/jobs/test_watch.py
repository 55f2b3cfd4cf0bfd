"""A watch sees every change once, whatever happens to its streams."""

import time
from threading import Event

import pytest

from arena_topo.errors import ConnectionFailed, DocumentError
from arena_topo.jobs.watch import JobWatch, Watch, Watched
from arena_topo.model.job_view import JobStatus
from arena_topo.model.objects import TRAINING_JOB
from tests.contract.cluster import eventually
from tests.fakes import Answer, Broken, Call, Line, session
from tests.jobs.streams import JOBS, PODS, Endless, Streams, event, versioned
from tests.objects import condition, mpijob, pod

JOB = mpijob("job", workers=1)
FAILED = mpijob("job", workers=1, status={"conditions": [condition("Failed")]})
LAUNCHER, WORKER = pod("job-launcher-x", role="launcher"), pod("job-worker-0")
KEY = ("default", "job")


def test_a_change_of_a_pod_changes_its_job() -> None:
    """From the state of the list on."""
    waiting = pod("job-worker-0", phase="Pending")
    lines = {PODS: [[event("MODIFIED", versioned(WORKER, "8"))]]}
    watch = JobWatch(Streams({JOBS: [[JOB]], PODS: [[LAUNCHER, waiting]]}, lines).session(), name="job")
    assert JobStatus.PENDING is watch.views()[KEY].status

    assert watch.wait()
    assert JobStatus.RUNNING is watch.views()[KEY].status


def test_a_deleted_job_is_gone() -> None:
    """From the views as from the cluster."""
    lines = {JOBS: [[event("DELETED", versioned(JOB, "8"))]]}
    watch = JobWatch(Streams({JOBS: [[JOB]], PODS: [[]]}, lines).session())

    assert watch.wait()
    assert {} == watch.views()


def test_a_stream_that_ends_is_resumed_behind_what_it_said() -> None:
    """A bookmark says how far it came."""
    bookmark = {"metadata": {"resourceVersion": "9"}}
    lines: dict[str, list[list[Line]]] = {
        JOBS: [[event("BOOKMARK", bookmark)], [Broken], [event("MODIFIED", versioned(FAILED, "10"))]]
    }
    cluster = Streams({JOBS: [[JOB]], PODS: [[]]}, lines)
    watch = JobWatch(cluster.session(), name="job")

    assert watch.wait()
    assert JobStatus.FAILED is watch.views()[KEY].status
    asked = [
        call.query["resourceVersion"] for call in cluster.calls if "watch" in call.query and JOBS in call.path
    ]
    assert ["7", "9", "9"] == asked[:3]


def test_an_expired_watch_lists_again_and_misses_nothing() -> None:
    """What changed in between is a change like any other."""
    gone = event("ERROR", {"code": 410, "message": "too old resource version"})
    watch = JobWatch(
        Streams({JOBS: [[JOB], [FAILED]], PODS: [[LAUNCHER], []]}, {JOBS: [[gone]]}).session(), name="job"
    )

    assert watch.wait()
    view = watch.views()[KEY]
    assert (JobStatus.FAILED, ()) == (view.status, view.instances)


@pytest.mark.parametrize(
    "line",
    [
        b"<html>\n",
        b"5\n",
        b"[" * 100_000 + b"\n",
        b'{"type": "ADDED"}\n',
        b'{"type": 5, "object": {}}\n',
        b"\xff\n",
    ],
)
def test_a_line_that_is_no_event_is_an_error(line: bytes) -> None:
    """It does not end the stream's thread, whose reader would wait permanently."""
    watch = JobWatch(Streams({JOBS: [[JOB]], PODS: [[]]}, {JOBS: [[line]]}).session(), name="job")

    with pytest.raises(DocumentError, match="has a line that is no event"):
        watch.wait()


def test_an_event_without_metadata_belongs_to_nothing() -> None:
    """What every object has is made up where a server leaves
    it out, and pods without a job's name are nobody's.
    """
    lines = {PODS: [[event("ADDED", {"spec": {}}), event("ADDED", {"metadata": {"uid": "u"}})]]}
    watch = JobWatch(Streams({JOBS: [[JOB]], PODS: [[]]}, lines).session(), name="job")

    assert watch.wait()
    assert () == watch.views()[KEY].instances


def test_a_watch_that_always_expires_ends_with_its_time() -> None:
    """However often the server says that everything is to be listed again."""
    gone = event("ERROR", {"code": 410, "message": "too old resource version"})
    cluster = Streams({JOBS: [[JOB]], PODS: [[]]}, {JOBS: [[gone]] * 1000})
    watch = JobWatch(cluster.session(), name="job")

    assert not watch.wait(0.1)
    assert len(cluster.calls) < 10


def test_a_server_that_is_gone_is_an_error() -> None:
    """After a second try."""
    watch = JobWatch(Streams({JOBS: [[JOB]], PODS: [[]]}, {JOBS: [[Broken], [Broken]]}).session(), name="job")

    with pytest.raises(ConnectionFailed):
        watch.wait()


def test_waiting_ends_when_the_time_is_over() -> None:
    """Without a change."""
    watch = JobWatch(Streams({JOBS: [[JOB]], PODS: [[]]}).session(), name="job")

    assert not watch.wait(timeout=0.001)


MAY_COME = Event()


class Later(Answer):
    """A stream whose lines but the first come once they may, and that counts how often one was asked for."""

    asked = 0

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line, and be silent after the last."""
        self.asked += 1
        if self.asked > 1:
            MAY_COME.wait()
        return super().readline(limit) if self.lines else Endless().readline(limit)


def test_changes_that_are_gathered_are_read_in_the_end() -> None:
    """A thread that woke for each of them would take several times as long."""
    versions = [str(number) for number in range(8, 13)]
    stream = Later(lines=[event("MODIFIED", versioned(JOB, version)) for version in versions])
    asked: list[int] = []

    def meanwhile() -> None:
        MAY_COME.set()
        eventually(lambda: stream.asked == 2, "the line that was asked for before")
        # In this time the others would be read as well.
        time.sleep(0.05)
        asked.append(stream.asked)

    def answer(call: Call) -> Answer:
        return stream if "watch" in call.query else Answer(body={"items": []})

    watch = Watch(session(answer)[0], [Watched(f"/apis/kubeflow.org/v2beta1/{JOBS}", TRAINING_JOB)])
    changes = watch.wait()
    assert 1 == len(changes)

    changes += watch.gathered(meanwhile)
    assert [2] == asked
    while len(changes) < len(versions):
        changes += watch.wait()
    assert versions == [change.object["metadata"]["resourceVersion"] for change in changes]
