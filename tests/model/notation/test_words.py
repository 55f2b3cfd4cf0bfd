"""Names stand in the order in which people count, and numbers are told in runs."""

import pytest

from arena_topo.model.notation.words import natural_sort_key, runs


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
