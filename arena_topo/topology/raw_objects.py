"""Typed access to the objects of the API server; whatever is not as expected becomes ``Malformed``."""

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
    """A part of an object is not as its format says; the text names the key and the reason."""


def each_readable(
    objects: Iterable[RawObject],
    read: Callable[[RawObject], Iterable[Value]],
    warnings: list[str],
    kind: str = "",
) -> Iterator[Value]:
    """Yield all that *read* finds in *objects*; an object that it cannot read becomes a warning.

    *kind* names objects whose own kind is not written in them, as in lists of built-in kinds.
    """
    for each in objects:
        try:
            yield from read(each)
        except (Malformed, DocumentError) as error:
            warnings.append(f"{identity(each, kind)}: {error}; skipped")


def identity(each: RawObject, kind: str = "") -> str:
    """Return what an object is called, for example ``ConfigMap kube-system/gpu-1``; *kind* as in ``each_readable``."""
    meta = each.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    namespace = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{each.get('kind') or kind or 'object'} {namespace}{meta.get('name', '?')}"


def mapping(holder: RawObject, key: str) -> RawObject:
    """Return the mapping at *key*, empty where it is absent; raises ``Malformed``."""
    value = holder.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed(f"{key} is no object")
    return value


def items(holder: RawObject, key: str) -> Sequence[RawObject]:
    """Return the list of objects at *key*, empty where it is absent; raises ``Malformed``."""
    value = holder.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise Malformed(f"{key} is no list of objects")
    return value


def text(holder: RawObject, key: str) -> str:
    """Return the text at *key*, which must be there; raises ``Malformed``."""
    value = holder.get(key)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{key} is missing or no text")
    return value


def optional(holder: RawObject, key: str) -> str:
    """Return the text at *key*, an empty one where it is absent; raises ``Malformed``."""
    value = holder.get(key)
    if value is not None and not isinstance(value, str):
        raise Malformed(f"{key} is {value!r}, expected a text")
    return value or ""


def texts(holder: RawObject, key: str) -> Mapping[str, str]:
    """Return the mapping of texts at *key*, empty where it is absent; raises ``Malformed``."""
    value = mapping(holder, key)
    for name, each in value.items():
        if not isinstance(each, str):
            raise Malformed(f"{key} {name} is {each!r}, expected a text")
    return value


def amounts(holder: RawObject, key: str) -> dict[str, int]:
    """Return the quantities at *key* as amounts; raises ``Malformed``."""
    value = mapping(holder, key)
    try:
        return resources({name: _quantity(each) for name, each in value.items()})
    except ValueError as error:
        raise Malformed(f"{key}: {error}") from error


def quantity(holder: RawObject, key: str, resource: str) -> int | None:
    """Return the quantity of *resource* at *key* as an amount, None where it is absent; raises ``Malformed``."""
    value = holder.get(key)
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


def whole(holder: RawObject, key: str, default: int | None = None) -> int:
    """Return the whole number at *key*, or *default* where it is absent; raises ``Malformed``."""
    value = holder.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"{key} is {value!r}, expected a whole number")
    return value


def whole_list(value: object, key: str) -> tuple[int, ...]:
    """Return *value* as whole numbers; raises ``Malformed`` naming *key*."""
    if not isinstance(value, list) or any(
        isinstance(each, bool) or not isinstance(each, int) for each in value
    ):
        raise Malformed(f"{key} is {value!r}, expected a list of whole numbers")
    return tuple(value)


def document(holder: RawObject, key: str) -> Any:
    """Return the JSON value written in the text at *key*; raises ``Malformed``."""
    written = text(holder, key)
    try:
        return json.loads(written)
    except ValueError as error:
        raise Malformed(f"{key} is not JSON: {error}") from error


def labels(each: RawObject) -> Mapping[str, str]:
    """Return the labels of an object."""
    return texts(mapping(each, "metadata"), "labels")


def annotations(each: RawObject) -> Mapping[str, str]:
    """Return the annotations of an object."""
    return mapping(mapping(each, "metadata"), "annotations")


def name(each: RawObject) -> str:
    """Return the name of an object; raises ``Malformed`` where it has none."""
    return text(mapping(each, "metadata"), "name")


def age(each: RawObject, now: datetime | None) -> float | None:
    """Return the seconds since an object was last written, or None where it does not tell."""
    meta = mapping(each, "metadata")
    times = [field.get("time") for field in items(meta, "managedFields")] or [meta.get("creationTimestamp")]
    return seconds_since(max((time for time in times if isinstance(time, str)), default=""), now)


def seconds_since(instant: str, now: datetime | None) -> float | None:
    """Return the seconds from an RFC 3339 *instant* to *now*, or None where one is missing or no instant."""
    if now is None or not instant:
        return None
    try:
        return max((now - parse_instant(instant)).total_seconds(), 0.0)
    except ValueError:
        return None
