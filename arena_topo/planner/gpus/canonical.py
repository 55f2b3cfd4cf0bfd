"""Canonical forms: two machines that differ only in how their GPUs are numbered get the same one.

Positions are coloured, and colours refined until they are stable: positions that see different links get different
colours. While several positions share a colour, one position of the first such colour is singled out, each of them in
turn, until all colours differ; the least matrix that results is the form. Two ways that give the same matrix show a
symmetry, and what it maps to something tried is not tried again (McKay, "Practical graph isomorphism", 1981); neither
is a position whose exchange with one that was tried changes nothing.

The path 0-1-2 has one link from 0 to 1 and one from 1 to 2. Refinement tells 1, which sees two links, from 0 and 2,
which see one; 0 and 2 are twins, so it is enough to single out 0. The ends come first, because their colour is lower:

>>> canonical([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
Canonical(rows=((0, 0, 1), (0, 0, 1), (1, 1, 0)), order=(0, 2, 1))

Numbered 1-0-2, the same path has the same rows:

>>> canonical([[0, 1, 1], [1, 0, 0], [1, 0, 0]]).rows
((0, 0, 1), (0, 0, 1), (1, 1, 0))
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Matrix = Sequence[Sequence[int]]

_MOST_LEAVES = 500
"""The search ends after so many relabelled matrices. Equal forms then still mean equal machines, but one machine may
have several forms: tables are computed once for each of them."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A relabelled matrix and the relabelling: ``order[i]`` is the old position of the GPU at place i."""

    rows: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]


def canonical(matrix: Matrix) -> Canonical:
    """Return the canonical form of a symmetric *matrix* of small integers."""
    search = _Search(matrix, twins(matrix))
    search.explore([0] * len(matrix), ())
    return Canonical(search.rows, search.order)


def twins(matrix: Matrix) -> list[int]:
    """Return the class of each position: those of one class may be exchanged and the matrix stays the same.

    A class is named by its lowest position. The ends of a path are twins:

    >>> twins([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    [0, 1, 0]
    """
    size = range(len(matrix))

    def alike(a: int, b: int) -> bool:
        return matrix[a][a] == matrix[b][b] and all(
            matrix[a][c] == matrix[b][c] for c in size if c not in (a, b)
        )

    # Two twins have equal rows once each has their own link in place of its diagonal: sums of hashes find who may be one,
    # where comparing each with each takes a minute for a thousand GPUs. Squared, since hashes of small numbers are nearly
    # linear, and the sums of many rows would be equal.
    alike_by_sum: dict[tuple[int, int, int], list[int]] = {}
    classes: list[int] = []
    for b, row in enumerate(matrix):
        others = sum(hash((c, link)) ** 2 for c, link in enumerate(row) if c != b)
        keys = [(row[b], link, others + hash((b, link)) ** 2) for link in {*row}]
        possible = {a for key in keys for a in alike_by_sum.get(key, ())}
        classes.append(next((a for a in sorted(possible) if alike(a, b)), b))
        # The first of a class stands for all of it.
        if classes[b] == b:
            for key in keys:
                alike_by_sum.setdefault(key, []).append(b)
    return classes


@dataclass(slots=True)
class _Search:
    """The depth-first search, and the best leaf so far: its ``rows``, their ``order``, and the ``path`` to it."""

    matrix: Matrix
    twins: Sequence[int]
    rows: tuple[tuple[int, ...], ...] = ()
    order: tuple[int, ...] = ()
    path: tuple[int, ...] = ()
    symmetries: list[dict[int, int]] = field(default_factory=list)
    leaves: int = 0

    def explore(self, colours: Sequence[int], path: tuple[int, ...]) -> int:
        """Search below the positions of *path*, singled out so far; return the depth at which to continue."""
        refined = _refine(self.matrix, colours)
        shared = _first_shared_colour(refined)
        if not shared:
            return self._leaf(sorted(range(len(refined)), key=refined.__getitem__), path)
        tried: set[int] = set()
        # In reverse, so that the lowest position of each class is the one that remains.
        one_of_each_class = {self.twins[position]: position for position in reversed(shared)}.values()
        for position in one_of_each_class:
            if tried & self._orbit(position, path):
                continue
            # Doubled colours leave a free one below each, which the position gets.
            singled_out = [2 * colour - (other == position) for other, colour in enumerate(refined)]
            depth = self.explore(singled_out, (*path, position))
            # A symmetry was found further up: everything below this path repeats what was tried there.
            if depth < len(path) or self.leaves >= _MOST_LEAVES:
                return depth
            tried.add(position)
        return len(path)

    def _leaf(self, order: Sequence[int], path: tuple[int, ...]) -> int:
        self.leaves += 1
        rows = tuple(tuple(self.matrix[a][b] for b in order) for a in order)
        if self.path and rows == self.rows:
            self.symmetries.append(dict(zip(self.order, order, strict=True)))
            # Below the first difference of the two paths everything would come again: continue with what follows there.
            return next(depth for depth, (a, b) in enumerate(zip(self.path, path, strict=True)) if a != b)
        if not self.order or rows < self.rows:
            self.rows, self.order, self.path = rows, tuple(order), path
        return len(path)

    def _orbit(self, position: int, path: tuple[int, ...]) -> set[int]:
        """Return where the known symmetries that keep all of *path* can take *position*."""
        keeping = [
            symmetry for symmetry in self.symmetries if all(symmetry[fixed] == fixed for fixed in path)
        ]
        orbit, frontier = {position}, [position]
        while frontier:
            source = frontier.pop()
            images = {
                image
                for symmetry in keeping
                for image in (symmetry[source], *(a for a, b in symmetry.items() if b == source))
            } - orbit
            orbit |= images
            frontier += images
        return orbit


def _first_shared_colour(colours: Sequence[int]) -> list[int]:
    """Return the positions of the first colour that several have."""
    ordered = sorted(colours)
    first = next((a for a, b in pairwise(ordered) if a == b), None)
    return [position for position, colour in enumerate(colours) if colour == first]


def _refine(matrix: Matrix, colours: Sequence[int]) -> list[int]:
    """Return the coarsest colours, 0 upwards, that are at least as fine as *colours* and stable.

    >>> _refine([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [0, 0, 0])
    [0, 1, 0]
    """
    size = range(len(matrix))
    current = _ranked(colours)
    while True:
        finer = _ranked(
            [
                (current[a], matrix[a][a], tuple(sorted((matrix[a][b], current[b]) for b in size if b != a)))
                for a in size
            ]
        )
        # Refining only splits colours, so none was split where their number is the same.
        if len(set(finer)) == len(set(current)):
            return finer
        current = finer


def _ranked(values: Sequence[Any]) -> list[int]:
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [ranks[value] for value in values]
