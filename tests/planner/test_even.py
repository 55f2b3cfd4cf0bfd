"""Workers that are spread evenly: as many in each domain of a level, in as few as hold them all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Snapshot
from arena_topo.model.plan import Demand, Infeasible, Placement
from arena_topo.planner.plan import plan
from tests.examples import examples
from tests.planner.fleets import cluster, node, placed, refused


def racks(*free: Sequence[int], blocks: Sequence[str] = ()) -> Snapshot:
    """Return racks r1, r2 ... whose nodes have so many free GPUs each."""
    nodes, paths = [], {}
    for number, counts in enumerate(free, 1):
        for at, count in enumerate(counts, 1):
            name = f"r{number}-n{at}"
            nodes.append(node(name, range(8 - count)))
            paths[name] = (blocks[number - 1] if blocks else "b", f"r{number}")
    return cluster(nodes, paths, "block", "rack")


def by_rack(answer: Placement) -> Mapping[str, int]:
    """Return the number of workers in each rack."""
    return Counter(slot.node.partition("-")[0] for slot in answer.slots)


@pytest.mark.parametrize(
    ("free", "workers", "expected"),
    [
        # Without the flag six would be 4 + 2.
        ([(8,) * 4, (8,) * 4], 6, {"r1": 3, "r2": 3}),
        # One more where it does not divide: where there is room for it.
        ([(8,) * 3, (8,) * 4], 7, {"r1": 3, "r2": 4}),
        # What one rack holds is spread over one.
        ([(8,) * 4, (8,) * 4], 4, {"r1": 4}),
        # Two racks have room for six, but not for three each.
        ([(8,) * 4, (8, 8), (8, 8)], 6, {"r1": 2, "r2": 2, "r3": 2}),
    ],
)
def test_each_rack_gets_as_many(
    free: Sequence[Sequence[int]], workers: int, expected: Mapping[str, int]
) -> None:
    """The fewest racks that can take as many workers each, and one more in some where it does not divide."""
    assert by_rack(placed(Demand(workers, 8, spread_evenly="rack"), racks(*free))) == expected


def test_the_ranks_of_a_rack_are_consecutive() -> None:
    """Workers follow the racks, so that a ring leaves each of them once."""
    answer = placed(Demand(6, 8, spread_evenly="rack"), racks((8,) * 4, (8,) * 4))
    assert [slot.node[:2] for slot in answer.slots] == ["r1"] * 3 + ["r2"] * 3


def test_what_does_not_spread_is_refused_with_what_would() -> None:
    """Racks of four and one hold five workers, but not evenly; four are in one rack."""
    answer = refused(Demand(5, 8, spread_evenly="rack"), racks((8,) * 4, (8,)))
    assert answer.summary == "5 workers of 8 GPUs do not spread evenly over racks, which have room for 4, 1"
    assert answer.remedies == (
        "--workers=4 spreads evenly",
        "without --spread-evenly all 5 workers fit",
    )


def test_what_has_no_room_at_all_is_refused_as_ever() -> None:
    """Where the cluster has too few GPUs, spreading is not what is wrong."""
    assert "evenly" not in refused(Demand(9, 8, spread_evenly="rack"), racks((8,) * 4, (8,))).summary


@pytest.mark.parametrize("level", ["cluster", "row"])
def test_a_level_that_cannot_be_spread_over_is_no_level(level: str) -> None:
    """There is one cluster, and a level that the fabric does not have is an error in any case."""
    with pytest.raises(UsageError, match="--spread-evenly"):
        plan(Demand(2, 8, spread_evenly=level), racks((8,), (8,)))


def test_the_racks_are_in_the_closest_domain_that_has_them() -> None:
    """Two racks of a block go before two of different blocks, and why says over how many."""
    snapshot = racks((8, 8), (8, 8), (8, 8), (8,), blocks=("a", "b", "b", "a"))
    answer = placed(Demand(4, 8, spread_evenly="rack"), snapshot)
    assert by_rack(answer) == {"r2": 2, "r3": 2}
    assert [step.chosen for step in answer.why[:2]] == ["one block: b", "2 workers in each of 2 racks"]


free_gpus = st.lists(
    st.lists(st.integers(0, 2).map(lambda half: 4 * half), min_size=1, max_size=3), min_size=1, max_size=3
)


@given(free=free_gpus, workers=st.integers(1, 8), level=st.sampled_from(["rack", "node"]))
@settings(max_examples=examples(200), deadline=None)
def test_every_way_to_spread_is_known(free: Sequence[Sequence[int]], workers: int, level: str) -> None:
    """Compared with every placement: as close, over as few domains, and on as few nodes."""
    snapshot = racks(*free)
    names = [one.name for one in snapshot.nodes]
    room = [count // 4 for counts in free for count in counts]

    def score(counts: Sequence[int]) -> tuple[int, int, int]:
        touched = [min(len(_by_domain(names, counts, kind)), 2) for kind in ("node", "rack")]
        return sum(touched), len(_by_domain(names, counts, level)), sum(map(bool, counts))

    best = min(
        (
            score(counts)
            for counts in product(*(range(most + 1) for most in room))
            if sum(counts) == workers and _is_even(_by_domain(names, counts, level))
        ),
        default=None,
    )
    answer = plan(Demand(workers, 4, spread_evenly=level), snapshot)
    if isinstance(answer, Infeasible):
        assert best is None
        return
    taken = Counter(slot.node for slot in answer.slots)
    counts = [taken[name] for name in names]
    assert score(counts) == best
    assert _is_even(_by_domain(names, counts, level))


def _is_even(counts: Sequence[int]) -> bool:
    return max(counts) - min(counts) <= 1


def _by_domain(names: Sequence[str], counts: Sequence[int], level: str) -> Sequence[int]:
    """Return the workers of each domain that has any."""
    domains: Counter[str] = Counter()
    for name, count in zip(names, counts, strict=True):
        domains[name if level == "node" else name.partition("-")[0]] += count
    return [count for count in domains.values() if count]
