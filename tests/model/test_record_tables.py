"""One table of fields writes a value and reads it back, and names the place of whatever is wrong."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.text.documents import (
    NUMBER,
    STRING,
    TRUTH,
    WHOLE,
    Field,
    Shelf,
    list_of,
    map_of,
    one_of,
    read_fields,
    record,
    take,
)


class Colour(Enum):
    """A choice of two."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Box:
    """A value with a field of every form."""

    name: str
    colour: Colour = Colour.RED
    size: int = 0
    weight: float | None = None
    is_open: bool = False
    tags: tuple[str, ...] = ()
    used: frozenset[int] | None = None
    counts: dict[str, int] | None = None


BOX = record(
    Box,
    (
        Field("name", STRING),
        Field("colour", one_of(Colour), Colour.RED),
        Field("size", WHOLE, 0),
        Field("weight", NUMBER, None),
        Field("open", TRUTH, False, attribute="is_open"),
        Field("tags", list_of(STRING), ()),
        Field("used", list_of(WHOLE, frozenset), None),
        Field("counts", map_of(WHOLE), None),
    ),
)
FULL = Box("a", Colour.BLUE, 3, 0.0, True, ("x", ""), frozenset({2, 1}), {"cpu": 1})


def test_values_at_their_defaults_are_left_out() -> None:
    """Only what says something is written; a weight of zero is not an unknown one."""
    assert {"name": "a"} == BOX.write(Box("a"))
    assert {
        "name": "a",
        "colour": "blue",
        "size": 3,
        "weight": 0.0,
        "open": True,
        "tags": ["x", ""],
        "used": [1, 2],
        "counts": {"cpu": 1},
    } == BOX.write(FULL)


@pytest.mark.parametrize("box", [Box("a"), FULL], ids=["defaults", "full"])
def test_a_record_reads_back_the_same(box: Box) -> None:
    """Keys that are absent read as their defaults."""
    assert box == BOX.read(BOX.write(box), "box")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "box must be a mapping"),
        ({1: "a"}, "box must be a mapping"),
        ({}, "box.name is missing, expected a string"),
        ({"name": ""}, "box.name is empty"),
        ({"name": "a", "colour": "green"}, "box.colour is 'green', expected red or blue"),
        ({"name": "a", "size": None}, "box.size is missing, expected a whole number"),
        ({"name": "a", "size": True}, "box.size is True, expected a whole number"),
        ({"name": "a", "tags": "x"}, "box.tags must be a list"),
        ({"name": "a", "tags": ["x", 1]}, "box.tags[1] is 1, expected a string"),
        ({"name": "a", "counts": {"cpu": "1"}}, "box.counts.cpu is '1', expected a whole number"),
        ({"name": "a", "sise": 1}, "box.sise is an unknown key"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_named_with_its_place(document: Any, message: str) -> None:
    """The whole path from the document's name down to the value."""
    with pytest.raises(DocumentError) as caught:
        BOX.read(document, "box")

    assert message == caught.value.message


def test_a_tolerant_table_passes_over_unknown_keys() -> None:
    """A later release may have added them."""
    assert {"size": 2} == read_fields((Field("size", WHOLE),), {"size": 2, "more": 1}, "box", strict=False)


def test_what_many_share_is_written_once() -> None:
    """Equal values have one index, whether they are one object or two."""
    shelf = Shelf(list_of(WHOLE))

    assert [0, 1, 0] == [shelf.form.write(value) for value in ((1, 2), (3,), tuple(range(1, 3)))]
    assert [[1, 2], [3]] == shelf.written


def test_a_reference_to_nothing_is_refused() -> None:
    """With its place and how many there are."""
    shelf = Shelf(STRING)
    shelf.all.read(["a"], "shelf")

    with pytest.raises(DocumentError, match="box refers to number 2 of 1"):
        shelf.form.read(2, "box")


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({}, "size is missing, expected a whole number"),
        ({"size": None}, "size is missing, expected a whole number"),
        ({"size": "3"}, "size is '3', expected a whole number"),
        ({"size": True}, "size is True, expected a whole number"),
        ({"size": 2**63}, f"size is {2**63}, expected a whole number"),
    ],
    ids=repr,
)
def test_a_key_is_taken_with_its_type_and_bounds(obj: dict[str, Any], message: str) -> None:
    """A number of more than 63 bits is one that no API object holds."""
    with pytest.raises(DocumentError) as caught:
        take(obj, "size", int)

    assert message == caught.value.message
    assert 2**63 - 1 == take({"size": 2**63 - 1}, "size", int)


def test_a_key_that_is_absent_has_its_default() -> None:
    """And so has null; an empty string is a mistake unless it is the default."""
    assert [4, 4, "", ""] == [
        take({}, "a", int, 4),
        take({"a": None}, "a", int, 4),
        take({}, "a", str, ""),
        take({"a": ""}, "a", str, ""),
    ]
    with pytest.raises(DocumentError, match="a is empty"):
        take({"a": ""}, "a", str)
