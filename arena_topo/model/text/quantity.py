"""Kubernetes resource quantities, exactly.

A quantity is a decimal number with an SI suffix, a binary suffix or an exponent:
``500m``, ``1.5``, ``2Gi``, ``1e3``. Source: ``k8s.io/apimachinery/pkg/api/resource``.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from arena_topo.errors import UsageError
from arena_topo.model.text.json import MOST_NUMBER, shown

_SUFFIX = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
# An E before digits begins an exponent; without them it is the suffix of 10**18.
_QUANTITY = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII
)

_LONGEST = 64
"""Characters of a quantity; the API server itself writes twenty at most."""
_MOST = Decimal(MOST_NUMBER)

Resources = Mapping[str, int]
"""Amounts by resource name: ``cpu`` in millicores, everything else in its own unit (bytes, devices, pods)."""


# A cluster has thousands of pods, and few different quantities among them.
@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Decimal:
    """Return the value of *text* in its base unit (cores, bytes, devices).

    Raises ``ValueError`` when *text* is not a quantity.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f"{shown(text)} is not a quantity")
    number, exponent, suffix = match.groups()
    try:
        return Decimal(number + (exponent or "")) * _SUFFIX[suffix or ""]
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a quantity") from error


@lru_cache(maxsize=16384)
def amount(resource: str, quantity: str | float) -> int:
    """Return *quantity* of *resource* as a whole number, rounded up as kube-scheduler does.

    ``cpu`` counts in millicores, every other resource in its own unit. Raises ``ValueError``.
    """
    # JSON and YAML may hold a quantity as a number.
    value = parse_quantity(str(quantity))
    if resource == "cpu":
        value *= 1000
    # As the API server does: what is beyond 64 bits counts as the most that they hold.
    bounded = min(max(value, -_MOST), _MOST)
    return int(bounded.to_integral_value(rounding="ROUND_CEILING"))


def resources(quantities: Mapping[str, str | float] | None) -> dict[str, int]:
    """Return every quantity of a ``requests``, ``limits`` or ``allocatable`` map as an amount."""
    return {name: amount(name, quantity) for name, quantity in (quantities or {}).items()}


def total(parts: Iterable[Resources]) -> dict[str, int]:
    """Return the sum of *parts*, resource by resource."""
    summed: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            summed[name] = summed.get(name, 0) + value
    return summed


def times(quantity: str, numerator: int, denominator: int = 1) -> str:
    """Return *quantity* times a ratio, in its base unit (cores, bytes, devices), rounded up to 0.001."""
    value = parse_quantity(quantity) * numerator / denominator
    rounded = value.quantize(Decimal("0.001"), rounding="ROUND_CEILING").normalize()
    # Without :f a normalized 100 would be written as 1E+2.
    return f"{rounded:f}"


def quantities(requests: Resources) -> dict[str, str]:
    """Return *requests* as the API writes them: cpu in cores, everything else in its own unit."""
    return {name: times(f"{value}m", 1) if name == "cpu" else str(value) for name, value in requests.items()}


def checked_quantity(flag: str, text: str) -> str:
    """Return *text* unchanged when it is a quantity that is not negative, else raise ``UsageError``."""
    try:
        value = parse_quantity(text)
    except ValueError:
        value = Decimal(-1)
    if value < 0:
        raise UsageError(
            f"{flag}: {text!r} is not a quantity",
            hint="write a number with an optional unit, for example 500m, 4, 512Mi or 16Gi",
        )
    # The API server would count it as the most that 64 bits hold, and not as what was typed.
    if value > _MOST:
        raise UsageError(f"{flag}: {shown(text)} is more than a quantity can be")
    return text


# Durations as Go programs read and print them, and instants as the API server writes them.

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_DURATION = 2**63 / 1e9
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
    if not seconds < _LONGEST_DURATION:
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
