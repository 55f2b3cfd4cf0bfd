"""Values as documents by one table of fields, which both writes and reads them.

A table says of each field which attribute it holds, under which key, in which form, and at which value it is left
out. Whatever is wrong in a document is an error that names its place, for example ``nodes[3].gpus[0].memory``.

For example, ``Record(Nic, (Field("name", STRING), Field("rate", NUMBER, 0.0)))`` writes ``Nic("mlx5_0", rate=25.0)``
as ``{"name": "mlx5_0", "rate": 25.0}`` and ``Nic("mlx5_0")`` as ``{"name": "mlx5_0"}``, and reads both back.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model.text.json import shown

# Reading a document strictly: every error names its place in the document, and unknown keys are errors.

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
        _reject_keys(self._left, self.place)


def checked(value: object, kind: type[Value], place: str) -> Value:
    """Return *value* when it is of *kind*, else raise ``DocumentError`` naming its *place*."""
    # JSON and YAML write 12.0 as 12; and in Python true and false are whole numbers too.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _unexpected(value, place, _WORDS[kind])
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


def _reject_keys(keys: Iterable[str], place: str) -> None:
    """Raise ``DocumentError`` naming the first of *keys*, which nobody reads, if there is one."""
    for key in keys:
        raise DocumentError(f"{place}.{key} is an unknown key", hint="check the spelling of the key")


def _unexpected(value: object, place: str, expected: str) -> DocumentError:
    """Return the error that *value*, or nothing at all, stands where *expected* should."""
    return DocumentError(
        f"{place} {'is missing' if value is None else f'is {shown(value)}'}, expected {expected}"
    )


class Form(Protocol):
    """How one value stands in a document."""

    def write(self, value: Any) -> Any:
        """Return *value* as plain dicts, lists, strings and numbers."""

    def read(self, value: object, place: str) -> Any:
        """Return the value that stands at *place*; raises ``DocumentError``."""


class _Required(Enum):
    REQUIRED = "required"


_REQUIRED: Final = _Required.REQUIRED
"""The default of a field that is always written and must be there."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table: its key in the document, its form, its default, and its attribute.

    A value equal to *default* is left out, unless the field is written *always*; a key that is absent reads as the
    default. The attribute has the name of the key unless it is given.
    """

    key: str
    form: Form
    default: Any = _REQUIRED
    attribute: str = ""
    always: bool = False

    def __post_init__(self) -> None:
        # A frozen dataclass can set its own attributes in no other way.
        object.__setattr__(self, "attribute", self.attribute or self.key)


Table = tuple[Field, ...]


def write_fields(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return *values*, by attribute, as a document with the keys of *table* in its order."""
    return {
        field.key: field.form.write(values[field.attribute])
        for field in table
        if field.always or values[field.attribute] != field.default
    }


def read_fields(table: Table, document: object, place: str, *, strict: bool = True) -> dict[str, Any]:
    """Return the values of a *document*, by attribute; raises ``DocumentError``.

    A *strict* table refuses keys that it does not have.
    """
    mapping = checked_mapping(document, place)
    values = {field.attribute: _read_field(field, mapping, place) for field in table}
    # Counted first, because unknown keys are rare and finding their names takes longer.
    if strict and len(mapping) > sum(field.key in mapping for field in table):
        _reject_keys((key for key in mapping if all(key != field.key for field in table)), place)
    return values


def _read_field(field: Field, mapping: Mapping[str, object], place: str) -> Any:
    value = mapping.get(field.key)
    # A null stands for an absent value only where absence itself says something ("not known").
    if (
        value is None
        and field.default is not _REQUIRED
        and (field.default is None or field.key not in mapping)
    ):
        # A copy, or all values that leave the key out would share the table's own dict.
        return dict(field.default) if isinstance(field.default, dict) else field.default
    place = f"{place}.{field.key}"
    read = field.form.read(value, place)
    # An empty name is a mistake; an empty string may stand only where leaving it out says the same.
    if read == "" != field.default:
        raise DocumentError(f"{place} is empty")
    return read


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A string, number or truth value, written as it is."""

    kind: type[Any]

    def write(self, value: Any) -> Any:
        """Return *value*."""
        return value

    def read(self, value: object, place: str) -> Any:
        """Return *value*, checked."""
        return checked(value, self.kind, place)


STRING, WHOLE, NUMBER, TRUTH = _Scalar(str), _Scalar(int), _Scalar(float), _Scalar(bool)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A member of an Enum, written as its value."""

    kind: type[Enum]

    def write(self, value: Any) -> Any:
        """Return the member's value."""
        return value.value

    def read(self, value: object, place: str) -> Any:
        """Return the member whose value stands at *place*."""
        for member in self.kind:
            if member.value == value:
                return member
        *others, last = [str(member.value) for member in self.kind]
        raise _unexpected(value, place, f"{', '.join(others)} or {last}")


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list, read as a tuple, or as what *make* makes of it; sets are written in order."""

    form: Form
    make: Callable[[Iterable[Any]], Any] = tuple

    def write(self, value: Any) -> list[Any]:
        """Return the elements, each in its form."""
        elements = sorted(value) if isinstance(value, frozenset) else value
        return [self.form.write(element) for element in elements]

    def read(self, value: object, place: str) -> Any:
        """Return the elements, each read at its own place."""
        return self.make(self.form.read(element, spot) for element, spot in elements_of(value, place))


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping from strings to values of one form."""

    form: Form

    def write(self, value: Any) -> dict[str, Any]:
        """Return the mapping with each value in its form."""
        return {key: self.form.write(element) for key, element in value.items()}

    def read(self, value: object, place: str) -> dict[str, Any]:
        """Return the mapping with each value read at its own place."""
        mapping = checked_mapping(value, place)
        return {key: self.form.read(element, f"{place}.{key}") for key, element in mapping.items()}


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass whose fields a table lists."""

    kind: Callable[..., Any]
    table: Table

    def write(self, value: Any) -> dict[str, Any]:
        """Return the document of *value*."""
        return write_fields(self.table, attributes_of(value, self.table))

    def read(self, value: object, place: str) -> Any:
        """Return the dataclass that stands at *place*."""
        return self.kind(**read_fields(self.table, value, place))


class Shelf:
    """Values that many others share: each is written once, in a list of its own, and referred to by its index."""

    def __init__(self, form: Form, values: Sequence[Any] = ()) -> None:
        self.written: list[Any] = []
        self._form = form
        self._values = values
        self._indices: dict[Hashable, int] = {}
        self._seen: dict[int, tuple[object, int]] = {}

    def write(self, value: Any) -> int:
        """Return the index of *value*, which is written when it comes for the first time."""
        seen = self._seen.get(id(value))
        if seen is not None:
            return seen[1]
        if value not in self._indices:
            self._indices[value] = len(self.written)
            self.written.append(self._form.write(value))
        # Comparing link graphs costs more than comparing identities; holding the object keeps its id its own.
        self._seen[id(value)] = (value, self._indices[value])
        return self._indices[value]

    def read(self, value: object, place: str) -> Any:
        """Return the shared value whose index stands at *place*."""
        index = checked(value, int, place)
        if not 0 <= index < len(self._values):
            raise DocumentError(f"{place} refers to number {index} of {len(self._values)}")
        return self._values[index]


def attributes_of(value: object, table: Table) -> dict[str, Any]:
    """Return the attributes of *value* that *table* lists."""
    return {field.attribute: getattr(value, field.attribute) for field in table}
