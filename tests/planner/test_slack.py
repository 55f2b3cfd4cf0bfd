"""Who leaves which places unused: no choice of nodes does less damage than the one that is found."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from math import inf

from hypothesis import assume, given
from hypothesis import strategies as st

from arena_topo.planner.choice import Goal, NodeGroup, spread
from arena_topo.planner.offers import Offer


def offer(workers: int, damage: int) -> Offer:
    """Return what a node gives so many workers."""
    return Offer(workers, inf, inf, 0, 0.0, damage, None)


@st.composite
def pools(draw: st.DrawFn) -> list[NodeGroup]:
    """Draw groups of nodes, widest first; some do the same
    damage, some cannot take every number of workers.
    """
    costs = draw(
        st.lists(
            st.dictionaries(st.integers(1, 4), st.integers(0, 3), min_size=1, max_size=3),
            min_size=1,
            max_size=4,
        )
    )
    sizes = [draw(st.integers(1, 2)) for _ in costs]
    starts = accumulate(sizes, initial=0)
    groups = [
        NodeGroup(
            tuple(range(start, start + size)), tuple(offer(n, cost[n]) for n in sorted(cost, reverse=True))
        )
        for cost, size, start in zip(costs, sizes, starts, strict=False)
    ]
    return sorted(groups, key=lambda group: (-group.most, group.nodes[0]))


def choices(pool: Sequence[NodeGroup], goal: Goal) -> Iterator[int]:
    """Yield the damage of every choice that meets *goal*."""
    nodes = [(None, *group.offers) for group in pool for _ in group.nodes]
    for chosen in product(*nodes):
        taken = [taken_offer for taken_offer in chosen if taken_offer]
        if len(taken) == goal.count and sum(taken_offer.workers for taken_offer in taken) == goal.workers:
            yield sum(taken_offer.damage for taken_offer in taken)


@given(pools(), st.integers(1, 5), st.integers(0, 3))
def test_no_other_choice_does_less_damage(pool: list[NodeGroup], count: int, slack: int) -> None:
    """Next to all choices one by one; nothing is found if there is none."""
    widest = sorted((group.most for group in pool for _ in group.nodes), reverse=True)
    assume(count <= len(widest))
    workers = sum(widest[:count]) - slack
    assume(workers >= count)
    goal = Goal(count, workers)
    best = spread(pool, goal, slack)

    assert min(choices(pool, goal), default=None) == (
        sum(taken_offer.damage for _, taken_offer in best) if best else None
    )
    if best:
        assert goal == Goal(len({i for i, _ in best}), sum(taken_offer.workers for _, taken_offer in best))
        assert all(
            taken_offer in next(group.offers for group in pool if i in group.nodes) for i, taken_offer in best
        )


def test_of_nodes_that_are_equally_good_the_first_are_taken() -> None:
    """Though they stand in different groups."""
    early, late = NodeGroup((3,), (offer(2, 0),)), NodeGroup((1, 2), (offer(2, 0),))
    best = spread([late, early], Goal(2, 4), 0)

    assert [1, 2] == sorted(i for i, _ in best)


def test_the_example_of_the_module() -> None:
    """Five workers on two of three nodes: two on the first, three on the second, at a damage of 1."""
    pool = [
        NodeGroup((0,), (offer(3, 4), offer(2, 1))),
        NodeGroup((1,), (offer(3, 0), offer(2, 9))),
        NodeGroup((2,), (offer(2, 5),)),
    ]
    chosen = spread(pool, Goal(2, 5), 1)

    assert [(0, 2, 1), (1, 3, 0)] == sorted(
        (position, taken_offer.workers, taken_offer.damage) for position, taken_offer in chosen
    )
