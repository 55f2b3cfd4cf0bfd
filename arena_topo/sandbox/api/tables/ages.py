"""Spans of time as tables show them."""

from datetime import UTC, datetime


def _parse(text: str) -> datetime:
    return datetime.fromisoformat(text)


def human(seconds: int) -> str:
    """Return a span as k8s.io/apimachinery's HumanDuration does, with a second unit where it matters."""
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    for (size, unit), (below, small), exact in (
        ((60, "m"), (1, "s"), 600),
        ((3600, "h"), (60, "m"), 8 * 3600),
        ((86400, "d"), (3600, "h"), 8 * 86400),
        ((31_536_000, "y"), (86400, "d"), 8 * 31_536_000),
    ):
        limit = {"m": 3 * 3600, "h": 48 * 3600, "d": 2 * 31_536_000, "y": float("inf")}[unit]
        if seconds < limit:
            rest = seconds % size // below
            return f"{seconds // size}{unit}" + (f"{rest}{small}" if rest and seconds < exact else "")
    return ""


def age(created: str) -> str:
    """Return how long ago *created* was."""
    if not created:
        return "<unknown>"
    return human(int((datetime.now(UTC) - _parse(created)).total_seconds()))


def span(start: str, end: str) -> str:
    """Return the time from *start* to *end*, or to now."""
    if not start:
        return ""
    until = _parse(end) if end else datetime.now(UTC)
    return human(int((until - _parse(start)).total_seconds()))
