"""The axes of a model's parallelism: how they are written, and which ranks share a group."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.placement_options import Closer, Parallelism, check_ranks, read_parallelism


def ranks_of(text: str) -> dict[str, list[list[int]]]:
    """Return the groups along each axis that *text* uses."""
    return {
        groups.axis.value: [list(groups.ranks(number)) for number in range(groups.count)]
        for groups in read_parallelism(text, "--parallel").groups
    }


def test_ranks_are_in_the_order_of_megatron() -> None:
    """The example of megatron/core/parallel_state.py: 16
    ranks, two in a tensor group and four in a pipeline.
    """
    assert {
        "tp": [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15]],
        "pp": [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]],
        "dp": [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]],
    } == ranks_of("tp=2,pp=4,dp=2")


def test_experts_part_the_ranks_of_cp_and_dp() -> None:
    """A group of experts holds the same tensor-parallel part."""
    assert [[0, 2, 4, 6], [1, 3, 5, 7]] == ranks_of("tp=2,cp=2,dp=2,ep=4")["ep"]


@given(
    st.builds(
        Parallelism,
        tp=st.integers(1, 9),
        cp=st.integers(1, 9),
        pp=st.integers(1, 9),
        dp=st.integers(1, 9),
        closer=st.sampled_from(Closer),
    )
    | st.builds(
        Parallelism,
        dp=st.integers(1, 9),
        closer=st.just(Closer.BOTH),
        traffic=st.tuples(st.integers(1, 99_999), st.integers(1, 99_999)),
    )
)
def test_what_is_written_is_read_again(parallel: Parallelism) -> None:
    """As it is kept with a job's plan."""
    assert parallel == read_parallelism(str(parallel), "--parallel")
    assert all(
        list(range(parallel.ranks))
        == sorted(rank for number in range(groups.count) for rank in groups.ranks(number))
        for groups in parallel.groups
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tp", "--parallel: 'tp' is not an axis with its size"),
        ("", "--parallel: '' is not an axis with its size"),
        ("tp=8,xp=2", "--parallel: 'xp=2' is not an axis with its size"),
        ("tp=8,tp=4", "--parallel: tp is given twice"),
        ("tp=0", "--parallel: the size of tp is a whole number from 1, not '0'"),
        ("tp=-1", "--parallel: the size of tp is a whole number from 1, not '-1'"),
        ("tp=\u0664", "--parallel: the size of tp is a whole number from 1, not '\u0664'"),
        ("tp=99999999999", "--parallel: the size of tp is a whole number from 1, not '99999999999'"),
        ("dp=4,closer=tp", "--parallel: closer=tp is none of pp, dp and both"),
        ("dp=4,closer=1:x", "--parallel: the size of closer is a whole number from 1, not 'x'"),
        ("dp=4,closer=0:3", "--parallel: the size of closer is a whole number from 1, not '0'"),
        ("cp=2,dp=3,ep=4", "--parallel: ep=4 does not divide cp x dp = 2 x 3 = 6"),
    ],
)
def test_what_is_wrong_is_named(text: str, complaint: str) -> None:
    """In one line."""
    with pytest.raises(UsageError) as error:
        read_parallelism(text, "--parallel")
    assert complaint == str(error.value)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """There is no other error."""
    with suppress(UsageError):
        assert read_parallelism(text, "--parallel").ranks >= 1


def test_another_number_of_ranks_is_told_with_both_numbers() -> None:
    """And with what would make them equal."""
    with pytest.raises(UsageError) as error:
        check_ranks(Parallelism(tp=8, pp=4, dp=15), 64, 8)
    assert str(error.value) == (
        "--parallel: tp x pp x dp = 8 x 4 x 15 = 480, and the job has 64 workers of 8 ranks, 512 in all"
    )
    assert error.value.hint == "with dp=16 they would be equal; --workers=60 would run 480 ranks"
    check_ranks(Parallelism(tp=8, pp=4, dp=16, ep=8), 64, 8)
