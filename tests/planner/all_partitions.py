"""Every way to put the grid of a gang's units into domains, up
to the order of rows: the best of them, by the stated order.
"""

from collections.abc import Iterator, Sequence
from itertools import product

Line = tuple[int, ...]
Figures = tuple[int, int, int, int]
"""The most domains that a row and a column touch, and the sums over rows and over columns."""


def figures(rows: Sequence[Sequence[int]]) -> Figures:
    """Return the spread of a grid whose cells are in these domains."""
    in_rows = [len(set(row)) for row in rows]
    in_columns = [len(set(column)) for column in zip(*rows, strict=True)]
    return max(in_rows), max(in_columns), sum(in_rows), sum(in_columns)


def balanced(figures_: Figures, weights: tuple[int, int] = (1, 1)) -> tuple[int, ...]:
    """Return the order of a partition for which rows and columns count by their *weights*."""
    rows, columns, row_sum, column_sum = figures_
    row, column = weights
    return row * rows + column * columns, row * row_sum + column * column_sum, rows, columns


def best(
    rows: int, columns: int, room: Sequence[int], weights: tuple[int, int] = (1, 1)
) -> tuple[Figures, Figures]:
    """Return the least spread with rows first, and the
    least with both by their *weights*, of all partitions.
    """
    found = list(map(figures, _grids(rows, list(product(range(len(room)), repeat=columns)), tuple(room))))
    return min(found), min(found, key=lambda each: balanced(each, weights))


def _grids(rows: int, lines: Sequence[Line], room: tuple[int, ...]) -> Iterator[tuple[Line, ...]]:
    """Yield every choice of *rows* of *lines* that *room* suffices for, the order of rows aside."""
    if not rows:
        yield ()
        return
    for index, line in enumerate(lines):
        left = tuple(count - line.count(number) for number, count in enumerate(room))
        if min(left) >= 0:
            yield from ((line, *rest) for rest in _grids(rows - 1, lines[index:], left))
