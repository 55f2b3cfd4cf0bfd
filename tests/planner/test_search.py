"""Choices of nodes where a search would take too long."""

from collections.abc import Iterator
from math import inf

import pytest

from arena_topo.planner.choice import Goal, NodeGroup, greedy
from arena_topo.planner.offers import Offer


def offers(most: int) -> Iterator[Offer]:
    """Yield what a node gives *most* workers or fewer, of one GPU each."""
    for workers in range(most, 0, -1):
        yield Offer(workers, inf, inf, most - workers, 0.0, 0, None)


@pytest.mark.parametrize("workers", range(3, 13))
def test_places_to_spare_may_be_more_than_one_node_has(workers: int) -> None:
    """Every node takes one worker at least, and all of them together the gang."""
    groups = [NodeGroup((0, 1), tuple(offers(4))), NodeGroup((2,), tuple(offers(4)))]
    chosen = greedy(groups, Goal(3, workers))

    assert [0, 1, 2] == sorted(position for position, _ in chosen)
    assert workers == sum(offer.workers for _, offer in chosen)
