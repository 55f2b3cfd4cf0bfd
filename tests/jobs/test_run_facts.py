"""What jobs tell of their run times, in each kind's own place."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arena_topo.jobs.when import (
    deadline_of,
    end_of,
    history_of,
    limit_of,
    runs_for,
    started,
    work_of,
)
from arena_topo.model.objects import Object
from arena_topo.planner.start_time import RunHistory, Work
from tests.objects import condition, mpijob

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)


def ran(name: str, minutes: int, kind: str = "Succeeded") -> Object:
    """Return a job that ended at three o'clock after so many *minutes*."""
    began = NOW - timedelta(minutes=minutes)
    status = {
        "startTime": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "completionTime": "2026-11-21T03:00:00Z",
        "conditions": [condition(kind)],
    }
    return mpijob(name, status=status)


def test_a_work_is_the_image_and_size_of_the_workers() -> None:
    """The launcher's image may be any."""
    assert Work("default", "bert-1", "i", 4, 4) == work_of(mpijob("bert-1"))


def test_the_runs_that_succeeded_are_the_history() -> None:
    """One that failed tells nothing, nor one that never started."""
    history = history_of([ran("bert-1", 50), ran("bert-2", 60), ran("bert-3", 1, "Failed"), mpijob("bert-4")])
    rest = runs_for(mpijob("bert-5"), history)
    assert rest is not None
    assert (timedelta(minutes=55), "2 earlier runs of bert") == (rest.likely, rest.basis)


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({"runPolicy": {"activeDeadlineSeconds": 60}}, 60),
        ({"activeDeadlineSeconds": 60}, 60),
        ({"replicatedJobs": [{"template": {"spec": {"activeDeadlineSeconds": 60}}}]}, 60),
        ({}, None),
        ({"runPolicy": {"activeDeadlineSeconds": 0}}, None),
        ({"runPolicy": {"activeDeadlineSeconds": True}}, None),
        ({"runPolicy": {"activeDeadlineSeconds": "60"}}, None),
        ({"runPolicy": {"activeDeadlineSeconds": 2**63}}, None),
        ({"runPolicy": [], "replicatedJobs": [3]}, None),
    ],
)
def test_a_deadline_is_read_where_the_kind_has_it(spec: Any, seconds: int | None) -> None:
    """And anything that is none is left out."""
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert expected == deadline_of({"spec": spec})


def test_the_deadline_of_a_jobsets_first_job_is_no_limit_of_the_jobset() -> None:
    """Its jobs begin again with each restart, so that nobody may count on its end."""
    jobs = [{"template": {"spec": {"activeDeadlineSeconds": 60}}}]
    assert None is limit_of({"spec": {"replicatedJobs": jobs}})
    assert timedelta(seconds=60) == limit_of({"spec": {"runPolicy": {"activeDeadlineSeconds": 60}}})


def test_a_job_without_a_start_time_started_when_its_condition_says() -> None:
    """A JobSet has no other."""
    assert None is started(mpijob("a"))
    running = mpijob("a", status={"conditions": [condition("Running")]})
    assert running["status"]["conditions"][0]["lastTransitionTime"] == (
        (began := started(running)) and began.strftime("%Y-%m-%dT%H:%M:%SZ")
    )


@pytest.mark.parametrize(("rest", "known"), [(600, True), (-1, False), ("x", False), (None, False)])
def test_a_job_may_report_how_long_it_goes_on(rest: Any, *, known: bool) -> None:
    """As a TrainJob does in its status; what is no number of seconds is not believed."""
    job = mpijob("a", status={"trainerStatus": {"estimatedRemainingSeconds": rest}})
    end = end_of(job, RunHistory(), NOW)
    assert known == (end is not None)
    if end:
        assert (NOW + timedelta(minutes=10), "what it reports itself") == (end.likely, end.basis)
