"""What happened to a job: the events of the job itself and of everything that belongs to it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from arena_topo.kube.resources import EVENTS
from arena_topo.kube.session import Session
from arena_topo.model.job.job_view import JobView
from arena_topo.model.job.mpijob import launcher_name
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.objects import Object

_MOST = 10_000
"""Events of a namespace that are looked at."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event: what it is about (``pod/NAME``), what happened and why, and when it was last seen."""

    source: str
    kind: str
    reason: str
    message: str
    last_seen: datetime


def job_events(session: Session, job: JobView) -> tuple[JobEvent, ...]:
    """Return the events of *job* and its pods in the order of time, by what they are about; one call for each page.

    The API cannot be asked for the events of several objects, so those of the job's namespace are read.
    """
    names = {job.name, launcher_name(job.name), f"{job.name}-worker", f"{job.name}-gang"}
    names |= {instance.name for instance in job.instances}
    found: list[JobEvent] = []
    seen = 0
    for page in session.pages(EVENTS.path(job.namespace)):
        items = page.get("items") or []
        seen += len(items)
        found += _events_of(items, names)
        if seen >= _MOST:
            break
    first = {
        event.source: event.last_seen for event in sorted(found, key=lambda e: e.last_seen, reverse=True)
    }
    return tuple(sorted(found, key=lambda event: (first[event.source], event.source, event.last_seen)))


def _events_of(items: Iterable[Object], names: set[str]) -> Iterable[JobEvent]:
    for item in items:
        about = item.get("involvedObject") or {}
        if about.get("name") not in names:
            continue
        yield JobEvent(
            source=f"{str(about.get('kind') or '').lower()}/{about['name']}",
            kind=str(item.get("type") or ""),
            reason=str(item.get("reason") or ""),
            message=" ".join(str(item.get("message") or "").split()),
            last_seen=_last_seen(item),
        )


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
