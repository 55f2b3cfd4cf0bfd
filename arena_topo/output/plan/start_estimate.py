"""When a job will probably start, as lines of text and as a document."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from arena_topo.model.job.start_estimate import StartEstimate
from arena_topo.model.notation.words import plural, written_duration
from arena_topo.output.lines import Line, Span

_MOST_NAMED = 3
_MINUTE = 60


def estimate_lines(estimate: StartEstimate, now: datetime) -> Iterator[Line]:
    """Yield when a job starts, after which jobs, and what that rests on, below the heading *When*."""
    yield [Span("When", "bold")]
    yield [Span(f"  {estimate_text(estimate, now)}", "")]
    for name, basis in list(zip(estimate.after, estimate.basis, strict=True))[:_MOST_NAMED]:
        yield [Span(f"  after {name} has ended", ""), Span(f", by {basis}", "dim")]
    if more := max(len(estimate.after) - _MOST_NAMED, 0) + estimate.more:
        yield [Span(f"  and {plural(more, 'other job')}", "")]


def estimate_text(estimate: StartEstimate, now: datetime) -> str:
    """Return when a job starts, seen from *now*: ``in about 40m (25m to 1h10m)``."""
    if estimate.earliest is None or estimate.likely is None or estimate.latest is None:
        return f"no estimate: {estimate.unknown}"
    if estimate.latest <= now:
        return "now"
    earliest, likely, latest = (
        _rough(at, now) for at in (estimate.earliest, estimate.likely, estimate.latest)
    )
    return f"in about {likely} ({earliest} to {latest})"


def waiting_text(estimate: StartEstimate, now: datetime) -> str:
    """Return when a job starts that still waits at *now*: estimates that were made before may not have come true."""
    if estimate.likely is None or estimate.latest is None or estimate.likely > now:
        return estimate_text(estimate, now)
    if estimate.latest <= now:
        return f"overdue for {_rough(now, estimate.latest)}: what it awaits takes longer than expected"
    return f"any moment, in {_rough(estimate.latest, now)} at the latest"


def after_text(estimate: StartEstimate) -> str:
    """Return what has to end first: ``after default/a (its deadline) and 2 other jobs``; empty where nothing has to, or nobody knows."""
    named = [
        f"{name} ({basis})"
        for name, basis in list(zip(estimate.after, estimate.basis, strict=True))[:_MOST_NAMED]
    ]
    more = max(len(estimate.after) - _MOST_NAMED, 0) + estimate.more
    *first, last = [*named, *([plural(more, "other job")] if more else [])] or [""]
    return f"after {', '.join(first)} and {last}" if first else last and f"after {last}"


def estimate_document(estimate: StartEstimate) -> dict[str, Any]:
    """Return *estimate* as a document; instants are RFC 3339, null where there is no estimate."""
    return {
        "earliest": _instant(estimate.earliest),
        "likely": _instant(estimate.likely),
        "latest": _instant(estimate.latest),
        "after": list(estimate.after),
        "basis": list(estimate.basis),
        "more": estimate.more,
        "unknown": estimate.unknown,
    }


def _instant(at: datetime | None) -> str | None:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def _rough(at: datetime, now: datetime) -> str:
    """Return the time from *now* to *at*; seconds of an estimate of more than some minutes would only look exact."""
    seconds = max((at - now).total_seconds(), 0.0)
    return written_duration(round(seconds / _MINUTE) * _MINUTE if seconds >= 10 * _MINUTE else round(seconds))
