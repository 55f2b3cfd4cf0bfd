"""What is computed for all sets at once, against each set by itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Link, LinkClass, LinkGraph
from arena_topo.planner.gpus.busbw import (
    SetRates,
    best_by_size,
    fewest_of_every_set,
    joined,
    joined_of_every_set,
)
from tests.examples import examples
from tests.planner.machines import link_counts

Counts = list[list[int]]
MESHES = (0, 0, 1, 2, 4)
"""The numbers of links between two GPUs."""


def members(mask: int) -> list[int]:
    """Return the GPUs of a set."""
    return [gpu for gpu in range(mask.bit_length()) if mask >> gpu & 1]


@settings(max_examples=examples(200))
@given(link_counts(1, 6, MESHES))
def test_links_and_connections_are_those_of_each_set(counts: Counts) -> None:
    """The fewest links of a member, and whether links join the set."""
    adjacent = [sum(1 << b for b, count in enumerate(row) if count) for row in counts]
    masks = range(1, 1 << len(counts))
    expected = [min(sum(counts[a][b] for b in members(mask)) for a in members(mask)) for mask in masks]
    assert expected == fewest_of_every_set(counts)[1:]
    assert [joined(mask, adjacent) for mask in masks] == [*map(bool, joined_of_every_set(adjacent)[1:])]


@settings(max_examples=examples(200))
@given(st.data(), st.lists(st.integers(2, 4), min_size=1, max_size=4))
def test_a_set_is_worth_the_best_of_its_subsets(data: st.DataObject, radices: list[int]) -> None:
    """The sum, over their sizes, of the highest rate of any subset; sets are numbers in mixed radix."""
    sets: list[tuple[int, ...]] = [()]
    for radix in radices:
        sets = [(*digits, more) for more in range(radix) for digits in sets]
    strides = [
        sets.index(tuple(int(at == place) for at in range(len(radices)))) for place in range(len(radices))
    ]
    sizes = [sum(digits) for digits in sets]
    rates = [
        data.draw(st.sampled_from([0.0, 8.0, 22.5, 45.0, 20.667])) if size > 1 else 0.0 for size in sizes
    ]

    def best(digits: tuple[int, ...], size: int) -> float:
        return max(
            rate
            for rate, own, of in zip(rates, sets, sizes, strict=True)
            if of == size and all(a <= b for a, b in zip(own, digits, strict=True))
        )

    worth, largest = best_by_size(rates, sizes, strides, radices)
    assert [round(sum(best(digits, k) for k in range(1, sum(digits) + 1)), 3) for digits in sets] == worth
    assert [best(sets[-1], size) for size in range(sizes[-1] + 1)] == largest


@settings(max_examples=examples(30), deadline=None)
@given(link_counts(9, 10, MESHES))
def test_every_set_is_rated_as_by_itself(counts: Counts) -> None:
    """On meshes of more GPUs than are packed, joined by links or by PCIe."""

    def link(a: int, b: int) -> Link:
        if a == b:
            return Link(LinkClass.SELF)
        count = counts[a][b]
        return (
            Link(LinkClass.NVLINK, count, 25.0 * count)
            if count
            else Link(LinkClass.SYS, 0, 8.0 + (a + b) % 2)
        )

    size = len(counts)
    rates = SetRates(LinkGraph(tuple(tuple(link(a, b) for b in range(size)) for a in range(size))), "")
    assert [rates.busbw(mask) for mask in range(1 << size)] == rates.every_busbw()
