"""The annotation that tells where the workers of a job went when they lost their nodes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.keys import MOVES
from arena_topo.model.moves import Move, moves_of, moves_text, nodes_text, with_move
from tests.objects import mpijob

AT = datetime(2026, 11, 23, 15, 4, 5, tzinfo=UTC)
NODES = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "d", "e"]))
MOVES_OF_JOBS = st.builds(
    Move,
    st.integers(0, 10**6).map(lambda seconds: AT + timedelta(seconds=seconds)),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
    st.dictionaries(st.integers(0, 9999), NODES, min_size=1, max_size=20),
)


def read(text: str) -> tuple[Move, ...]:
    """Return what a job with the annotation tells."""
    job = mpijob("job")
    job["metadata"]["annotations"] = {MOVES: text}
    return moves_of(job)


@given(st.lists(MOVES_OF_JOBS, max_size=5))
def test_what_is_written_is_read(moves: list[Move]) -> None:
    """Each move, in order."""
    text = ""
    for move in moves:
        text = with_move(text, move)
    assert tuple(moves) == read(text)


def test_it_takes_little_room_however_many_move() -> None:
    """The newest moves stay, and of a large one the number of its workers."""
    text = ""
    for number in range(100):
        text = with_move(text, Move(AT, f"n{number} is gone", {number: ("x" * 60, "y" * 60)}))
    assert len(text) <= 8192
    assert "n99 is gone" == read(text)[-1].why
    many = with_move(text, Move(AT, "a rack is gone", dict.fromkeys(range(500), ("x" * 60, "y" * 60))))
    assert len(many) <= 8192
    assert [500] == [move.count for move in read(many)]


def test_a_worker_that_waited_and_moved_waits_no_more() -> None:
    """What it said of that goes."""
    waits = with_move(None, Move(AT, "b is gone", {1: ("b", "")}, "no room"))
    assert "1 of 3 workers lost their nodes and wait: b is gone; no room" == moves_text(read(waits), 3)
    moved = with_move(waits, Move(AT, "b is gone", {1: ("b", "d")}))
    assert "1 of 3 workers moved: b is gone" == moves_text(read(moved), 3)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        # To another node than was proposed, with one more worker, and of other workers only.
        (Move(AT, "d is gone", {1: ("d", "e")}), [("b is gone", {1: ("b", "e")})]),
        (
            Move(AT, "c is gone", {1: ("d", "e"), 2: ("c", "d")}),
            [("b is gone, c is gone", {1: ("b", "e"), 2: ("c", "d")})],
        ),
        (
            Move(AT, "c is gone", {2: ("c", "d")}),
            [("b is gone", {1: ("b", "d")}), ("c is gone", {2: ("c", "d")})],
        ),
    ],
    ids=["another node", "one more worker", "other workers"],
)
def test_a_move_that_nobody_confirmed_is_noted_once(
    after: Move, expected: list[tuple[str, dict[int, tuple[str, str]]]]
) -> None:
    """From the node that was lost, and for that reason."""
    proposed = with_move(None, Move(AT, "b is gone", {1: ("b", "d")}))
    assert expected == [(move.why, move.workers) for move in read(with_move(proposed, after, again=True))]


@pytest.mark.parametrize(
    "text", ["", "x", "{}", "[1]", "[{}]", '[{"at": 1}]', '[{"at":"2026-11-23T15:04:05Z","why":"","workers":{"a":["b"]}}]']
)  # fmt: skip
def test_an_annotation_of_others_tells_nothing(text: str) -> None:
    """Anybody may write it."""
    assert () == read(text)


def test_a_worker_that_moves_twice_is_one() -> None:
    """And each reason is given once."""
    moves = [Move(AT, "a is gone", {1: ("a", "b")}), Move(AT, "b is gone", {1: ("b", "c"), 2: ("b", "d")})]
    assert "2 of 9 workers moved: a is gone; b is gone" == moves_text(moves, 9)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a"], "a is gone"),
        (["a", "b"], "a and b are gone"),
        (["a", "b", "c"], "a, b and c are gone"),
        (["a", "b", "c", "d"], "a, b, c and 1 more node are gone"),
    ],
)
def test_many_nodes_are_named_in_few_words(names: list[str], expected: str) -> None:
    """The first three."""
    assert expected == nodes_text(names, "gone")
