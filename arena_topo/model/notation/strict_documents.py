"""Reading a document strictly: every error names its place in the document, and unknown keys are errors."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model.notation.bounded_json import shown

Value = TypeVar("Value", str, int, bool, float)

_WORDS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
}


class Part:
    """A mapping within a document, read by taking out its keys one by one.

    Keys that are left at the end are unknown: ``reject_unknown_keys`` refuses them.
    """

    def __init__(self, value: object, place: str) -> None:
        self.place = place
        self._left: dict[str, Any] = dict(checked_mapping(value, place))

    def take(self, key: str, kind: type[Value], default: Value | None = None) -> Value:
        """Return the value of *kind* at *key*, or *default* where it is absent; without a default it must be there.

        A string may be empty only where that is its default.
        """
        element, place = self.value(key, default)
        value = checked(element, kind, place)
        if value == "" != default:
            raise DocumentError(f"{place} is empty")
        return value

    def value(self, key: str, default: object) -> tuple[object, str]:
        """Return whatever stands at *key*, *default* where it is absent, and its place."""
        return self._left.pop(key, default), f"{self.place}.{key}"

    def list(self, key: str) -> Iterator[tuple[object, str]]:
        """Yield the elements of the list at *key* with their places; nothing where it is absent."""
        yield from elements_of(*self.value(key, []))

    def strings(self, key: str) -> tuple[str, ...]:
        """Return the list of strings at *key*, empty where it is absent."""
        return tuple(checked(element, str, place) for element, place in self.list(key))

    def parts(self, key: str) -> Iterator["Part"]:
        """Yield the mappings in the list at *key*; nothing where it is absent."""
        return (Part(element, place) for element, place in self.list(key))

    def has(self, key: str) -> bool:
        """Whether *key* is there and not null."""
        return self._left.get(key) is not None

    def part(self, key: str) -> "Part":
        """Return the mapping at *key*, an empty one where it is absent."""
        return Part(*self.value(key, {}))

    def reject_unknown_keys(self) -> None:
        """Raise ``DocumentError`` naming the first key that was not taken."""
        reject_keys(self._left, self.place)


def checked(value: object, kind: type[Value], place: str) -> Value:
    """Return *value* when it is of *kind*, else raise ``DocumentError`` naming its *place*."""
    # JSON and YAML write 12.0 as 12; and in Python true and false are whole numbers too.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise unexpected(value, place, _WORDS[kind])
    return value


def checked_mapping(value: object, place: str) -> Mapping[str, Any]:
    """Return *value* when it is a mapping whose keys are strings, else raise ``DocumentError``."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise DocumentError(f"{place} must be a mapping")
    return value


def elements_of(value: object, place: str) -> list[tuple[object, str]]:
    """Return the elements of the list *value* with their places; raises ``DocumentError``."""
    if not isinstance(value, list):
        raise DocumentError(f"{place} must be a list")
    return [(element, f"{place}[{index}]") for index, element in enumerate(value)]


def reject_keys(keys: Iterable[str], place: str) -> None:
    """Raise ``DocumentError`` naming the first of *keys*, which nobody reads, if there is one."""
    for key in keys:
        raise DocumentError(f"{place}.{key} is an unknown key", hint="check the spelling of the key")


def unexpected(value: object, place: str, expected: str) -> DocumentError:
    """Return the error that *value*, or nothing at all, stands where *expected* should."""
    return DocumentError(
        f"{place} {'is missing' if value is None else f'is {shown(value)}'}, expected {expected}"
    )
