"""Amounts and counts as people write them, and names in the order in which people count."""

import re
from collections.abc import Sequence
from itertools import pairwise

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_KIBI = 1024
_THREE_DIGITS = 100
_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_BYTES = frozenset({"memory", "ephemeral-storage"})
_LETTERS_AND_DIGITS = re.compile(r"([^0-9]*)([0-9]{0,253})")  # no name is longer, and no number in one


def plural(count: int, noun: str) -> str:
    """Return ``1 node`` or ``2 nodes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def counted_role(count: int, role: str) -> str:
    """Return ``1 chief``, ``3 workers`` or ``2 ps``, which has no other plural."""
    return f"{count:,} {role}" if role.endswith("s") else plural(count, role)


def elided(text: str, longest: int) -> str:
    """Return *text* with its middle left out where it is longer: names of nodes differ at their ends.

    ``cn-shanghai.192.168.16.172`` in 21 letters is ``cn-shangha….168.16.172``, less one.
    """
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def last_part(name: str) -> str:
    """Return a label key without its prefix: ``zone`` for ``topology.kubernetes.io/zone``."""
    return name.rpartition("/")[2]


def placed_words(nodes: int, level: str, domain: str) -> str:
    """Return where so many *nodes* are, by their closest domain.

    >>> placed_words(1, "node", "a"), placed_words(2, "example.com/rack", "r0")
    ('node a', '2 nodes in rack r0')
    >>> placed_words(9, "cluster", "cluster")
    '9 nodes in the cluster'
    """
    if level == "node":
        return f"node {domain}"
    if level == "cluster":
        return f"{plural(nodes, 'node')} in the cluster"
    return plural(nodes, "node") + (f" in {last_part(level)} {domain}" if domain else "")


def written_rate(rate: float | None) -> str:
    """Return a rate in GB/s for a table, or a dash where it is not known."""
    return "-" if rate is None else f"{rate:.4g}"


def written_bytes(count: float) -> str:
    """Return *count* bytes in the largest unit that fits, in three digits: ``10.2 TiB``, ``80 GiB``."""
    value, unit = float(count), 0
    # What is written as 1024 GiB is a whole TiB.
    while round(value) >= _KIBI and unit < len(_BINARY) - 1:
        value, unit = value / _KIBI, unit + 1
    # Three significant digits of 1000 and more would be written with an exponent.
    number = f"{value:.0f}" if value >= _THREE_DIGITS else f"{value:.3g}"
    return f"{number} {_BINARY[unit]}"


def written_duration(seconds: float) -> str:
    """Return *seconds* in two units at most: ``0.5s``, ``59s``, ``4m03s``, ``2h``, ``2d03h``."""
    if seconds < 1:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    for (unit, size), (finer, part) in pairwise(_UNITS):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{unit}" + (f"{rest:02}{finer}" if rest else "")
    return f"{whole}s"


def written_amount(resource: str, amount: int) -> str:
    """Return *amount* of *resource* with its unit: cpu in cores, bytes in binary units, devices by count."""
    if resource == "cpu":
        return f"{amount / 1000:g} cpu"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return f"{written_bytes(amount)} of {resource}"
    return plural(amount, "pod slot") if resource == "pods" else f"{amount} {resource}"


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


# What others wrote, as it may stand in a terminal, a picture or a page: every character can be seen.
#
# Names, messages and annotations may hold terminal escape sequences, line breaks that forge further lines,
# characters that turn the direction of what follows, and characters of no width. Each is written as Python
# writes it in a literal: ``\x1b``, ``\n``, ``\u202e``.

# What Unicode calls controls, formats (directions, zero widths, tags), surrogates, private and unassigned
# characters, and separators other than the blank. Lists of ranges would age with each version of Unicode;
# Python has them.
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_WIDEST = 0xFFFF
"""The last character that four digits write."""


def printable(text: str, *, keep: str = "") -> str:
    """Return *text* with every character that cannot be seen written out, except for those in *keep*."""
    # Nearly every text is printable as it is.
    if text.isprintable():
        return text
    return _NOT_ASCII.sub(
        lambda match: match[0] if match[0].isprintable() or match[0] in keep else _escape(match[0]), text
    )


def printable_lines(text: str) -> str:
    """Return *text*, whose line breaks and tabs are its author's own, with every other character seen."""
    return printable(text, keep="\n\t")


def printable_document(text: str, *, is_json: bool) -> str:
    r"""Return a JSON document, or YAML with quoted strings, that means the same in printable characters.

    Both write a character within quotes as ``\u202e``; of one that takes more digits JSON writes two halves.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    wide = _halves if is_json else _escape
    return _NOT_ASCII.sub(
        lambda match: (
            match[0]
            if match[0].isprintable() or match[0] == "\n"
            else f"\\u{ord(match[0]):04x}"
            if ord(match[0]) <= _WIDEST
            else wide(match[0])
        ),
        text,
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _halves(character: str) -> str:
    high, low = divmod(ord(character) - _WIDEST - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
