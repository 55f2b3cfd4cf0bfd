"""The events of a job are those of everything that belongs to it, and of nothing else."""

from datetime import UTC, datetime
from typing import Any

from arena_topo.jobs.status import job_events
from arena_topo.model.job_view import Instance, JobStatus, JobView
from tests.fakes import Answer, in_turn, session

NOW = datetime(2026, 1, 2, tzinfo=UTC)
POD = Instance("job-worker-0", "Pending", False, 1, 0.0, NOW)
JOB = JobView("job", "ml", "u", "v2beta1", JobStatus.PENDING, "", NOW, 0.0, None, (POD,), 1, 0)


def event(kind: str, name: str, minute: int, **fields: Any) -> Any:
    """Return an event, last seen in a *minute* of the day."""
    return {
        "involvedObject": {"kind": kind, "name": name},
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": "0/3 nodes\nare available",
        "lastTimestamp": f"2026-01-01T00:{minute:02}:00Z",
        **fields,
    }


def test_events_are_those_of_the_job_by_what_they_are_about() -> None:
    """The oldest object first, each in the order of time, on one line each."""
    items = [
        event("Pod", "job-worker-0", 5),
        event("Pod", "other", 1),
        event("Pod", "job-worker-0", 3),
        event("MPIJob", "job", 1),
        {},
        {"involvedObject": {"kind": "Pod", "name": "job-worker-0"}, "lastTimestamp": "nonsense"},
    ]
    opened, transport = session(in_turn(Answer(body={"items": items})))
    found = job_events(opened, JOB)

    assert "/api/v1/namespaces/ml/events" == transport.calls[0].path
    assert [("pod/job-worker-0", 0), ("pod/job-worker-0", 3), ("pod/job-worker-0", 5), ("mpijob/job", 1)] == [
        (each.source, each.last_seen.minute) for each in found
    ]
    assert "0/3 nodes are available" == found[1].message


def test_a_series_is_as_old_as_its_last_event() -> None:
    """Newer reporters write it so."""
    item = event("Pod", "job-worker-0", 1, series={"lastObservedTime": "2026-01-01T00:09:00.000000Z"})
    opened, _ = session(in_turn(Answer(body={"items": [item]})))

    assert [9] == [each.last_seen.minute for each in job_events(opened, JOB)]


def test_pages_have_an_end() -> None:
    """A namespace may have any number of events."""
    opened, transport = session(
        lambda _: Answer(body={"items": [{}] * 5000, "metadata": {"continue": "more"}})
    )

    assert () == job_events(opened, JOB)
    assert 2 == len(transport.calls)
