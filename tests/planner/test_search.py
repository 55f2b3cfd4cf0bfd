"""Choices of nodes where a search would take too long."""

from collections.abc import Iterator
from math import inf

import pytest

from arena_topo.model.plan import Placement
from arena_topo.planner.choice import Goal, NodeGroup, greedy
from arena_topo.planner.fleet import make_fleet
from arena_topo.planner.offers import Offer
from arena_topo.planner.plan import plan_on
from benchmarks.fleets import random_small


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


@pytest.mark.parametrize(("workers", "taken"), [(8, [4, 4]), (6, [4, 2]), (4, [2, 2]), (7, [])])
def test_nodes_that_may_not_take_every_number_of_workers_take_exactly_the_gang(
    workers: int, taken: list[int]
) -> None:
    """Where a limit on the rates left only offers of four and two workers, no choice of them takes seven."""
    four, _, two, _ = offers(4)
    chosen = greedy([NodeGroup((0, 1), (four, two))], Goal(2, workers))

    assert taken == sorted((offer.workers for _, offer in chosen), reverse=True)


def test_a_search_that_is_cut_short_for_an_explanation_ends_in_a_choice() -> None:
    """The steps of a plan try one node more with little effort; of this gang that once had no end."""
    snapshot, demand = random_small(1334)
    answer = plan_on(demand, make_fleet(snapshot))

    assert isinstance(answer, Placement)
    assert "nodes" in {step.criterion for step in answer.why}
