"""Columns of the user's choice, laid out as kubectl does it."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.output.text import parse_columns

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


@pytest.mark.parametrize("spec", ["", "NAME", "NAME:", ":.name", "NAME:.a["])
def test_what_is_not_columns_says_so(spec: str) -> None:
    """Naming the flag."""
    with pytest.raises(UsageError, match=r"^-o: "):
        parse_columns(spec, "-o")
