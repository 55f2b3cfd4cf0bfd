"""Tables as Go's tabwriter lays them out, lines that fit a terminal, and columns of the user's choice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.output.text import fitted, parse_columns, parse_path, tabulate

CELL = st.text(alphabet="abcXYZ-. ", max_size=12)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], ""),
        ([["a"]], "a\n"),
        ([["a", "b"], ["ccc", "d"]], "a    b\nccc  d\n"),
        ([["EndTime:", ""]], "EndTime:  \n"),
        ([["a", "b"], ["long"], ["ccc", "d"]], "a  b\nlong\nccc  d\n"),
        ([["a", "", "c"]], "a    c\n"),
        ([["ä", "b"], ["xx", "c"]], "ä   b\nxx  c\n"),
    ],
    ids=[
        "nothing",
        "one cell",
        "a column",
        "empty last cell",
        "columns end at a short line",
        "empty cell",
        "runes",
    ],
)
def test_a_table_has_the_bytes_of_tabwriter(rows: list[list[str]], text: str) -> None:
    """Minimal width 0, padding 2, the last cell unpadded, columns of neighbouring lines only."""
    assert text == tabulate(rows)


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=8))
def test_every_cell_of_a_column_starts_at_the_same_place(rows: list[list[str]]) -> None:
    """In a table of equal lines each column begins where its widest cell and the padding end."""
    lines = tabulate(rows).splitlines()
    first = max(len(row[0]) for row in rows) + 2
    second = first + max(len(row[1]) for row in rows) + 2

    assert [row[1] for row in rows] == [
        line[first : first + len(row[1])] for line, row in zip(lines, rows, strict=True)
    ]
    assert [row[2] for row in rows] == [line[second:] for line, row in zip(lines, rows, strict=True)]


def test_texts_of_some_columns_lose_their_middles() -> None:
    """Where there is no room after the columns to spare have gone; twelve letters stay."""
    rows = [("FLAG", "VALUE"), ("--image", "registry.example.com/team/train:1.0")]

    assert ["--image", "registry.e….train:1.0"[:10] + "…" + "/train:1.0"] == list(
        fitted(rows, 30, elide=("VALUE",)).rows[1]
    )
    assert ["--image", "regist…n:1.0"] == list(fitted(rows, 5, elide=("VALUE",)).rows[1])


TABLE = [("NAME", "STATUS", "TRAINER", "NODE"), ("vgg16", "RUNNING", "MPIJOB", "10.0.0.1")]


@pytest.mark.parametrize(
    ("width", "hidden"),
    [
        (None, []),
        (33, []),
        (32, ["TRAINER"]),
        (24, ["TRAINER"]),
        (23, ["TRAINER", "NODE"]),
        (5, ["TRAINER", "NODE"]),
    ],
)
def test_columns_go_in_their_order_where_there_is_no_room(width: int | None, hidden: list[str]) -> None:
    """A table of 33 columns keeps them all where there is room, and never loses what is not to spare."""
    assert hidden == list(fitted(TABLE, width, spare=("TRAINER", "NODE")).hidden)


def test_what_is_hidden_is_named() -> None:
    """With how to see it; nothing is said where nothing is hidden."""
    assert "hidden: TRAINER; -o wide" == fitted(TABLE, 30, spare=("TRAINER",)).note("-o wide")
    assert "" == fitted(TABLE, 80, spare=("TRAINER",)).note("-o wide")


def test_words_go_on_below_themselves() -> None:
    """In their own column, however often."""
    rows = [("CHECK", "FOUND"), ("Pins", "nothing on this cluster can allocate specific GPUs")]

    assert (
        "CHECK  FOUND\nPins   nothing on this cluster\n       can allocate specific\n       GPUs\n"
        == tabulate(fitted(rows, 31, words=True).rows)
    )


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=6), st.integers(1, 60))
def test_no_word_is_lost(rows: list[list[str]], width: int) -> None:
    """Whatever the width."""
    whole = [" ".join(row).split() for row in rows]
    shown = [" ".join(row).split() for row in fitted(rows, width, words=True).rows]

    assert [word for row in whole for word in row] == [word for row in shown for word in row]


# Columns of the user's choice, laid out as kubectl does it, and the paths that name what is in them.

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
