"""Typed access to objects of the API server: whatever is not as its format says raises ``Malformed``."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.notation.quantity import amount, resources

RawObject = Mapping[str, Any]
"""An API object as ``json.loads`` gives it."""

Value = TypeVar("Value")


class Malformed(Exception):  # named by the fact, as the project's errors are
    """A part of an object is not as its format says; the message names the key and the reason."""


def read_each(
    objects: Iterable[RawObject],
    read: Callable[[RawObject], Iterable[Value]],
    warnings: list[str],
    kind: str = "",
) -> Iterator[Value]:
    """Yield all that *read* yields for *objects*; an object that it cannot read becomes a warning.

    *kind* names objects that do not say their own kind, as in lists of built-in kinds.
    """
    for obj in objects:
        try:
            yield from read(obj)
        except (Malformed, DocumentError) as error:
            warnings.append(f"{identity(obj, kind)}: {error}; skipped")


def identity(obj: RawObject, kind: str = "") -> str:
    """Return what an object is called, for example ``ConfigMap kube-system/gpu-1``; *kind* as in ``read_each``."""
    meta = obj.get("metadata")
    # Objects are named because they are malformed: naming them must not raise in turn.
    meta = meta if isinstance(meta, Mapping) else {}
    namespace = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{obj.get('kind') or kind or 'object'} {namespace}{meta.get('name', '?')}"


def mapping(obj: RawObject, key: str) -> RawObject:
    """Return the mapping at *key*, empty where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed(f"{key} must be an object")
    return value


def items(obj: RawObject, key: str) -> Sequence[RawObject]:
    """Return the list of objects at *key*, empty where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(element, Mapping) for element in value):
        raise Malformed(f"{key} must be a list of objects")
    return value


def string(obj: RawObject, key: str) -> str:
    """Return the string at *key*, which must be there and not empty; raises ``Malformed``."""
    value = obj.get(key)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{key} is missing or not a string")
    return value


def optional_string(obj: RawObject, key: str) -> str:
    """Return the string at *key*, an empty one where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is not None and not isinstance(value, str):
        raise Malformed(f"{key} is {value!r}, expected a string")
    return value or ""


def string_mapping(obj: RawObject, key: str) -> Mapping[str, str]:
    """Return the mapping of strings at *key*, empty where it is absent; raises ``Malformed``."""
    value = mapping(obj, key)
    for name, element in value.items():
        if not isinstance(element, str):
            raise Malformed(f"{key} {name} is {element!r}, expected a string")
    return value


def amounts(obj: RawObject, key: str) -> dict[str, int]:
    """Return the quantities at *key* as amounts; raises ``Malformed``."""
    value = mapping(obj, key)
    try:
        return resources({name: _quantity(element) for name, element in value.items()})
    except ValueError as error:
        raise Malformed(f"{key}: {error}") from error


def quantity(obj: RawObject, key: str, resource: str) -> int | None:
    """Return the quantity of *resource* at *key* as an amount, None where it is absent; raises ``Malformed``."""
    value = obj.get(key)
    if value is None:
        return None
    try:
        return amount(resource, _quantity(value))
    except ValueError as error:
        raise Malformed(f"{key}: {error}") from error


def _quantity(value: object) -> str | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Malformed(f"{value!r} is not a quantity")
    return value


def whole_number(obj: RawObject, key: str, default: int | None = None) -> int:
    """Return the whole number at *key*, or *default* where it is absent; raises ``Malformed``."""
    value = obj.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"{key} is {value!r}, expected a whole number")
    return value


def whole_numbers(value: object, key: str) -> tuple[int, ...]:
    """Return *value* as whole numbers; raises ``Malformed`` naming *key*."""
    if not isinstance(value, list) or any(
        isinstance(element, bool) or not isinstance(element, int) for element in value
    ):
        raise Malformed(f"{key} is {value!r}, expected a list of whole numbers")
    return tuple(value)


def json_document(obj: RawObject, key: str) -> Any:
    """Return the JSON value that the string at *key* holds; raises ``Malformed``."""
    text = string(obj, key)
    try:
        return json.loads(text)
    except ValueError as error:
        raise Malformed(f"{key} is not JSON: {error}") from error


def labels(obj: RawObject) -> Mapping[str, str]:
    """Return the labels of an object."""
    return string_mapping(mapping(obj, "metadata"), "labels")


def annotations(obj: RawObject) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return mapping(mapping(obj, "metadata"), "annotations")


def name(obj: RawObject) -> str:
    """Return the name of an object; raises ``Malformed`` where it has none."""
    return string(mapping(obj, "metadata"), "name")


def age(obj: RawObject, now: datetime | None) -> float | None:
    """Return the seconds since an object was last written, or None where it does not say when."""
    meta = mapping(obj, "metadata")
    # Each writer of an object leaves the time of its last write in managedFields. Objects without them (old
    # ones, or saved without) are as they were created.
    times = [field.get("time") for field in items(meta, "managedFields")] or [meta.get("creationTimestamp")]
    return seconds_since(max((time for time in times if isinstance(time, str)), default=""), now)


def seconds_since(instant: str, now: datetime | None) -> float | None:
    """Return the seconds from an RFC 3339 *instant* to *now*, or None where one is missing or malformed."""
    if now is None or not instant:
        return None
    try:
        # The clock of whoever wrote it may be ahead of ours.
        return max((now - parse_instant(instant)).total_seconds(), 0.0)
    except ValueError:
        return None
