"""Equal machines have one canonical form, however their
GPUs are numbered; networkx decides which are equal.
"""

import operator
from itertools import permutations
from random import Random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.planner.gpus.packing import canonical, twins

Matrix = list[list[int]]


def renumbered(matrix: Matrix, order: list[int]) -> Matrix:
    """Return *matrix* with position order[i] moved to i."""
    return [[matrix[a][b] for b in order] for a in order]


@st.composite
def matrices(draw: st.DrawFn, most: int = 9) -> Matrix:
    """Draw a symmetric matrix."""
    size, top = draw(st.integers(0, most)), draw(st.integers(0, 3))
    rows = [[0] * size for _ in range(size)]
    for a in range(size):
        for b in range(a):
            rows[a][b] = rows[b][a] = draw(st.integers(0, top))
    return rows


@given(matrices(), st.randoms(use_true_random=False))
def test_numbering_does_not_change_the_form(matrix: Matrix, random: Random) -> None:
    """And the form is the matrix itself, in another order."""
    order = list(range(len(matrix)))
    random.shuffle(order)
    form = canonical(matrix)

    assert form.rows == canonical(renumbered(matrix, order)).rows
    assert [list(row) for row in form.rows] == renumbered(matrix, list(form.order))


def as_graph(matrix: Matrix) -> "nx.Graph[int]":
    """Return the complete graph of the positions of *matrix*, its entries on the edges."""
    graph: nx.Graph[int] = nx.complete_graph(len(matrix))
    for a, b in graph.edges:
        graph.edges[a, b]["entry"] = matrix[a][b]
    return graph


def are_isomorphic(one: Matrix, other: Matrix) -> bool:
    """Whether a numbering makes *one* of *other*, as networkx finds it."""
    return nx.is_isomorphic(as_graph(one), as_graph(other), edge_match=operator.eq)


@given(matrices(5), matrices(5))
def test_forms_are_equal_for_equal_machines_only(one: Matrix, other: Matrix) -> None:
    """Of any two small machines."""
    assert are_isomorphic(one, other) == (canonical(one).rows == canonical(other).rows)


@given(matrices(8), st.randoms(use_true_random=False), st.data())
def test_one_link_more_is_another_machine_unless_it_is_isomorphic(
    matrix: Matrix, random: Random, data: st.DataObject
) -> None:
    """Of two larger machines that differ in one link and in how they are numbered."""
    order = list(range(len(matrix)))
    random.shuffle(order)
    other = renumbered(matrix, order)
    if len(matrix) > 1:
        a = data.draw(st.integers(1, len(matrix) - 1))
        b = data.draw(st.integers(0, a - 1))
        other[a][b] = other[b][a] = data.draw(st.integers(0, 3))

    assert are_isomorphic(matrix, other) == (canonical(matrix).rows == canonical(other).rows)


def joined(size: int, near: object) -> Matrix:
    """Return the matrix of *size* places, one where *near* says so."""
    assert callable(near)
    return [[int(a != b and near(a, b)) for b in range(size)] for a in range(size)]


@pytest.mark.parametrize(
    "matrix",
    [
        joined(64, lambda _a, _b: True),
        joined(16, lambda a, b: (a ^ b).bit_count() == 1),
        joined(16, lambda a, b: (a - b) % 16 in {1, 15}),
        [[3 if a // 8 != b // 8 else 2 if a // 2 != b // 2 else 1 for b in range(16)] for a in range(16)],
    ],
    ids=["switch of 64", "hypercube", "ring", "pairs on two sockets"],
)
def test_symmetric_machines_have_one_form(matrix: Matrix) -> None:
    """The search does not try what a symmetry has shown to be the same."""
    order = list(range(len(matrix)))
    Random(1).shuffle(order)
    form = canonical(matrix)

    assert form.rows == canonical(renumbered(matrix, order)).rows


@given(matrices(7))
def test_twins_may_be_exchanged(matrix: Matrix) -> None:
    """And the matrix stays the same."""
    classes = twins(matrix)
    for a, b in permutations(range(len(matrix)), 2):
        order = list(range(len(matrix)))
        order[a], order[b] = order[b], order[a]
        assert (classes[a] == classes[b]) == (renumbered(matrix, order) == matrix)


@given(matrices(12))
def test_twins_are_those_that_may_be_exchanged(matrix: Matrix) -> None:
    """Each is named by the lowest with which it may be."""

    def exchanged(a: int, b: int) -> Matrix:
        order = list(range(len(matrix)))
        order[a], order[b] = b, a
        return renumbered(matrix, order)

    size = range(len(matrix))

    assert [min(a for a in range(b + 1) if exchanged(a, b) == matrix) for b in size] == twins(matrix)
