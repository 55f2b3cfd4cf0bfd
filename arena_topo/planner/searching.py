"""An exact search for the nodes of a gang among groups of equal nodes, and a greedy one for when it would be long."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import attrgetter
from typing import Any

from arena_topo.planner.offers import Offer

Chosen = list[tuple[int, Offer]]
"""The nodes that take the gang, by position, each with its offer."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that are equally good, by position, and what each may take: the most workers first."""

    nodes: tuple[int, ...]
    offers: tuple[Offer, ...]

    @property
    def most(self) -> int:
        """The most workers that one of the nodes may take."""
        return max(offer.workers for offer in self.offers)


@dataclass(frozen=True, slots=True)
class Goal:
    """So many nodes that together take so many workers."""

    count: int
    workers: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a choice is compared by: the cost of none, and how one more offer adds to it; the least is best."""

    nothing: Any
    add: Callable[[Any, Offer], Any]


@dataclass(slots=True)
class Effort:
    """How many steps of search one decision may still take."""

    steps: int

    def spend(self, steps: int) -> bool:
        """Take *steps* off; whether there were as many."""
        self.steps -= steps
        return self.steps >= 0


def search(groups: Sequence[Group], goal: Goal, effort: Effort) -> Chosen | None:
    """Return the best choice for *goal*: highest busbw, highest busbw inside, least damage.

    None where *effort* does not suffice.
    """
    pool = list(groups)
    for measure in (_BUSBW, _INSIDE):
        widened = _raise_bottleneck(pool, goal, measure, effort)
        if widened is None:
            return None
        pool = widened
    return _walk(pool, goal, Cost((0, 0.0), _more_damage), effort)


def greedy(groups: Sequence[Group], goal: Goal) -> Chosen:
    """Return a choice for *goal*: the widest nodes, of equally wide ones the best, all of them full but one."""
    full = [(group.offers[0], at, group) for group in groups for at in group.nodes]
    full.sort(key=lambda each: (-each[0].workers, -each[0].busbw, -each[0].inside, each[0].stranded, each[1]))
    taken = full[: goal.count]
    surplus = sum(offer.workers for offer, _, _ in taken) - goal.workers
    reduced = max(
        range(goal.count),
        key=lambda at: (_reduced(taken[at], surplus).busbw, _reduced(taken[at], surplus).inside),
    )
    return [
        (node, _reduced(each, surplus) if at == reduced else offer)
        for at, each in enumerate(taken)
        for offer, node, _ in [each]
    ]


def _reduced(full: tuple[Offer, int, Group], surplus: int) -> Offer:
    """Return what the node offers for *surplus* workers fewer; its groups' offers go one worker down at a time."""
    return full[2].offers[surplus]


_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")

_Chain = tuple[Any, int, Offer] | None
_States = dict[tuple[int, int], tuple[Any, _Chain]]
"""By the numbers of nodes and workers placed: the least cost so far, and the choice that has it."""


def _raise_bottleneck(
    groups: list[Group], goal: Goal, measure: Callable[[Offer], float], effort: Effort
) -> list[Group] | None:
    """Return *groups* with only the offers that reach the highest possible minimum of *measure*."""
    if len({measure(offer) for group in groups for offer in group.offers}) == 1:
        return groups
    worst = Cost(-inf, lambda cost, offer: max(cost, -measure(offer)))
    found = _walk(groups, goal, worst, effort)
    if found is None:
        return None
    limit = min(measure(offer) for _, offer in found)
    kept = (
        Group(group.nodes, tuple(offer for offer in group.offers if measure(offer) >= limit))
        for group in groups
    )
    return [group for group in kept if group.offers]


def _more_damage(damage: tuple[int, float], offer: Offer) -> tuple[int, float]:
    return damage[0] + offer.stranded, damage[1] + offer.loss


def _walk(groups: Sequence[Group], goal: Goal, cost: Cost, effort: Effort) -> Chosen | None:
    """Return the choice for *goal* of least *cost*; None where *effort* does not suffice."""
    order = sorted(groups, key=lambda group: (-group.most, group.nodes))
    reach = list(accumulate((group.most for group in order for _ in group.nodes), initial=0))
    states: _States = {(0, 0): (cost.nothing, None)}
    position = 0
    for group in order:
        end = position + len(group.nodes)
        layer, merged = states, _reaching(states, reach, end, goal)
        for step, node in enumerate(group.nodes, 1):
            if not effort.spend(len(layer) * len(group.offers)):
                return None
            layer = _reaching(_extended(layer, node, group.offers, cost), reach, position + step, goal)
            if not layer:
                break
            _merge(merged, _reaching(layer, reach, end, goal))
        states, position = merged, end
    return _chosen(states[goal.count, goal.workers][1])


def _extended(layer: _States, node: int, offers: Iterable[Offer], cost: Cost) -> _States:
    """Return the states after *node* was taken as well."""
    made: _States = {}
    for (taken, placed), (so_far, chain) in layer.items():
        for offer in offers:
            key, total = (taken + 1, placed + offer.workers), cost.add(so_far, offer)
            known = made.get(key)
            if known is None or total < known[0]:
                made[key] = (total, (chain, node, offer))
    return made


def _reaching(states: _States, reach: Sequence[int], position: int, goal: Goal) -> _States:
    """Return those of *states* from which the nodes after *position* can still complete the gang."""
    last = len(reach) - 1 - position
    start = reach[position]
    return {
        key: value
        for key, value in states.items()
        if 0 <= (left := goal.count - key[0]) <= last
        and left <= goal.workers - key[1] <= reach[position + left] - start
    }


def _merge(into: _States, states: _States) -> None:
    for key, value in states.items():
        known = into.get(key)
        if known is None or value[0] < known[0]:
            into[key] = value


def _chosen(chain: _Chain) -> Chosen:
    chosen: Chosen = []
    while chain is not None:
        chain, node, offer = chain
        chosen.append((node, offer))
    return chosen
