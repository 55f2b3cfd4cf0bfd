"""A memo is the function that it stands for, however much of it is kept."""

from hypothesis import given
from hypothesis import strategies as st

from arena_topo.planner.memo import Memo


@given(st.lists(st.integers(0, 9)), st.integers(1, 4))
def test_a_memo_gives_what_its_function_gives(keys: list[int], limit: int) -> None:
    """Whether a result is computed, kept, or was forgotten; no more than the limit are kept."""
    memo: Memo[int, int] = Memo(lambda key: key * key, limit=limit)

    for key in keys:
        assert key * key == memo[key]
        assert len(memo) <= limit


def test_a_kept_result_is_not_computed_again() -> None:
    """Not even where it is None."""
    asked: list[str] = []
    memo = Memo(asked.append, limit=2)

    assert [None, None] == [memo["a"], memo["a"]]
    assert ["a"] == asked
