"""What others wrote, read by one set of checks: objects of the API, users' documents, our own annotations.

Anyone who may edit an object or a file may write anything into it. The readers differ in what they do with
what does not fit:

==========================  ============================================================================
``fitted(value, shape)``    leaves it out: one bad part of an object of the API must not hide the rest
``misfit(value, shape)``    returns what it is: a manifest is used as a whole or not at all
``take``, ``mapping``, ...  raise: one key at a time, for formats whose next key depends on the last
tables of ``Field``         raise: documents of ours, which the same table writes
==========================  ============================================================================

What is raised is a ``DocumentError`` that names the place, as in ``cluster.json.nodes[3].gpus[0].memory``.
Sizes are bounded where a text becomes a value: ``text.json``, ``text.yaml``.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from arena_topo.errors import DocumentError
from arena_topo.model.text.json import MOST_NUMBER, shown
from arena_topo.model.text.quantity import parse_instant, parse_quantity

_MOST_COUNT = 2**31 - 1
_LONGEST_NAME = 253

_Check = Callable[[object], bool]
"""Whether a value is as its API says."""

Value = TypeVar("Value", str, int, bool, float)

_WORDS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
}
_NUMBERS: Collection[type] = (int, float)


def text(value: object) -> bool:
    """Whether *value* is a string."""
    return isinstance(value, str)


def name(value: object) -> bool:
    """Whether *value* is a string that is as long as names may be."""
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
    """Whether *value* is a quantity, as a string or a number, that is not negative."""
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


_EXPECTED: Mapping[_Check, str] = {
    text: "a string",
    name: f"a name of {_LONGEST_NAME} characters at most",
    truth: "true or false",
    count: "a whole number from 0",
    whole: "a whole number",
    quantity: "a quantity",
    instant: "an RFC 3339 time",
}


# Shapes: what the API says of an object. What a shape does not name stays as it is. For example, of
# ``{"labels": {"a": "x", "b": 3}, "more": [1]}`` the shape ``Part({"labels": Named(text)})`` leaves
# ``{"labels": {"a": "x"}, "more": [1]}``.


# Shapes are constants: each is compared by what it is, which makes it a key of a cache.
@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A mapping with the shapes of the keys that are read.

    *required* are values for those that may not be absent.
    """

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
    """Return the mapping *value* without what does not fit the shape *part*; itself if everything fits."""
    # Nearly every object is as it should be, and to see that takes a third of the time of taking it apart.
    return value if _fits(part)(value) else _fitted(value if isinstance(value, dict) else {}, part)


def misfit(value: Any, shape: Shape, place: str = "") -> str:
    """Return how *value* misfits *shape*: ``metadata.labels must be a mapping``; empty if it fits."""
    match shape:
        case Part() | Named():
            if not isinstance(value, dict):
                return f"{place or 'it'} must be a mapping"
            shapes = dict.fromkeys(value, shape.shape) if isinstance(shape, Named) else shape.keys
            below = ((f"{place}.{key}".lstrip("."), value.get(key), inner) for key, inner in shapes.items())
            # In every field null means that there is no value.
            faults = (misfit(part, inner, where) for where, part, inner in below if part is not None)
        case Each():
            if not isinstance(value, list):
                return f"{place} must be a list"
            faults = (misfit(part, shape.shape, f"{place}[{index}]") for index, part in enumerate(value))
        case _:
            return "" if shape(value) else _unexpected(value, place, _EXPECTED.get(shape, shape.__name__))
    return next(filter(None, faults), "")


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


# One key at a time.


def take(obj: Mapping[str, Any], key: str, kind: type[Value], default: Value | None = None) -> Value:
    """Return the value of *kind* at *key*, or *default* if absent or null; without one it must be there.

    A string may be empty only where that is its default.
    """
    found = obj.get(key)
    value = checked(default if found is None else found, kind, key)
    if value == "" != default:
        raise DocumentError(f"{key} is empty")
    return value


def mapping(obj: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the mapping at *key*, empty where it is absent or null."""
    found = obj.get(key)
    return {} if found is None else checked_mapping(found, key)


def items(obj: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Return the list of mappings at *key*, empty where it is absent or null."""
    found = obj.get(key)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(element, Mapping) for element in found):
        raise DocumentError(f"{key} must be a list of mappings")
    return found


def strings(obj: Mapping[str, Any], key: str) -> Mapping[str, str]:
    """Return the mapping of strings at *key*, empty where it is absent or null."""
    found = mapping(obj, key)
    for inner, value in found.items():
        if not isinstance(value, str):
            raise DocumentError(_unexpected(value, f"{key} {shown(inner)}", _WORDS[str]))
    return found


def checked(value: object, kind: type[Value], place: str) -> Value:
    """Return *value* when it is of *kind*, else raise ``DocumentError`` naming its *place*."""
    found: Any = value
    # JSON and YAML write 12.0 as 12; and in Python true and false are whole numbers too.
    if kind in _NUMBERS and isinstance(found, int):
        found = kind(found) if not isinstance(found, bool) and abs(found) <= MOST_NUMBER else None
    if not isinstance(found, kind):
        raise DocumentError(_unexpected(value, place, _WORDS[kind]))
    return found


def checked_mapping(value: object, place: str) -> Mapping[str, Any]:
    """Return *value* when it is a mapping whose keys are strings, else raise ``DocumentError``."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise DocumentError(f"{place} must be a mapping")
    return value


def elements_of(value: object, place: str) -> Iterator[tuple[object, str]]:
    """Yield the elements of the list *value* with their places; raises ``DocumentError``."""
    if not isinstance(value, list):
        raise DocumentError(f"{place} must be a list")
    for index, element in enumerate(value):
        yield element, f"{place}[{index}]"


def _unexpected(value: object, place: str, expected: str) -> str:
    """Return that *value*, or nothing at all, stands where *expected* should."""
    return f"{place} {'is missing' if value is None else f'is {shown(value)}'}, expected {expected}"


# Tables: a document of ours by its fields. A table says of each which attribute it holds, under which key, in
# which form, and at which value it is left out. For example, ``record(Nic, (Field("name", STRING),
# Field("rate", NUMBER, 0.0)))`` writes ``Nic("mlx5_0", rate=25.0)`` as ``{"name": "mlx5_0", "rate": 25.0}``
# and ``Nic("mlx5_0")`` as ``{"name": "mlx5_0"}``, and reads both back.


class _Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED
"""The default of a field that is always written and must be there."""


# Named tuples, because Python defines them in a fifth of the time of dataclasses, and `get` reads plans.
class Form(NamedTuple):
    """How one value stands in a document: ``read`` it at a place, ``write`` it as plain values."""

    read: Callable[[object, str], Any]
    write: Callable[[Any], Any] = lambda value: value


class Field(NamedTuple):
    """One field of a table: its key in the document, its form, its default, and its attribute.

    A value equal to *default* is left out, unless the field is written *always*; a key that is absent reads
    as the default. The attribute has the name of the key unless it is given.
    """

    key: str
    form: Form
    default: Any = REQUIRED
    attribute: str = ""
    always: bool = False

    @property
    def name(self) -> str:
        """The name of the attribute."""
        return self.attribute or self.key


Table = tuple[Field, ...]


def write_fields(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return *values*, by attribute, as a document with the keys of *table* in its order."""
    return {
        field.key: field.form.write(values[field.name])
        for field in table
        if field.always or values[field.name] != field.default
    }


def read_fields(table: Table, document: object, place: str, *, strict: bool = True) -> dict[str, Any]:
    """Return the values of a *document*, by attribute; raises ``DocumentError``.

    A *strict* table refuses keys that it does not have.
    """
    found = checked_mapping(document, place)
    values = {field.name: _read_field(field, found, place) for field in table}
    # Counted first, because unknown keys are rare and finding their names takes longer.
    if strict and len(found) > sum(field.key in found for field in table):
        unknown = next(key for key in found if all(key != field.key for field in table))
        raise DocumentError(f"{place}.{unknown} is an unknown key", hint="check the spelling of the key")
    return values


def _read_field(field: Field, found: Mapping[str, object], place: str) -> Any:
    value = found.get(field.key)
    # A null stands for an absent value only where absence itself says something ("not known").
    if value is None and field.default is not REQUIRED and (field.default is None or field.key not in found):
        # A copy, or all values that leave the key out would share the table's own dict.
        return dict(field.default) if isinstance(field.default, dict) else field.default
    place = f"{place}.{field.key}"
    read = field.form.read(value, place)
    # An empty name is a mistake; an empty string may stand only where leaving it out says the same.
    if read == "" != field.default:
        raise DocumentError(f"{place} is empty")
    return read


def attributes_of(value: object, table: Table) -> dict[str, Any]:
    """Return the attributes of *value* that *table* lists."""
    return {field.name: getattr(value, field.name) for field in table}


def _scalar(kind: type[Any]) -> Form:
    return Form(lambda value, place: checked(value, kind, place))


STRING, WHOLE, NUMBER, TRUTH = map(_scalar, (str, int, float, bool))
"""Strings, numbers and truth values, written as they are."""


def one_of(choices: Iterable[Any]) -> Form:
    """Return the form of one of *choices*: words, or members of an Enum, written as their values."""
    by_word = {getattr(choice, "value", choice): choice for choice in choices}

    def read(value: object, place: str) -> Any:
        if not isinstance(value, str) or value not in by_word:
            *others, last = by_word
            raise DocumentError(_unexpected(value, place, f"{', '.join(others)} or {last}"))
        return by_word[value]

    return Form(read, lambda choice: getattr(choice, "value", choice))


def list_of(form: Form, make: Callable[[Iterable[Any]], Any] = tuple) -> Form:
    """Return the form of a list, read as a tuple or by *make*; sets are written in order."""

    def write(value: Any) -> list[Any]:
        return [form.write(element) for element in (sorted(value) if isinstance(value, frozenset) else value)]

    def read(value: object, place: str) -> Any:
        return make(form.read(element, spot) for element, spot in elements_of(value, place))

    return Form(read, write)


def map_of(form: Form) -> Form:
    """Return the form of a mapping from strings to values of one form."""

    def read(value: object, place: str) -> dict[str, Any]:
        found = checked_mapping(value, place)
        return {key: form.read(element, f"{place}.{key}") for key, element in found.items()}

    return Form(read, lambda value: {key: form.write(element) for key, element in value.items()})


def record(kind: Callable[..., Any], table: Table, *, strict: bool = True) -> Form:
    """Return the form of a dataclass whose fields *table* lists; *strict* as in ``read_fields``."""
    return Form(
        lambda value, place: kind(**read_fields(table, value, place, strict=strict)),
        lambda value: write_fields(table, attributes_of(value, table)),
    )


HEADER: Table = (Field("apiVersion", STRING, ""), Field("kind", STRING, ""))
"""How a document says what it is, as the objects of the API do."""


def check_header(document: object, source: str, version: str, kind: str, *, hint: str) -> None:
    """Raise ``DocumentError`` where *document*, from *source*, is not one of *kind* of the API *version*."""
    found = read_fields(HEADER, document, source, strict=False)
    if (found["apiVersion"], found["kind"]) != (version, kind):
        own = f"{found['kind'] or 'no kind'} of {found['apiVersion'] or 'no apiVersion'}"
        raise DocumentError(f"{source} is {own}, expected {kind} of {version}", hint=hint)


class Shelf:
    """Values that many others share: each is written once, in a list, and referred to by its index.

    ``form`` is that of a reference, and ``all`` that of the list, which is read before the references and is
    complete once they are written.
    """

    def __init__(self, form: Form) -> None:
        self.form = Form(self._read, self._write)
        self.all = Form(self._fill, lambda _: self.written)
        self.written: list[Any] = []
        self._inner = form
        self._values: tuple[Any, ...] = ()
        self._indices: dict[Hashable, int] = {}
        self._seen: dict[int, tuple[object, int]] = {}

    def _fill(self, value: object, place: str) -> None:
        self._values = list_of(self._inner).read(value, place)

    def _write(self, value: Any) -> int:
        # Comparing link graphs costs more than comparing identities; holding the object keeps its id its own.
        if (seen := self._seen.get(id(value))) is not None:
            return seen[1]
        if value not in self._indices:
            self._indices[value] = len(self.written)
            self.written.append(self._inner.write(value))
        self._seen[id(value)] = (value, self._indices[value])
        return self._indices[value]

    def _read(self, value: object, place: str) -> Any:
        index = checked(value, int, place)
        if not 0 <= index < len(self._values):
            raise DocumentError(f"{place} refers to number {index} of {len(self._values)}")
        return self._values[index]
