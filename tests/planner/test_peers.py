"""The peers' rules as the benchmark has them, held against the peers' own published test cases."""

import pytest

from benchmarks.gpupeers import best_effort, hami, min_pair, pair_scores
from tests.planner.machines import counts_of, node_of, v100_graph

VOLTA = pair_scores(counts_of(v100_graph(), range(8)), [(0, 1), (2, 3), (4, 5), (6, 7)])
PASCAL_LINKS = node_of("Tesla-P100-SXM2-16GB", 8).links
assert PASCAL_LINKS is not None
PASCAL = pair_scores(counts_of(PASCAL_LINKS, range(8)), [(0, 2), (1, 3), (4, 6), (5, 7)])
RTX8000 = [[0, 20, 10, 200], [20, 0, 200, 10], [10, 200, 0, 20], [200, 10, 20, 0]]


def digits(text: str) -> tuple[int, ...]:
    """Return the GPUs that *text* names."""
    return tuple(map(int, text))


@pytest.mark.parametrize(
    ("free", "required", "k", "expected"),
    [
        ("0245", "", 2, "45"),
        ("0456", "", 2, "56"),
        ("031", "", 2, "03"),
        ("014", "", 2, "04"),
        ("01234567", "4", 1, "4"),
        ("01234567", "4", 2, "47"),
        ("01234567", "4", 4, "4567"),
        ("1234567", "0123", 4, ""),
        ("01234567", "0246", 4, "0246"),
        ("01234567", "123456", 4, ""),
        ("12345", "123456", 1, ""),
    ],
)
def test_best_effort_on_a_dgx1(free: str, required: str, k: int, expected: str) -> None:
    """The eleven cases of go-gpuallocator's TestBestEffortAllocate."""
    chosen = best_effort(VOLTA, digits(free), k, digits(required))

    assert digits(expected) == tuple(sorted(chosen))


@pytest.mark.parametrize(
    ("scores", "k", "expected"),
    [
        (RTX8000, 1, ["0", "1", "2", "3", ""]),
        (RTX8000, 2, ["03", "12", ""]),
        (RTX8000, 4, ["0123", ""]),
        (PASCAL, 1, ["0", "1", "2", "3", "4", "5", "6", "7", ""]),
        (PASCAL, 2, ["02", "13", "46", "57", ""]),
        (PASCAL, 4, ["0123", "4567", ""]),
        (PASCAL, 8, ["01234567", ""]),
        (VOLTA, 1, ["0", "1", "2", "3", "4", "5", "6", "7", ""]),
        (VOLTA, 2, ["03", "12", "47", "56", ""]),
        (VOLTA, 4, ["0123", "4567", ""]),
        (VOLTA, 8, ["01234567", ""]),
    ],
)
def test_best_effort_in_sequence(scores: list[list[int]], k: int, expected: list[str]) -> None:
    """The eleven sequences of go-gpuallocator's besteffort_test.go, each until the node is full."""
    free = list(range(len(scores)))
    for each in expected:
        chosen = tuple(sorted(best_effort(scores, free, k)))
        assert digits(each) == chosen
        free = [gpu for gpu in free if gpu not in chosen]


def test_best_effort_does_not_lose_its_best_parting() -> None:
    """Fourteen GPUs, the best pair in the last slot: go-gpuallocator's TestBestEffortAllocateRetainsBestPartition."""
    scores = [[0] * 14 for _ in range(14)]
    for a in range(0, 14, 2):
        scores[a][a + 1] = scores[a + 1][a] = 400 if a == 12 else 200

    assert (12, 13) == best_effort(scores, range(14), 2)


def test_hami_keeps_well_linked_gpus_for_others() -> None:
    """A single GPU is the one that scores least with the other free ones."""
    assert (7,) == hami(VOLTA, digits("01237"), 1)
    assert digits("0123") == hami(VOLTA, digits("01237"), 4)


def test_the_slowest_pair_does_not_tell_large_sets_apart() -> None:
    """Any five GPUs of a V100 box hold a pair without a link: the first five are taken."""
    bandwidth = [[float(count) for count in row] for row in counts_of(v100_graph(), range(8))]

    assert digits("03") == min_pair(bandwidth, range(8), 2)
    assert digits("01234") == min_pair(bandwidth, range(8), 5)
