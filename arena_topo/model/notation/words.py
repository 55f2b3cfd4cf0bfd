"""Amounts and counts as people write them, and names in the order in which people count."""

import re

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
