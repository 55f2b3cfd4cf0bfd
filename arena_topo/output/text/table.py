"""Plain tables as Go's ``text/tabwriter`` lays them out, the way Arena and kubectl print.

A cell ends at a tab; cells of neighbouring lines in the same position form a column as wide as its widest cell and
the padding. The last cell of a line belongs to no column. Source: Go's ``text/tabwriter`` with minwidth 0.
"""

from collections.abc import Iterable, Iterator, Sequence

from arena_topo.output.text.spans import Line, Span


def tabulate(rows: Iterable[Sequence[str]], *, padding: int = 2) -> str:
    """Return *rows* of cells as aligned lines, each ended by a newline."""
    lines = [list(row) for row in rows]
    widths: list[list[int]] = [[0] * max(len(line) - 1, 0) for line in lines]
    for column in range(max((len(each) for each in widths), default=0)):
        start = 0
        while start < len(lines):
            end = start
            while end < len(lines) and column < len(widths[end]):
                end += 1
            widest = max((len(lines[at][column]) for at in range(start, end)), default=0)
            for at in range(start, end):
                widths[at][column] = widest + padding
            start = max(end, start + 1)
    return "".join(_line(line, width) for line, width in zip(lines, widths, strict=True))


def table_lines(rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """Yield *rows* as aligned lines, the first of which is the heading."""
    for at, line in enumerate(tabulate(rows).splitlines()):
        yield [Span(line, "bold" if at == 0 else "")]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    return "".join(padded) + (cells[-1] if cells else "") + "\n"
