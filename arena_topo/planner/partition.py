"""A grid of cells into bins of limited room, so that its rows and columns touch few bins.

Rows and columns cross: what packs rows scatters columns. Sixteen cells, four rows of four, and four bins of
four: a row for each bin leaves every row in 1 bin and every column in 4; a quarter of the grid for each bin,
2 and 2.

Rows come first, then columns: the most bins that a row touches, the most that a column does, the sum over
rows, the sum over columns. With *weights* the two are added up. Arrangements that are known to be good are
compared; where none meets a bound, a search over all of them follows, as far as its effort goes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations, pairwise, product
from math import ceil, comb

Cell = tuple[int, int]
"""Row and column."""
Bins = tuple[int, ...]
"""The bin of each cell, in the order of the cells."""

Weights = tuple[int, int]
"""What a bin counts that a row touches, and what one counts that a column does."""

Cost = Callable[[Mapping[int, int]], int]
"""From the number of cells in each bin to what that costs."""

_EFFORT = 20_000
"""Steps that the search may take: some tens of milliseconds."""
_MOST_PATTERNS = 4_096
_MOST_BANDS = 12
_MOST_EDGES = 120


@dataclass(frozen=True, slots=True, order=True)
class Spread:
    """The most bins that a row and a column touch, and the sums over rows and columns."""

    rows: int
    columns: int
    row_sum: int
    column_sum: int


@dataclass(frozen=True, slots=True)
class Partition:
    """The bin of each cell, the spread, and whether no other partition has a better one."""

    bins: Bins
    spread: Spread
    exact: bool


def partition(
    cells: Sequence[Cell],
    room: Sequence[int],
    cost: Cost | None = None,
    *,
    weights: Weights | None = None,
    effort: int = _EFFORT,
) -> Partition:
    """Return the best partition of *cells* into bins that have *room* for as many in all.

    *weights* are what a bin counts that a row touches, and one that a column does; without them rows go
    first. Of several that are as good, one of a low *cost* is preferred.

    >>> grid = [(row, column) for row in range(4) for column in range(4)]
    >>> partition(grid, (4, 4, 4, 4)).spread
    Spread(rows=1, columns=4, row_sum=4, column_sum=16)
    >>> partition(grid, (4, 4, 4, 4), weights=(1, 1)).spread
    Spread(rows=2, columns=2, row_sum=8, column_sum=8)
    """
    grid = _Grid.of(cells)
    best = min(
        (_tightened(bins, room) for bins in _arrangements(grid, room)),
        key=lambda bins: (_score(spread_of(cells, bins), weights), cost(Counter(bins)) if cost else 0),
    )
    spread = spread_of(cells, best)
    if _score(spread, weights) <= _score(_bound(grid, room, spread), weights):
        return Partition(best, spread, exact=True)
    if not grid.is_whole:
        return Partition(best, spread, exact=False)
    search = _Search(grid, room, best, weights)
    exact = search.run(effort)
    bins = _tightened(search.best, room)
    return Partition(bins, spread_of(cells, bins), exact)


def spread_of(cells: Sequence[Cell], bins: Sequence[int]) -> Spread:
    """Return how far the rows and columns of *cells* are spread over their *bins*."""
    rows: dict[int, set[int]] = {}
    columns: dict[int, set[int]] = {}
    for (row, column), number in zip(cells, bins, strict=True):
        rows.setdefault(row, set()).add(number)
        columns.setdefault(column, set()).add(number)
    in_row, in_column = list(map(len, rows.values())), list(map(len, columns.values()))
    return Spread(max(in_row), max(in_column), sum(in_row), sum(in_column))


_Score = tuple[int, ...]


def _score(spread: Spread, weights: Weights | None) -> _Score:
    if weights:
        row, column = weights
        most, sums = (
            row * rows + column * columns
            for rows, columns in ((spread.rows, spread.columns), (spread.row_sum, spread.column_sum))
        )
        return most, sums, spread.rows, spread.columns
    return spread.rows, spread.columns, spread.row_sum, spread.column_sum


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells by row and column: the index of each; ``is_whole``: every row has a cell in every column."""

    cells: Sequence[Cell]
    rows: list[list[int]]
    columns: list[list[int]]

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> "_Grid":
        rows: dict[int, list[int]] = {}
        columns: dict[int, list[int]] = {}
        for index in sorted(range(len(cells)), key=cells.__getitem__):
            rows.setdefault(cells[index][0], []).append(index)
            columns.setdefault(cells[index][1], []).append(index)
        return cls(cells, [rows[row] for row in sorted(rows)], [columns[key] for key in sorted(columns)])

    @property
    def is_whole(self) -> bool:
        return len(self.cells) == len(self.rows) * len(self.columns)

    @property
    def turned(self) -> "_Grid":
        """The grid with its columns as rows."""
        return _Grid([(column, row) for row, column in self.cells], self.columns, self.rows)


def _arrangements(grid: _Grid, room: Sequence[int]) -> Iterator[Bins]:
    """Yield partitions that are often good: cells in order, whole rows, bands of columns; and transposed."""
    for seen in (grid, grid.turned):
        yield _in_order(seen, room)
        yield _by_rows(seen, room)
        if seen.is_whole:
            for edges in _band_edges(len(seen.columns), len(room)):
                for by_waste in (False, True):
                    yield _by_bands(seen, room, edges, by_waste=by_waste)


def _widest_first(room: Sequence[int]) -> list[int]:
    return sorted(range(len(room)), key=lambda number: (-room[number], number))


def _in_order(grid: _Grid, room: Sequence[int]) -> Bins:
    """Fill bin after bin, the widest first, row by row."""
    bins = [0] * len(grid.cells)
    places = (number for number in _widest_first(room) for _ in range(room[number]))
    for row in grid.rows:
        for index in row:
            bins[index] = next(places)
    return tuple(bins)


def _by_rows(grid: _Grid, room: Sequence[int]) -> Bins:
    """Put whole rows into bins, as few bins as possible, then the rows that no bin holds, in few pieces."""
    filling = _Filling(grid, list(room))
    widest = _widest_first(room)
    for row in sorted(grid.rows, key=len, reverse=True):
        # Opened bins come first because each further bin is one more for every column.
        holding = [number for number in widest if filling.left[number] >= len(row)]
        opened = [number for number in holding if filling.left[number] < room[number]]
        if holding:
            filling.put(row, (opened or holding)[0])
    filling.complete()
    return filling.bins


def _band_edges(width: int, most: int) -> Iterator[list[int]]:
    """Yield the edges of bands of *width* columns: two or three of any width, up to *most* of equal width."""
    for count in (2, 3):
        # Wide grids have too many; those of equal width follow.
        if count <= most and comb(width - 1, count - 1) <= _MOST_EDGES:
            yield from ([0, *inner, width] for inner in combinations(range(1, width), count - 1))
    for count in range(2, min(width, most, _MOST_BANDS) + 1):
        yield [width * band // count for band in range(count + 1)]


def _by_bands(grid: _Grid, room: Sequence[int], edges: Sequence[int], *, by_waste: bool) -> Bins:
    """Part the columns into bands at *edges*; each bin takes as many rows of one band as it can.

    A row then touches a bin for each band, and a column those of its band. A bin goes to the band that lacks
    the most, or *by_waste* to the one that uses the most of its room.
    """
    count = len(edges) - 1
    widths = [end - start for start, end in pairwise(edges)]
    done = [0] * count
    filling = _Filling(grid, list(room))
    for number in _widest_first(room):
        lacks = [widths[band] * (len(grid.rows) - done[band]) for band in range(count)]
        uses = [min(room[number] - room[number] % widths[band], lacks[band]) for band in range(count)]
        order = list(zip(uses, lacks, strict=True)) if by_waste else list(zip(lacks, uses, strict=True))
        band = max(range(count), key=lambda band: (order[band], -band))
        takes = min(room[number] // widths[band], len(grid.rows) - done[band])
        for row in grid.rows[done[band] : done[band] + takes]:
            filling.put(row[edges[band] : edges[band + 1]], number)
        done[band] += takes
    filling.complete()
    return filling.bins


@dataclass(slots=True)
class _Filling:
    """A partition in the making: the room left in each bin, and which bins each row and column touches."""

    grid: _Grid
    left: list[int]
    chosen: dict[int, int] = field(default_factory=dict)
    rows: dict[int, set[int]] = field(default_factory=dict)
    columns: dict[int, set[int]] = field(default_factory=dict)

    @property
    def bins(self) -> Bins:
        return tuple(self.chosen[index] for index in range(len(self.grid.cells)))

    def put(self, indices: Sequence[int], number: int) -> None:
        """Put the cells of *indices* into the bin *number*."""
        self.left[number] -= len(indices)
        for index in indices:
            row, column = self.grid.cells[index]
            self.chosen[index] = number
            self.rows.setdefault(row, set()).add(number)
            self.columns.setdefault(column, set()).add(number)

    def complete(self) -> None:
        """Put what is left where it adds least to its row, then its column, then where most room is left."""
        for row in self.grid.rows:
            for index in row:
                if index not in self.chosen:
                    self.put([index], min(self._open(), key=lambda number: self._cost(index, number)))

    def _open(self) -> list[int]:
        return [number for number, left in enumerate(self.left) if left]

    def _cost(self, index: int, number: int) -> tuple[bool, bool, int, int]:
        row, column = self.grid.cells[index]
        in_row, in_column = self.rows.get(row, set()), self.columns.get(column, set())
        return number not in in_row, number not in in_column, -self.left[number], number


def _tightened(bins: Bins, room: Sequence[int]) -> Bins:
    """Return *bins*, each exchanged for the tightest unused one that suffices: what is wide stays whole."""
    used: dict[int, int] = {}
    for number in bins:
        used[number] = used.get(number, 0) + 1
    unused = [number for number in range(len(room)) if number not in used]
    other: dict[int, int] = {}
    for number in sorted(used, key=lambda number: (used[number], number)):
        fitting = [spare for spare in unused if used[number] <= room[spare] < room[number]]
        if fitting:
            tightest = min(fitting, key=lambda spare: (room[spare], spare))
            unused[unused.index(tightest)] = number
            other[number] = tightest
    return tuple(other.get(number, number) for number in bins) if other else bins


def _bound(grid: _Grid, room: Sequence[int], found: Spread) -> Spread:
    """Return a spread that no partition is better than, in any of its parts."""
    row_sum, column_sum = _pieces(grid.rows, room), _pieces(grid.columns, room)
    rows, columns = ceil(row_sum / len(grid.rows)), ceil(column_sum / len(grid.columns))
    if grid.is_whole and rows == found.rows == 1:
        # Every bin holds whole rows, so that each column touches all bins in use: the fewest are best.
        whole = sorted((count // len(grid.columns) for count in room), reverse=True)
        columns = 1 + sum(held < len(grid.rows) for held in accumulate(whole))
        column_sum = columns * len(grid.columns)
    return Spread(rows, columns, row_sum, column_sum)


def _pieces(lines: Sequence[Sequence[int]], room: Sequence[int]) -> int:
    """Return the fewest pieces into which *lines* are cut: a piece is at most a line, and in one bin."""
    longest, cells = max(map(len, lines)), sum(map(len, lines))
    pieces = sorted(
        (piece for count in room for piece in (*[longest] * (count // longest), count % longest) if piece),
        reverse=True,
    )
    return max(1 + sum(held < cells for held in accumulate(pieces)), len(lines))


@dataclass(frozen=True, slots=True)
class _Branch:
    """The lines chosen so far: the first pattern that may follow, and the room left.

    ``touched`` has a bit for each bin that a crossing line touches, ``alike`` says which crossing lines equal
    the one before them; ``widest`` and ``total`` are the most and the sum of the bins that lines touch.
    """

    first: int
    left: tuple[int, ...]
    touched: tuple[int, ...]
    alike: tuple[bool, ...]
    widest: int
    total: int


class _Search:
    """All partitions of a whole grid, by lines of its shorter side; lines are alike, as are equal bins."""

    def __init__(self, grid: _Grid, room: Sequence[int], best: Bins, weights: Weights | None) -> None:
        # The fewest patterns have the shorter lines.
        self._turned = len(grid.rows) < len(grid.columns)
        self._lines = grid.columns if self._turned else grid.rows
        self._room = tuple(room)
        self._weights = weights
        self.best, self._score = best, _score(spread_of(grid.cells, best), weights)
        self._cells = len(grid.cells)
        self._length = len(self._lines[0])
        self._least = 1 if max(room) >= self._length else ceil(self._length / max(room))

    def run(self, effort: int) -> bool:
        """Look for a better partition with so many steps; whether there is none that was not looked at."""
        if len(self._room) ** self._length > _MOST_PATTERNS:
            return False
        patterns = sorted(
            product(range(len(self._room)), repeat=self._length),
            key=lambda pattern: (len(set(pattern)), pattern),
        )
        self._patterns = [(pattern, len(set(pattern))) for pattern in patterns]
        self._chosen: list[tuple[int, ...]] = []
        self._effort = effort
        alike = (False, *[True] * (self._length - 1))
        self._descend(_Branch(0, self._room, (0,) * self._length, alike, 0, 0))
        return self._effort > 0

    def _descend(self, branch: "_Branch") -> None:
        """Choose the next line among the patterns that are not before the last line's."""
        missing = len(self._lines) - len(self._chosen)
        if not missing:
            self._keep(self._score_of(branch.widest, branch.total, branch.touched))
            return
        for number in range(branch.first, len(self._patterns)):
            pattern, pieces = self._patterns[number]
            self._effort -= 1
            if self._effort <= 0:
                return
            touched = tuple(mask | 1 << chosen for mask, chosen in zip(branch.touched, pattern, strict=True))
            widest, total = max(branch.widest, pieces), branch.total + pieces
            least = total + (missing - 1) * self._least
            if self._score_of(widest, least, touched) >= self._score or not self._is_first(pattern, branch):
                continue
            left = list(branch.left)
            for chosen in pattern:
                left[chosen] -= 1
            if min(left) >= 0:
                alike = tuple(
                    same and pattern[crossing] == pattern[crossing - 1]
                    for crossing, same in enumerate(branch.alike)
                )
                self._chosen.append(pattern)
                self._descend(_Branch(number, tuple(left), touched, alike, widest, total))
                self._chosen.pop()

    def _is_first(self, pattern: Sequence[int], branch: "_Branch") -> bool:
        """Whether *pattern* is the first of those that are the same but for the order of what is alike.

        Of all orders of lines, of crossing lines and of bins with equal room, the first by the order of
        patterns is one in which crossing lines that were alike so far have ascending bins, and bins of equal
        room are opened in their order: exchanging two of them would otherwise give an earlier one.
        """
        if any(
            same and pattern[crossing] < pattern[crossing - 1] for crossing, same in enumerate(branch.alike)
        ):
            return False
        left, room = branch.left, self._room
        return not any(
            number
            and left[number] == room[number] == room[number - 1] == left[number - 1]
            and number - 1 not in pattern
            for number in pattern
        )

    def _score_of(self, widest: int, total: int, touched: Sequence[int]) -> _Score:
        counts = [mask.bit_count() for mask in touched]
        lines, crossing = (widest, total), (max(counts), sum(counts))
        (rows, row_sum), (columns, column_sum) = (crossing, lines) if self._turned else (lines, crossing)
        return _score(Spread(rows, columns, row_sum, column_sum), self._weights)

    def _keep(self, score: _Score) -> None:
        if score < self._score:
            bins = [0] * self._cells
            for line, pattern in zip(self._lines, self._chosen, strict=True):
                for index, chosen in zip(line, pattern, strict=True):
                    bins[index] = chosen
            self.best, self._score = tuple(bins), score
