"""What of an object is not as its API says is left out; the rest stays as it is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.text.documents import (
    Each,
    Named,
    Part,
    count,
    fitted,
    instant,
    misfit,
    name,
    quantity,
    text,
    truth,
    whole,
)

SHAPE = Part(
    {
        "metadata": Part({"name": name, "labels": Named(text)}, {"name": "?"}),
        "items": Each(Part({"count": count, "size": quantity})),
        "on": truth,
    },
    {"metadata": {"name": "?"}},
)

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "items", "on", "name", "labels", "count", "size"]), inner
        )
    ),
    max_leaves=30,
)


def test_an_object_of_its_shape_is_not_even_copied() -> None:
    """Most objects are."""
    good = {
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "items": [{"count": 1, "size": "1Gi"}],
        "more": [1],
    }
    assert good is fitted(good, SHAPE)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"metadata": {"name": "a", "labels": {"x": 3, "y": "z"}}},
            {"metadata": {"name": "a", "labels": {"y": "z"}}},
        ),
        ({"metadata": {"name": 5, "more": 1}}, {"metadata": {"name": "?", "more": 1}}),
        ({"metadata": {"name": None}}, {"metadata": {"name": "?"}}),
        ({"metadata": []}, {"metadata": {"name": "?"}}),
        ({}, {"metadata": {"name": "?"}}),
        ("x", {"metadata": {"name": "?"}}),
        (
            {"metadata": {"name": "a"}, "items": [1, {"count": -1, "size": "1"}, {"size": "x"}], "on": 1},
            {"metadata": {"name": "a"}, "items": [{"size": "1"}, {}]},
        ),
    ],
)
def test_what_does_not_fit_is_left_out(value: Any, expected: Any) -> None:
    """Labels that are no text, elements of another kind; what must be there gets a value."""
    assert expected == fitted(value, SHAPE)


@given(ANY)
def test_whatever_is_there_the_result_has_its_shape(value: Any) -> None:
    """And it has it permanently."""
    result = fitted(value, SHAPE)
    assert isinstance(result["metadata"]["name"], str)
    assert all(isinstance(label, str) for label in (result["metadata"].get("labels") or {}).values())
    assert all(isinstance(item, dict) for item in result.get("items") or ())
    assert result is fitted(result, SHAPE)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (text, ["", "x"], [None, 1, []]),
        (name, ["x"], ["x" * 254, 1]),
        (truth, [True, False], [1, "true"]),
        (count, [0, 2**31 - 1], [-1, 2**31, True, 1.0, "1"]),
        (whole, [-(2**31) + 1, 5], [2**40, -(2**40), "1", None]),
        (quantity, ["1", "1Gi", 2, 0.5], ["-1", "x", True, None, "9" * 100, float("inf")]),
        (instant, ["2026-11-21T08:00:00Z"], ["x", 1, "9999-12-31T23:59:59-23:59"]),
    ],
)
def test_each_check_knows_its_values(check: Any, good: list[Any], bad: list[Any]) -> None:
    """By type, and by bounds where the API has some."""
    assert [True] * len(good) == [check(value) for value in good]
    assert [False] * len(bad) == [check(value) for value in bad]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({}, ""),
        ({"metadata": None, "unknown": [1]}, ""),
        ([], "it must be a mapping"),
        ({"metadata": []}, "metadata must be a mapping"),
        ({"metadata": {"labels": {"a": "b", "c": 1}}}, "metadata.labels.c is 1, expected a string"),
        ({"items": {}}, "items must be a list"),
        ({"items": [{}, None]}, "items[1] must be a mapping"),
    ],
)
def test_a_misfit_is_told_with_its_place(value: Any, told: str) -> None:
    """The first one; what is missing, null or not read is none."""
    assert told == misfit(value, SHAPE)
