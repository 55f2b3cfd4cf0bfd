"""Canonical forms: two machines that differ only in how their GPUs are numbered get the same one.

Colours are refined (GPUs apart that see different links), then one GPU of the first colour that still has several is
singled out, each in turn, until all differ; the least matrix that comes of it is the form. Where two ways give the
same matrix they show a symmetry, and what it maps to something tried is not tried again (McKay, "Practical graph
isomorphism", 1981); nor is a GPU whose exchange with one that was tried changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Matrix = Sequence[Sequence[int]]

_MOST_LEAVES = 500


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
    search = _Search(matrix, twins(matrix))
    search.go([0] * len(matrix), ())
    return Canonical(search.rows, search.order, unique=search.leaves < _MOST_LEAVES)


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


@dataclass(slots=True)
class _Search:
    matrix: Matrix
    twins: Sequence[int]
    rows: tuple[tuple[int, ...], ...] = ()
    order: tuple[int, ...] = ()
    path: tuple[int, ...] = ()
    symmetries: list[dict[int, int]] = field(default_factory=list)
    leaves: int = 0

    def go(self, colours: Sequence[int], path: tuple[int, ...]) -> int:
        """Search below the positions of *path*, singled out so far; return the depth at which to go on."""
        refined = _refine(self.matrix, colours)
        cell = _first_cell(refined)
        if not cell:
            return self._leaf(sorted(range(len(refined)), key=refined.__getitem__), path)
        tried: set[int] = set()
        for position in {self.twins[at]: at for at in reversed(cell)}.values():
            if tried & self._orbit(position, path):
                continue
            back = self.go(
                [2 * each - (at == position) for at, each in enumerate(refined)], (*path, position)
            )
            if back < len(path) or self.leaves >= _MOST_LEAVES:
                return back
            tried.add(position)
        return len(path)

    def _leaf(self, order: Sequence[int], path: tuple[int, ...]) -> int:
        self.leaves += 1
        rows = tuple(tuple(self.matrix[a][b] for b in order) for a in order)
        if self.path and rows == self.rows:
            self.symmetries.append(dict(zip(self.order, order, strict=True)))
            return next(at for at, (a, b) in enumerate(zip(self.path, path, strict=True)) if a != b)
        if not self.order or rows < self.rows:
            self.rows, self.order, self.path = rows, tuple(order), path
        return len(path)

    def _orbit(self, position: int, path: tuple[int, ...]) -> set[int]:
        """Return where the known symmetries that keep all of *path* can take *position*."""
        keeping = [each for each in self.symmetries if all(each[at] == at for at in path)]
        orbit, edge = {position}, [position]
        while edge:
            at = edge.pop()
            new = {
                to for each in keeping for to in (each[at], *(a for a, b in each.items() if b == at))
            } - orbit
            orbit |= new
            edge += new
        return orbit


def _first_cell(colours: Sequence[int]) -> list[int]:
    """Return the positions of the first colour that several have."""
    ordered = sorted(colours)
    first = next((a for a, b in pairwise(ordered) if a == b), None)
    return [at for at, colour in enumerate(colours) if colour == first]


def _refine(matrix: Matrix, colours: Sequence[int]) -> list[int]:
    """Return the coarsest colours, 0 upwards, that are at least as fine as *colours* and stable."""
    size = range(len(matrix))
    current = _ranked(colours)
    while True:
        finer = _ranked(
            [
                (current[a], matrix[a][a], tuple(sorted((matrix[a][b], current[b]) for b in size if b != a)))
                for a in size
            ]
        )
        if len(set(finer)) == len(set(current)):
            return finer
        current = finer


def _ranked(values: Sequence[Any]) -> list[int]:
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [ranks[value] for value in values]
