"""The shape of objects that others wrote: what of it is not as its API says is left out, and readers need not look twice.

The API server checks objects against the schema of their kind, but a schema may leave fields open, a server in between may
garble an answer, and a snapshot is edited by hand. For example, of ``{"labels": {"a": "x", "b": 3}, "more": [1]}`` the shape
``Part({"labels": Named(text)})`` leaves ``{"labels": {"a": "x"}, "more": [1]}``: a label is a text, and what the shape does
not name stays as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from arena_topo.model.text.durations import parse_instant
from arena_topo.model.text.quantity import parse_quantity

_MOST_COUNT = 2**31 - 1
_LONGEST_NAME = 253

_Check = Callable[[object], bool]
"""Whether a value is as its API says."""


# Shapes are constants: each is compared by what it is, which makes it a key of a cache.
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A mapping with the shapes of the keys that are read; *required* are values for those that may not be absent."""

    keys: Mapping[str, "Shape"]
    required: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Each:
    """A list of elements of one shape."""

    shape: "Shape"


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A mapping from names to values of one shape."""

    shape: "Shape"


Shape = _Check | Part | Each | Named

_NOTHING: Final = object()


def fitted(value: Any, part: Part) -> Any:
    """Return the mapping *value* without what does not have the shape *part*; the same one where all of it has."""
    # Nearly every object is as it should be, and to see that takes a third of the time of taking it apart.
    return value if _fits(part)(value) else _fitted(value if isinstance(value, dict) else {}, part)


def misfit(value: Any, shape: Shape, place: str = "") -> str:
    """Return what of *value* does not have *shape*, such as ``metadata.labels is not a mapping``; empty where all has.

    For documents of the user's own, who wants an error instead of losing a part.
    """
    match shape:
        case Part() | Named():
            if not isinstance(value, dict):
                return f"{place} is not a mapping"
            shapes = dict.fromkeys(value, shape.shape) if isinstance(shape, Named) else shape.keys
            below = ((f"{place}.{key}".lstrip("."), value.get(key), inner) for key, inner in shapes.items())
            # In every field null means that there is no value.
            faults = (misfit(part, inner, where) for where, part, inner in below if part is not None)
        case Each():
            if not isinstance(value, list):
                return f"{place} is not a list"
            faults = (misfit(part, shape.shape, f"{place}[{index}]") for index, part in enumerate(value))
        case _:
            return "" if shape(value) else f"{place} is not a {_WORDS.get(shape) or shape.__name__}"
    return next(filter(None, faults), "")


def text(value: object) -> bool:
    """Whether *value* is a text."""
    return isinstance(value, str)


def name(value: object) -> bool:
    """Whether *value* is a text that is as long as names may be."""
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


def truth(value: object) -> bool:
    """Whether *value* is true or false."""
    return isinstance(value, bool)


def count(value: object) -> bool:
    """Whether *value* is a whole number of 31 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT


def whole(value: object) -> bool:
    """Whether *value* is a whole number of 31 bits, or its negative."""
    return isinstance(value, int) and count(abs(value))


def quantity(value: object) -> bool:
    """Whether *value* is a quantity, as a text or a number, that is not negative."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        return parse_quantity(str(value)) >= 0
    except ValueError:
        return False


def instant(value: object) -> bool:
    """Whether *value* is an RFC 3339 time."""
    try:
        return isinstance(value, str) and bool(parse_instant(value))
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _fits(shape: Shape) -> _Check:
    """Return the check whether a value has *shape* in all its parts."""
    match shape:
        case Part():
            return _fits_part({key: _fits(inner) for key, inner in shape.keys.items()}, tuple(shape.required))
        case Named():
            named = _fits(shape.shape)
            return lambda value: isinstance(value, dict) and all(map(named, value.values()))
        case Each():
            each = _fits(shape.shape)
            return lambda value: isinstance(value, list) and all(map(each, value))
        case _:
            return shape


def _fits_part(below: Mapping[str, _Check], required: Sequence[str]) -> _Check:
    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        # Most shapes have more keys than the objects have.
        for key, element in value.items():
            if element is not None and key in below and not below[key](element):
                return False
        return all(value.get(key) is not None for key in required)

    return check


def _fitted(value: Any, shape: Shape) -> Any:
    """Return what of *value* has *shape*, ``_NOTHING`` where it is of another type altogether."""
    match shape:
        case Part():
            if not isinstance(value, dict):
                return _NOTHING
            read = {key: below for key, below in shape.keys.items() if value.get(key) is not None}
            part = _of_mapping(value, read)
            missing = {key: given for key, given in shape.required.items() if part.get(key) is None}
            return {**part, **missing} if missing else part
        case Named():
            return (
                _of_mapping(value, dict.fromkeys(value, shape.shape)) if isinstance(value, dict) else _NOTHING
            )
        case Each():
            if not isinstance(value, list):
                return _NOTHING
            fitting = [_fitted(element, shape.shape) for element in value]
            is_whole = all(one is other for one, other in zip(fitting, value, strict=True))
            return value if is_whole else [element for element in fitting if element is not _NOTHING]
        case _:
            return value if shape(value) else _NOTHING


def _of_mapping(value: dict[str, Any], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    below = {key: _fitted(value[key], shape) for key, shape in shapes.items()}
    changed = {key: element for key, element in below.items() if element is not value[key]}
    # Most objects are as they should be, and need not be copied.
    if not changed:
        return value
    return {
        key: changed.get(key, element) for key, element in value.items() if changed.get(key) is not _NOTHING
    }


_WORDS: Mapping[_Check, str] = {count: "whole number", whole: "whole number", truth: "truth value"}
"""What a check is called where something does not pass it; others go by their own names."""
