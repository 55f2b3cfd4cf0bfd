"""Tables have the bytes of Go's tabwriter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.output.lines import tabulate

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
