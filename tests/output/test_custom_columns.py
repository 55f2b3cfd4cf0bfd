"""Columns of the user's choice, laid out as kubectl does it, and the paths that name what is in them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.output.text import parse_columns, parse_path

ITEMS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    for name, data in (("a", {"x": "1"}), ("a-long-name", {"y": "2"}))
]


def test_columns_are_as_wide_as_their_cells_and_six_at_least() -> None:
    """With three blanks between them, as kubectl lays them out."""
    table = parse_columns("N:.metadata.name,X:{.data.x},Y:data.y,Z:.data", "-o").table(ITEMS)

    assert (
        "N             X        Y        Z\n"
        'a             1        <none>   {"x":"1"}\n'
        'a-long-name   <none>   2        {"y":"2"}\n'
    ) == table
    assert "N     X\na     1\n" == parse_columns("N:.metadata.name,X:.data.x", "-o").table(ITEMS[:1])


def test_a_column_that_nothing_has_is_known() -> None:
    """One document with the field is enough."""
    columns = parse_columns("N:.name,X:.data.x", "-o")

    assert ("N",) == columns.absent(ITEMS)


def test_several_values_share_a_cell() -> None:
    """Joined by commas."""
    columns = parse_columns("PODS:.pods[*].name", "-o")

    assert "PODS\na,b\n" == columns.table([{"pods": [{"name": "a"}, {"name": "b"}]}])


DOCUMENT = {
    "status": "RUNNING",
    "labels": {"a.b/c": "dotted"},
    "nothing": None,
    "instances": [{"name": "w0", "gpus": 1}, {"name": "w1", "gpus": 2}, {"name": "w2"}],
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (".status", ["RUNNING"]),
        ("status", ["RUNNING"]),
        ("{.status}", ["RUNNING"]),
        (r".labels.a\.b/c", ["dotted"]),
        (".instances[0].name", ["w0"]),
        (".instances[-1].name", ["w2"]),
        (".instances[*].gpus", [1, 2]),
        (".instances[3].name", []),
        (".instances[-4].name", []),
        (".nothing", []),
        (".status.below", []),
        (".labels[0]", []),
    ],
)
def test_a_path_leads_to_values(text: str, values: list[Any]) -> None:
    """By keys and places in lists; what is missing is left out."""
    assert values == parse_path(text, "-o").values(DOCUMENT)


@pytest.mark.parametrize(
    "text", ["", ".", "..a", ".a[", ".a[x]", "[0]name", ".a[?(@.b)]", ".a[0:1]", ".a b", "$.a"]
)
def test_what_is_not_a_path_says_why(text: str) -> None:
    """One error that names the flag, and jq for what a path cannot say."""
    with pytest.raises(UsageError, match=r"^--sort-by: .* is not a path") as raised:
        parse_path(text, "--sort-by")
    assert "jq" in raised.value.hint


@given(st.text(alphabet="{}[]().*@$?'\"\\=<>,:;ab01 \n-", max_size=60))
def test_whatever_is_typed_is_a_path_or_an_error(text: str) -> None:
    """Never anything else, and a path leads to a list of values in any document."""
    try:
        path = parse_path(text, "-o")
    except UsageError:
        return
    assert isinstance(path.values(DOCUMENT), list)
    assert [] == path.values(None)


def test_documents_are_sorted_as_people_count() -> None:
    """Numbers, then texts with their numbers, then what has no such field."""
    documents: list[Any] = [{"a": "w10"}, {}, {"a": "w9"}, {"a": 10}, {"a": 9}]

    assert [{"a": 9}, {"a": 10}, {"a": "w9"}, {"a": "w10"}, {}] == sorted(
        documents, key=parse_path("a", "--sort-by").sort_key
    )


@pytest.mark.parametrize("spec", ["", "NAME", "NAME:", ":.name", "NAME:.a["])
def test_what_is_not_columns_says_so(spec: str) -> None:
    """Naming the flag."""
    with pytest.raises(UsageError, match=r"^-o: "):
        parse_columns(spec, "-o")
