"""Reading a document strictly: every error says where in the document it is, and no key is passed over."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from arena_topo.errors import DocumentError

Value = TypeVar("Value", str, int, bool, float)

_WORDS: Mapping[type, str] = {str: "a text", int: "a whole number", bool: "true or false", float: "a number"}


class Part:
    """A mapping within a document; keys are taken out of it one by one."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise DocumentError(f"{place} is no mapping")
        self.place = place
        self._left: dict[str, Any] = dict(value)

    def take(self, key: str, kind: type[Value], default: Value | None = None) -> Value:
        """Return the value of *kind* at *key*; *default* where it is absent, an error where there is none.

        A text may be empty only where that is its default.
        """
        value = checked(self._left.pop(key, default), kind, f"{self.place}.{key}")
        if value == "" != default:
            raise DocumentError(f"{self.place}.{key} is empty")
        return value

    def list(self, key: str) -> Iterator[tuple[object, str]]:
        """Yield the elements of the list at *key* with their places; nothing where it is absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list):
            raise DocumentError(f"{self.place}.{key} is no list")
        for index, element in enumerate(value):
            yield element, f"{self.place}.{key}[{index}]"

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts at *key*."""
        return tuple(checked(element, str, place) for element, place in self.list(key))

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return the list of whole numbers at *key*."""
        return tuple(checked(element, int, place) for element, place in self.list(key))

    def parts(self, key: str) -> Iterator["Part"]:
        """Yield the mappings of the list at *key*."""
        return (Part(element, place) for element, place in self.list(key))

    def map(self, key: str, kind: type[Value]) -> dict[str, Value]:
        """Return the mapping at *key*, whose values are of *kind*; empty where it is absent."""
        part = Part(self._left.pop(key, {}), f"{self.place}.{key}")
        return {name: checked(value, kind, f"{part.place}.{name}") for name, value in part._left.items()}

    def has(self, key: str) -> bool:
        """Whether *key* is there and not null."""
        return self._left.get(key) is not None

    def part(self, key: str) -> "Part":
        """Return the mapping at *key*, an empty one where it is absent."""
        return Part(self._left.pop(key, {}), f"{self.place}.{key}")

    def done(self) -> None:
        """Raise ``DocumentError`` when a key was not taken."""
        for key in self._left:
            raise DocumentError(f"{self.place}.{key} is not known here", hint="check the spelling of the key")


def checked(value: object, kind: type[Value], place: str) -> Value:
    """Return *value* when it is of *kind*, else raise ``DocumentError`` naming its *place*."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        missing = "is missing" if value is None else f"is {value!r}"
        raise DocumentError(f"{place} {missing}, expected {_WORDS[kind]}")
    return value
