"""What a job of any kind says about its run time: its work, when it started, by when it ends, and how long it ran."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from arena_topo.errors import DocumentError
from arena_topo.jobs.status.conditions import SUCCEEDED, true_condition
from arena_topo.jobs.status.view import requested_gpus
from arena_topo.kinds.table import kind_of
from arena_topo.model.job.kind import containers, planned_replicas
from arena_topo.model.job.start_estimate import End
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.objects import Object
from arena_topo.planner.reservations.run_time import PastRun, RunHistory, RunRange, Work

_MOST_SECONDS = 2**31
_DEADLINES = (("runPolicy", "activeDeadlineSeconds"), ("activeDeadlineSeconds",))
"""Where the kinds have the longest that a job may run."""


def work_of(job: Object) -> Work:
    """Return what *job* is, as far as its run time depends on it. Raises ``DocumentError`` for none of our kinds."""
    kind = kind_of(job)
    planned = planned_replicas(kind, job)
    images = (str(each.get("image", "")) for pods in reversed(planned) for each in containers(pods.template))
    meta = job["metadata"]
    return Work(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        image=next(images, ""),
        pods=sum(pods.count for pods in planned),
        gpus=requested_gpus(kind, job),
    )


def history_of(jobs: Iterable[Object]) -> RunHistory:
    """Return how long those of *jobs* ran that have succeeded."""
    ended = filter(None, map(past_run, jobs))
    return RunHistory.of(run for _, run in sorted(ended, key=lambda one: one[0]))


def past_run(job: Object) -> tuple[datetime, PastRun] | None:
    """Return when *job* succeeded, and how long it ran, None where it did not; one that failed says nothing about jobs like it."""
    done, began = true_condition(job, *SUCCEEDED), started(job)
    at = (job.get("status") or {}).get("completionTime") or (done or {}).get("lastTransitionTime")
    if done is None or began is None or not at:
        return None
    ends = parse_instant(at)
    try:
        # Of a status that somebody made up as well.
        seconds = min(max((ends - began).total_seconds(), 0.0), _MOST_SECONDS)
        return ends, PastRun(work_of(job), seconds)
    except DocumentError:
        # An object that calls itself something else among the jobs of a kind is not one of them.
        return None


def started(job: Object) -> datetime | None:
    """Return when *job* started, None where it did not."""
    text = (job.get("status") or {}).get("startTime") or (true_condition(job, "Running") or {}).get(
        "lastTransitionTime"
    )
    return parse_instant(text) if text else None


def end_of(job: Object, history: RunHistory, now: datetime) -> End | None:
    """Return when *job*, which has its place, will probably end, None where that is not known."""
    return history.end_of(
        work_of(job), min(started(job) or now, now), now, deadline=deadline_of(job), reported=_reported(job)
    )


def runs_for(job: Object, history: RunHistory) -> RunRange | None:
    """Return how long *job*, which has not started, will probably run, None where that is not known."""
    return history.runs_for(work_of(job), deadline_of(job))


def limit_of(job: Object) -> timedelta | None:
    """Return the longest that *job* may run, None where nothing limits it."""
    found = (_seconds(job["spec"], path) for path in _DEADLINES)
    return next((timedelta(seconds=seconds) for seconds in found if seconds), None)


def deadline_of(job: Object) -> timedelta | None:
    """Return the longest that *job* will probably run by what it says, None where it says nothing.

    A JobSet has no limit of its own: it says how long the first of its jobs may run, which begins anew with each restart.
    """
    first = next(iter(job["spec"].get("replicatedJobs") or ()), None)
    seconds = _seconds(first, ("template", "spec", "activeDeadlineSeconds"))
    return limit_of(job) or (timedelta(seconds=seconds) if seconds else None)


def _reported(job: Object) -> timedelta | None:
    """Return how much longer *job* says that it goes on, as a TrainJob does whose trainer reports its progress."""
    seconds = _seconds(job.get("status") or {}, ("trainerStatus", "estimatedRemainingSeconds"))
    return timedelta(seconds=seconds) if seconds else None


def _seconds(within: Any, path: Iterable[str]) -> int | None:
    """Return the whole seconds at *path*, None for anything else; fields that a shape does not check may hold anything."""
    value = within
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MOST_SECONDS:
        return None
    return value
