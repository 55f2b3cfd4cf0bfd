"""Canonical forms: two machines that differ only in how their GPUs are numbered get the same one.

Colours are refined (GPUs apart that see different links), then one GPU of the first class that still has several is
singled out, each in turn, and the least matrix that comes of it is taken. GPUs whose exchange changes nothing
(twins) are singled out once.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

Matrix = Sequence[Sequence[int]]

_MOST_LEAVES = 2_000


@dataclass(frozen=True, slots=True)
class Canonical:
    """A relabelled matrix and the relabelling.

    ``order[i]`` is the old position of the GPU at place i. ``unique`` is False where the search ended early: equal
    forms still mean equal machines, but equal machines may then have several forms.
    """

    rows: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    unique: bool = True


def canonical(matrix: Matrix) -> Canonical:
    """Return the canonical form of a symmetric *matrix* of small integers."""
    best: Canonical | None = None
    for leaves, order in enumerate(_orders(matrix, [0] * len(matrix)), 1):
        rows = tuple(tuple(matrix[a][b] for b in order) for a in order)
        if best is None or (rows, order) < (best.rows, best.order):
            best = Canonical(rows, order)
        if leaves >= _MOST_LEAVES:
            return Canonical(best.rows, best.order, unique=False)
    return best or Canonical((), ())


def twins(matrix: Matrix) -> list[int]:
    """Return the class of each position: those in one class may be exchanged and the matrix stays the same.

    A class is named by its lowest position.
    """
    size = range(len(matrix))

    def alike(a: int, b: int) -> bool:
        return matrix[a][a] == matrix[b][b] and all(
            matrix[a][c] == matrix[b][c] for c in size if c not in (a, b)
        )

    classes: list[int] = []
    for b in size:
        classes.append(next((a for a in range(b) if classes[a] == a and alike(a, b)), b))
    return classes


def _orders(matrix: Matrix, colours: Sequence[int]) -> Iterator[tuple[int, ...]]:
    refined = _refine(matrix, colours)
    cells: dict[int, list[int]] = {}
    for position, colour in enumerate(refined):
        cells.setdefault(colour, []).append(position)
    target = min((colour for colour, cell in cells.items() if len(cell) > 1), default=None)
    if target is None:
        yield tuple(sorted(range(len(matrix)), key=refined.__getitem__))
        return
    for position in _one_of_each_twins(matrix, cells[target]):
        yield from _orders(matrix, [2 * each - (at == position) for at, each in enumerate(refined)])


def _one_of_each_twins(matrix: Matrix, cell: Sequence[int]) -> Iterator[int]:
    classes = twins(matrix)
    seen: set[int] = set()
    for position in cell:
        if classes[position] not in seen:
            seen.add(classes[position])
            yield position


def _refine(matrix: Matrix, colours: Sequence[int]) -> list[int]:
    """Return the coarsest colours, 0 upwards, that are at least as fine as *colours* and stable."""
    size = range(len(matrix))
    current = _ranked(list(colours))
    while True:
        seen = [
            (current[a], matrix[a][a], tuple(sorted((matrix[a][b], current[b]) for b in size if b != a)))
            for a in size
        ]
        finer = _ranked(seen)
        if len(set(finer)) == len(set(current)):
            return finer
        current = finer


def _ranked(values: Sequence[Hashable]) -> list[int]:
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}  # type: ignore[type-var]
    return [ranks[value] for value in values]
