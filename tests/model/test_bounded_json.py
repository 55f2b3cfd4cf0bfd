"""JSON that others wrote is read within bounds, or refused with a reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.text.json import (
    MOST_BYTES,
    MOST_DEPTH,
    MOST_VALUES,
    cut,
    read_body,
    read_json,
    reason_of,
    shown,
    whole_number,
    without_depths,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=20,
)


def nested(depth: int) -> str:
    """Return lists within lists."""
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (nested(MOST_DEPTH + 2), "nested deeper"),
        (nested(100_000), "nested deeper"),
        ('"' + "x" * MOST_BYTES + '"', "more than 256 KiB"),
        ('"' + "\u20ac" * (MOST_BYTES // 3) + '"', "more than 256 KiB"),
        ("[" + "0," * MOST_VALUES + "0]", "more than 50000 values"),
        ("1e999", "beyond all bounds"),
        ("[-1e999]", "beyond all bounds"),
        ("NaN", "NaN"),
        ("-Infinity", "Infinity"),
        ("9" * 20, "63 bits"),
        ("9" * 5000, "digits"),
        (r'"\ud800"', "surrogate"),
        (r'{"\udc00": 1}', "surrogate"),
        ("{", "Expecting"),
        ("", "Expecting"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_exceeds_a_bound_is_refused(text: str, reason: str) -> None:
    """As a ``ValueError``, whatever Python itself would raise or return."""
    with pytest.raises(ValueError, match=reason):
        read_json(text)


@given(VALUES)
def test_what_is_within_bounds_is_read_as_it_is(value: Any) -> None:
    """As the standard library reads it."""
    text = json.dumps(value)
    if "Infinity" not in text:
        assert json.loads(text) == read_json(text)


def test_a_deep_field_of_one_object_leaves_the_others_readable() -> None:
    """Null takes the place of what lies too deep, in that
    object alone; brackets within strings do not count.
    """
    body = '{"items":[{"a":"[[\\"[{"},{"a":' + nested(5000) + ',"b":2},{"a":1}]}'
    first, deep, last = read_body(body.encode())["items"]
    assert ({"a": '[["[{'}, 2, {"a": 1}) == (first, deep["b"], last)


def test_the_example_of_depths() -> None:
    """As its docstring has it."""
    assert b"[1,[2,null]]" == without_depths(b"[1,[2,[3]]]", 2)


@given(VALUES, st.integers(1, 3))
def test_what_is_left_of_a_deep_body_is_json(value: Any, deepest: int) -> None:
    """A body that is not deep stays as it is."""
    body = json.dumps(value).encode()
    assert json.loads(without_depths(body)) == json.loads(body) or "NaN" in body.decode()
    json.loads(without_depths(body, deepest))


@pytest.mark.parametrize("text", ["", "-1", "+1", "1_0", "\u0663", "9" * 19, "9" * 5000, "256", " 1", "x"])
def test_no_number_is_read_from_what_is_none(text: str) -> None:
    """Python's own int reads some of these."""
    with pytest.raises(ValueError, match="is not a whole number up to 255"):
        whole_number(text, 255)


def test_a_value_is_shown_in_bounds() -> None:
    """Whatever it is."""
    assert "'" + "x" * 116 + "..." == shown("x" * 1000)
    assert "a int" == shown(10**5000)
    assert "abc" == cut("abc", 3)
    assert "..." == cut("abcd", 3)
    assert "x" * 297 + "..." == reason_of(ValueError("x" * 1000))
