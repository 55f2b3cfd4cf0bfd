"""What happened to a job: the events of the job itself and of everything that belongs to it."""

import re
from datetime import UTC, datetime

from arena_topo.kube.resources import EVENTS
from arena_topo.kube.session import Session
from arena_topo.model.job.job_view import JobEvent, JobView
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.objects import Object

_PART = re.compile(r"launcher(-[a-z0-9]+)?|worker(-\d+(-gpus)?)?|gang|config|ssh")
"""What follows the job's name: its pods and their batch Job or StatefulSet, claims, pod group, and files."""

_MOST = 10_000
"""Events of a namespace that are looked at."""


def job_events(session: Session, job: JobView) -> tuple[JobEvent, ...]:
    """Return the events of *job* and its pods in the order of time, by what they are about; one call for each page.

    The API cannot be asked for the events of several objects, so those of the job's namespace are read.
    """
    found: list[JobEvent] = []
    seen = 0
    for page in session.pages(EVENTS.path(job.namespace)):
        items = page.get("items") or []
        seen += len(items)
        found += [event for item in items if (event := event_of_job(item, job.name))]
        if seen >= _MOST:
            break
    first = {
        event.source: event.last_seen for event in sorted(found, key=lambda e: e.last_seen, reverse=True)
    }
    return tuple(sorted(found, key=lambda event: (first[event.source], event.source, event.last_seen)))


def event_of_job(item: Object, job: str) -> JobEvent | None:
    """Return the event *item*, None where it is not about the job *job* or what belongs to it."""
    about = item.get("involvedObject") or {}
    kind, name = str(about.get("kind") or ""), str(about.get("name") or "")
    # Another job may be called like a part of this one.
    if name != job and (kind == "MPIJob" or not _part_of(job, name)):
        return None
    return JobEvent(
        source=f"{kind.lower()}/{name}",
        kind=str(item.get("type") or ""),
        reason=str(item.get("reason") or ""),
        message=" ".join(str(item.get("message") or "").split()),
        last_seen=_last_seen(item),
    )


def _part_of(job: str, name: str) -> bool:
    """Whether *name* is what operators and arena-topo call a part of *job*, also one that is gone."""
    return name.startswith(f"{job}-") and _PART.fullmatch(name[len(job) + 1 :]) is not None


def _last_seen(item: Object) -> datetime:
    # Newer reporters count in a series, and set eventTime alone at first.
    moments = (
        (item.get("series") or {}).get("lastObservedTime"),
        item.get("lastTimestamp"),
        item.get("eventTime"),
        (item.get("metadata") or {}).get("creationTimestamp"),
    )
    for moment in moments:
        try:
            if moment:
                return parse_instant(str(moment))
        except ValueError:
            continue
    return datetime.fromtimestamp(0, UTC)
