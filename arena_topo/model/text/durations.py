"""Durations as Go programs read and print them, and instants as the API server writes them."""

import re
from datetime import UTC, datetime
from functools import lru_cache

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST = 2**63 / 1e9
"""Seconds; Go counts nanoseconds in 64 bits, which are 292 years."""
_TERM = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)"
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
# Zero is the only duration that Go reads without a unit.
_ZERO = {"0", "+0", "-0"}


def parse_duration(text: str) -> float:
    """Return the seconds of a Go duration such as ``1h30m`` or ``500ms``.

    Raises ``ValueError`` when *text* is not a duration by the rules of Go's ``time.ParseDuration``.
    """
    if text in _ZERO:
        return 0.0
    terms = list(re.finditer(_TERM, text, re.ASCII))
    if not terms or "".join(term.group() for term in terms) != text:
        raise ValueError(f"{text!r} is not a duration such as 30s, 5m or 1h30m")
    seconds = sum(float(term.group(1)) * _UNIT_SECONDS[term.group(2)] for term in terms)
    if not seconds < _LONGEST:
        raise ValueError(f"{text[:80]!r} is longer than the 292 years that a duration may have")
    return seconds


def short_duration(seconds: float) -> str:
    """Return *seconds* in the one largest whole unit, as Arena's ``ShortHumanDuration`` does.

    It truncates: 59s, 59m, 23h, 364d, then years; ``<invalid>`` below minus one second.
    """
    whole = int(seconds)
    if whole < -1:  # clocks of two machines may differ by a second
        return "<invalid>"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h"), (31_536_000, 86400, "d")):
        if whole < limit:
            return f"{max(whole, 0) // size}{unit}"
    return f"{whole // 31_536_000}y"


# An object has the instant of its creation in several fields, and each is checked before it is read.
@lru_cache(maxsize=4096)
def parse_instant(text: str) -> datetime:
    """Return the instant of an RFC 3339 text with any number of fractional digits.

    Raises ``ValueError`` when *text* is not such an instant or has no zone.
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-11-21T08:00:00Z")
    base, fraction, zone = match.groups()
    micros = ((fraction or "0") + "000000")[:6]  # datetime has no finer fractions
    try:
        return datetime.fromisoformat(f"{base}.{micros}{'+00:00' if zone == 'Z' else zone}").astimezone(UTC)
    except OverflowError as error:  # the last hours of 9999, west of Greenwich
        raise ValueError(f"{text!r} is beyond the calendar") from error
