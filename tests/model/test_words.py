"""Amounts are written as people write them, names in the order in which people count, and numbers in runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.model.text.words import (
    elided,
    natural_sort_key,
    runs,
    written_amount,
    written_bytes,
    written_duration,
)


def test_numbers_are_counted_and_not_spelled() -> None:
    """gpu-9 comes before gpu-10, in the order of their words."""
    names = ["gpu-10", "gpu-9", "gpu-1", "a-2-10", "a-2-9", "gpu", ""]

    assert ["", "a-2-9", "a-2-10", "gpu", "gpu-1", "gpu-9", "gpu-10"] == sorted(names, key=natural_sort_key)


@pytest.mark.parametrize(
    ("numbers", "expected"), [((), ""), ((3,), "3"), ((0, 1, 2, 7), "0-2,7"), ((1, 3, 4), "1,3-4")]
)
def test_runs_of_numbers_are_shortened(numbers: tuple[int, ...], expected: str) -> None:
    """Lone numbers stay."""
    assert expected == runs(numbers)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (80 * 2**30, "80 GiB"),
        (768 * 2**30, "768 GiB"),
        (10444.8 * 2**30, "10.2 TiB"),
        (1023.7 * 2**30, "1 TiB"),
        (2**80, "1048576 EiB"),
    ],
)
def test_bytes_have_the_largest_unit_that_leaves_a_whole(count: float, expected: str) -> None:
    """And three digits, never an exponent."""
    assert expected == written_bytes(count)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.5, "0.5s"),
        (59, "59s"),
        (59.7, "1m"),
        (243, "4m03s"),
        (3600, "1h"),
        (3661, "1h01m"),
        (2 * 86400 + 3 * 3600, "2d03h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, expected: str) -> None:
    """4m03s, and not 243 s."""
    assert expected == written_duration(seconds)


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", 1500, "1.5 cpu"),
        ("memory", 2**41, "2 TiB of memory"),
        ("nvidia.com/gpu", 8, "8 nvidia.com/gpu"),
    ],
)
def test_amounts_have_the_unit_of_their_resource(resource: str, amount: int, expected: str) -> None:
    """Devices are counted."""
    assert expected == written_amount(resource, amount)


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("gpu-node-1", 10, "gpu-node-1"),
        ("cn-shanghai.192.168.16.172", 21, "cn-shangha….168.16.172"[:10] + "…" + ".168.16.172"[1:]),
        ("abcdef", 3, "a…f"),
    ],
)
def test_the_middle_of_a_long_name_is_left_out(text: str, longest: int, expected: str) -> None:
    """Names of nodes differ at their ends."""
    assert expected == elided(text, longest)


@given(st.text(), st.integers(3, 60))
def test_an_elided_text_is_never_longer(text: str, longest: int) -> None:
    """And begins and ends as the text does."""
    short = elided(text, longest)

    assert len(short) == min(len(text), longest)
    assert (text[:1], text[-1:]) == (short[:1], short[-1:])
