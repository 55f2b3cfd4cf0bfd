"""Tables have the bytes of Go's tabwriter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.output.text import fitted, tabulate

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
