"""Kubernetes resource quantities, exactly.

A quantity is a decimal number with an SI suffix, a binary suffix or an exponent:
``500m``, ``1.5``, ``2Gi``, ``1e3``. Source: ``k8s.io/apimachinery/pkg/api/resource``.
"""

import re
from collections.abc import Iterable, Mapping
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
    """Return *quantity* times a ratio, in its base unit (cores, bytes, devices), rounded up to a thousandth."""
    value = parse_quantity(quantity) * numerator / denominator
    rounded = value.quantize(Decimal("0.001"), rounding="ROUND_CEILING").normalize()
    # Without :f a normalized 100 would be written as 1E+2.
    return f"{rounded:f}"


def checked_quantity(flag: str, text: str) -> str:
    """Return *text* unchanged when it is a quantity that is not negative, else raise ``UsageError``."""
    try:
        value = parse_quantity(text)
    except ValueError:
        value = Decimal(-1)
    if value < 0:
        raise UsageError(
            f"{flag} is invalid: {text!r} is not a quantity",
            hint="write a number with an optional unit, for example 500m, 4, 512Mi or 16Gi",
        )
    # The API server would count it as the most that 64 bits hold, and not as what was typed.
    if value > _MOST:
        raise UsageError(f"{flag} is invalid: {shown(text)} is more than a quantity can be")
    return text
