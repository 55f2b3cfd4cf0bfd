"""Instants as Go reads them: to the second, with or without fractions, or to exactly the microsecond.

Source: k8s.io/apimachinery pkg/apis/meta/v1 (time.go, micro_time.go), and Go's package time (format.go), whose words these are.
"""

import re
from datetime import datetime

SECONDS = "2006-01-02T15:04:05Z07:00"
MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"

_ELEMENTS = {
    "2006": r"\d{4}",
    "-": "-",
    "01": r"\d{2}",
    "02": r"\d{2}",
    "T": "T",
    "15": r"\d{2}",
    ":": ":",
    "04": r"\d{2}",
    # Fractions may follow the seconds where the layout names none.
    "05": r"\d{2}",
    ".000000": r"\.\d{6}(?!\d)",
    "Z07:00": r"Z|[+-]\d{2}:\d{2}",
}
_ELEMENT = re.compile("|".join(re.escape(each) for each in sorted(_ELEMENTS, key=len, reverse=True)))


def misfit(text: str, layout: str) -> str:
    """Return why *text* is no instant of *layout*, empty where it is one.

    Example: in ``2026-01-02T03:04:05Z`` an instant with microseconds finds ``Z`` where ``.000000`` should be.
    """
    rest, head = text, f'parsing time "{text}" as "{layout}": cannot parse '
    for element in _ELEMENT.findall(layout):
        found = re.match(_ELEMENTS[element], rest)
        if found is None:
            return f'{head}"{rest}" as "{element}"'
        rest = rest[found.end() :]
        if element == "05" and layout == SECONDS:
            rest = re.sub(r"^[.,]\d+", "", rest)
    if rest:
        return f'parsing time "{text}": extra text: "{rest}"'
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        return f'parsing time "{text}": {_out_of_range(str(error))}'
    return ""


def _out_of_range(error: str) -> str:
    """Return which part of an instant is too great, from Python's word for it."""
    part = next((part for part in ("month", "day", "hour", "minute", "second") if part in error), "day")
    return f"{part} out of range"
