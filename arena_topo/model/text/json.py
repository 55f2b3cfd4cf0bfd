"""JSON that others wrote, read within bounds: of size, of depth, of the number of values, and of each number.

An annotation or a field of free form holds whatever its writer likes, and its readers are everybody who
plans. Python reads most of it, and fails on the rest in ways of its own: nesting ends in ``RecursionError``,
``1e999`` is read as infinity, and half of a surrogate pair cannot be printed. Here each of these is a
``ValueError`` that says what is wrong.
"""

import json
import re
from math import isfinite
from typing import Any, NoReturn

MOST_BYTES = 256 * 1024
"""The API server admits no more in the annotations of one object together."""
MOST_DEPTH = 16
"""Levels of nesting; the documents that are read have six at most."""
MOST_VALUES = 50_000
"""Values in one document, elements and keys counted alike."""
MOST_NUMBER = 2**63 - 1
"""The largest whole number that an API object holds."""
_MOST_DIGITS = 18
"""Digits of a number that stands in a text; each that many digits long is below ``MOST_NUMBER``."""
MOST_SHOWN = 120
"""Characters of a value that an error shows."""

_MOST_REASON = 300
"""Characters of a reason: a value that it quotes may be as long as an annotation."""

_DEEPEST_BODY = 200
"""Levels of nesting in an answer of the API server; pods have fifteen."""

# A string with its escapes, or a bracket: what stands in a string opens and closes nothing.
_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]', re.DOTALL)


def read_json(text: str) -> Any:
    """Return the value of the JSON document *text*.

    Raises ``ValueError`` where it is none, or exceeds a bound.
    """
    # A character takes four bytes at most, so that few texts have to be encoded to be measured.
    if len(text) > MOST_BYTES // 4 and len(text.encode(errors="replace")) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES // 1024} KiB")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels") from error
    _check(value)
    return value


def read_body(body: bytes) -> Any:
    """Return the JSON in *body*, an answer of the API server; raises ``ValueError``.

    An object may carry free-form fields of its writer. Where they nest deeper than Python reads, null takes
    the place of what lies deeper than any field that is used: one such object must not make a whole list
    unreadable.
    """
    try:
        return json.loads(body)
    except RecursionError:
        return json.loads(without_depths(body))


def without_depths(body: bytes, deepest: int = _DEEPEST_BODY) -> bytes:
    """Return the JSON *body* with null in place of each object or list below *deepest* levels.

    For example, ``[1,[2,[3]]]`` of two levels is ``[1,[2,null]]``.
    """
    parts: list[bytes] = []
    depth = start = 0
    for token in _BRACKETS.finditer(body):
        bracket = token.group()
        if bracket in (b"[", b"{"):
            depth += 1
            if depth == deepest + 1:
                parts += [body[start : token.start()], b"null"]
        elif bracket in (b"]", b"}"):
            if depth == deepest + 1:
                start = token.end()
            depth -= 1
    # What never closes again is not JSON, and is left for its reader to refuse.
    return b"".join([*parts, body[start:] if depth <= deepest else b""])


def whole_number(text: str, most: int = MOST_NUMBER) -> int:
    """Return the number that the ASCII digits of *text* write, *most* at most; raises ``ValueError``."""
    # Python reads the digits of every script, and counts how many there are only after it has begun to read.
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS or int(text) > most:
        raise ValueError(f"{shown(text)} is not a whole number up to {most}")
    return int(text)


def optional_number(text: object) -> int | None:
    """Return the number that *text* writes in ASCII digits, None if it is no such text."""
    try:
        return whole_number(text) if isinstance(text, str) else None
    except ValueError:
        return None


def shown(value: object) -> str:
    """Return *value* as an error shows it: as Python writes it, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # numbers of thousands of digits, and nesting
        text = f"a {type(value).__name__}"
    return cut(text)


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """Return *text* with at most *most* characters; one that is longer ends in three dots."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def reason_of(error: Exception) -> str:
    """Return what *error* says, cut to a length that a message or a status can show."""
    return cut(str(error), _MOST_REASON)


def _check(value: object) -> None:
    """Raise ``ValueError`` where a part of *value* exceeds a bound; without recursion, level by level."""
    level, count = [value], 0
    for depth in range(MOST_DEPTH + 2):
        if not level:
            return
        count += len(level)
        if depth > MOST_DEPTH:
            raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
        if count > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES} values")
        below: list[object] = []
        for part in level:
            if isinstance(part, dict):
                below += part
                below += part.values()
            elif isinstance(part, list):
                below += part
            else:
                _check_scalar(part)
        level = below


def _check_scalar(value: object) -> None:
    match value:
        case str():
            if not value.isascii():
                _check_text(value)
        case int():
            if abs(value) > MOST_NUMBER:
                raise ValueError("it has a number with more than 63 bits")
        case float():
            if not isfinite(value):
                raise ValueError("it has a number beyond all bounds")
        case _:  # true, false and null
            pass


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it has half of a surrogate pair, which is not a character") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it has {name}, which JSON does not know")
