"""Typed access to objects of the API server: whatever is not as its format says raises ``Malformed``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from json import JSONDecodeError
from typing import Any, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model.notation import bounded_json
from arena_topo.model.notation.bounded_json import MOST_NUMBER, cut, reason_of, shown
from arena_topo.model.notation.durations import parse_instant
from arena_topo.model.notation.quantity import amount, resources

RawObject = Mapping[str, Any]
"""An API object as ``json.loads`` gives it."""

Value = TypeVar("Value")

MOST_GPUS = 256
"""More GPUs than any node has: a source that counts more is garbled, and would cost the memory of its matrix."""

_MOST_NAME = 253
_MOST_IDENTITY = 600
"""Characters of what an object is called: its kind, its namespace and its name."""


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
            warnings.append(skipped(identity(obj, kind), error))


def skipped(name: str, error: Exception) -> str:
    """Return the warning that the object called *name* is left out because of *error*, on one line of some length."""
    # Whoever serves objects may have let a name be of any length.
    return f"{cut(name, _MOST_IDENTITY)}: {reason_of(error)}; skipped"


def identity(obj: object, kind: str = "") -> str:
    """Return what an object is called, for example ``ConfigMap kube-system/gpu-1``; *kind* as in ``read_each``."""
    # Objects are named because they are malformed: naming them must not raise in turn.
    meta = obj.get("metadata") if isinstance(obj, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    own_kind = obj.get("kind") if isinstance(obj, Mapping) else None
    namespace = f"{_word(meta.get('namespace'))}/" if meta.get("namespace") else ""
    return f"{_word(own_kind) or kind or 'object'} {namespace}{_word(meta.get('name')) or '?'}"


def _word(value: object) -> str:
    # Names have 253 characters at most; whatever is no name is shown as the value that it is.
    return cut(value, _MOST_NAME) if isinstance(value, str) else shown(value) if value else ""


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
        raise Malformed(f"{key} is {shown(value)}, expected a string")
    return value or ""


def string_mapping(obj: RawObject, key: str) -> Mapping[str, str]:
    """Return the mapping of strings at *key*, empty where it is absent; raises ``Malformed``."""
    value = mapping(obj, key)
    for name, element in value.items():
        if not isinstance(element, str):
            raise Malformed(f"{cut(f'{key} {name}')} is {shown(element)}, expected a string")
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
        raise Malformed(f"{shown(value)} is not a quantity")
    return value


def whole_number(obj: RawObject, key: str, default: int | None = None) -> int:
    """Return the whole number at *key*, or *default* where it is absent; raises ``Malformed``."""
    value = obj.get(key, default)
    if not _is_whole(value):
        raise Malformed(f"{key} is {shown(value)}, expected a whole number")
    return int(value)


def whole_numbers(value: object, key: str) -> tuple[int, ...]:
    """Return *value* as whole numbers; raises ``Malformed`` naming *key*."""
    if not isinstance(value, list) or not all(map(_is_whole, value)):
        raise Malformed(f"{key} is {shown(value)}, expected a list of whole numbers")
    return tuple(value)


def gpu_indices(values: Iterable[int], key: str) -> tuple[int, ...]:
    """Return the indices of GPUs in *values*, ascending and each once; raises ``Malformed`` for what no GPU has."""
    indices = sorted(set(values))
    if indices and not 0 <= indices[0] <= indices[-1] < MOST_GPUS:
        raise Malformed(f"{key} names GPU {indices[0] if indices[0] < 0 else indices[-1]}, which no node has")
    return tuple(indices)


def digits(text: str, key: str) -> int:
    """Return the number that the digits of *text* write; raises ``Malformed`` naming *key*."""
    try:
        return bounded_json.whole_number(text)
    except ValueError as error:
        raise Malformed(f"{key} is {shown(text)}, expected a number") from error


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_NUMBER


def json_document(obj: RawObject, key: str) -> Any:
    """Return the JSON value that the string at *key* holds, within bounds; raises ``Malformed``."""
    text = string(obj, key)
    try:
        return bounded_json.read_json(text)
    except JSONDecodeError as error:
        raise Malformed(f"{key} is not JSON: {error}") from error
    except ValueError as error:
        raise Malformed(f"{key} cannot be read: {error}") from error


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
