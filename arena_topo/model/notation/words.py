"""Amounts and counts as people write them, and names in the order in which people count."""

import re
from collections.abc import Sequence

_GIB = 2**30
_BYTES = frozenset({"memory", "ephemeral-storage"})
_LETTERS_AND_DIGITS = re.compile(r"([^0-9]*)([0-9]{0,253})")  # no name is longer, and no number in one


def plural(count: int, noun: str) -> str:
    """Return ``1 node`` or ``2 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def last_part(name: str) -> str:
    """Return a label key without its prefix, as people say it: ``zone`` for ``topology.kubernetes.io/zone``."""
    return name.rpartition("/")[2]


def written_rate(rate: float | None) -> str:
    """Return a rate in GB/s for a table, or a dash where it is not known."""
    return "-" if rate is None else f"{rate:.4g}"


def written_amount(resource: str, amount: int) -> str:
    """Return *amount* of *resource* with its unit: cpu in cores, bytes in GiB, devices by count."""
    if resource == "cpu":
        return f"{amount / 1000:g} cpu"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return f"{amount / _GIB:.3g} GiB of {resource}"
    return plural(amount, "pod place") if resource == "pods" else f"{amount} {resource}"


def natural_sort_key(name: str) -> tuple[tuple[str, int], ...]:
    """Return the key that sorts *name* as people count: gpu-9 before gpu-10."""
    return tuple((letters, int(digits or 0)) for letters, digits in _LETTERS_AND_DIGITS.findall(name))


def runs(numbers: Sequence[int]) -> str:
    """Return ascending *numbers* with runs shortened: 0, 1, 2, 3 and 7 are ``0-3,7``."""
    bounds: list[list[int]] = []
    for number in numbers:
        if bounds and number == bounds[-1][-1] + 1:
            # The run grows: its first number stays, and this one is its last.
            bounds[-1][1:] = [number]
        else:
            bounds.append([number])
    return ",".join("-".join(map(str, run)) for run in bounds)
