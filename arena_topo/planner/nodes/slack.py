"""Where the widest nodes have places to spare: which nodes are left out or not filled, for the least damage.

Dynamic programming over the nodes, widest first, equally good ones at once. A node that is left out, or not filled, is
*slack*: the nodes taken and the places filled so far are known up to the slack that is left, so that the states are few.

Five workers are to go onto two of these three nodes:

====  ===========================  ===========================
node  damage with 3 workers        damage with 2 workers
====  ===========================  ===========================
0     4                            1
1     0                            9
2     (takes only 2)               5
====  ===========================  ===========================

The two widest nodes have six places, so the slack is 1. After node 0 the states (nodes taken, workers placed) are
(0, 0) at damage 0, (1, 3) at 4 and (1, 2) at 1. After node 1 only those are kept that can still make it: (1, 3) at 0,
with node 0 left out; (2, 5) at min(1 + 0, 4 + 9) = 1; and (1, 3) at 4 loses to the one at 0. Node 2 would turn (1, 3)
into (2, 5) at 0 + 5 = 5. The best way to (2, 5) costs 1: two workers on node 0, three on node 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.objective import Goal

Chosen = list[tuple[int, Offer]]
"""The nodes that take the gang, by position, each with its offer."""


class NodeGroup(NamedTuple):
    """Nodes that are equally good, by position, and what each may take: the most workers first.

    ``kept``: all of them are taken in any case, because workers of the gang are there already.
    """

    nodes: tuple[int, ...]
    offers: tuple[Offer, ...]
    kept: bool = False

    @property
    def most(self) -> int:
        """The most workers that one of the nodes may take."""
        return self.offers[0].workers

    @property
    def is_whole(self) -> bool:
        """Whether the offers leave out no number of workers between the most and the least."""
        return self.offers[0].workers - self.offers[-1].workers == len(self.offers) - 1


@dataclass(frozen=True, slots=True)
class _CostGroup:
    """Nodes that do the same damage, by position, each with its group.

    ``costs`` is the damage by number of workers. ``extra`` at [n][m] is the damage that n of the nodes add when they
    take m workers less than the most, None where they cannot; with as many nodes as there is slack the rows end,
    because further nodes are full and add nothing. With costs {3: 4, 2: 1} and a slack of 1 the rows are [0, None] for no
    node and [0, -3] for one or more.
    """

    nodes: tuple[tuple[int, NodeGroup], ...]
    costs: dict[int, int]
    extra: list[list[int | None]]
    kept: bool

    @property
    def most(self) -> int:
        """The most workers that one of the nodes may take."""
        return self.nodes[0][1].most


_BackPointer = tuple["_BackPointer", int, int, int] | None
"""How a state was reached: the pointer of the state before it, the number of a cost group, how many of its nodes are
taken, and how many workers fewer than the most."""
_States = dict[tuple[int, int], tuple[int, _BackPointer]]
"""By the numbers of nodes taken and workers placed: the least damage so far, and how the state was reached."""


def spread(pool: Sequence[NodeGroup], goal: Goal, slack: int) -> Chosen:
    """Return the choice of least damage for *goal* among *pool*, widest first; empty where there is none.

    *slack* is how many places more the widest nodes have than the goal needs.
    """
    cost_groups = _cost_groups(pool, slack)
    reach = list(accumulate((group.most for group in cost_groups for _ in group.nodes), initial=0))
    states: _States = {(0, 0): (0, None)}
    position = 0
    for number, group in enumerate(cost_groups):
        position += len(group.nodes)
        states = _extended(states, number, group, reach[position:], goal)
    best = states.get((goal.count, goal.workers))
    return _unrolled(cost_groups, best[1]) if best else []


def _cost_groups(pool: Sequence[NodeGroup], slack: int) -> list[_CostGroup]:
    """Return the nodes of *pool*, those together whose offers do the same damage, in its order."""
    by_costs: dict[tuple[bool, tuple[tuple[int, int], ...]], list[tuple[int, NodeGroup]]] = {}
    for group in pool:
        costs = tuple((offer.workers, offer.damage) for offer in group.offers)
        by_costs.setdefault((group.kept, costs), []).extend((position, group) for position in group.nodes)
    cost_groups = []
    # Nodes of several groups may do the same damage; of equal ones the first in fabric order are taken.
    for (kept, costs), nodes in by_costs.items():
        nodes.sort(key=lambda entry: entry[0])
        cost_groups.append(
            _CostGroup(tuple(nodes), dict(costs), _extra(costs, min(slack, len(nodes)), slack), kept)
        )
    return cost_groups


def _extra(costs: Sequence[tuple[int, int]], nodes: int, slack: int) -> list[list[int | None]]:
    """Return the ``extra`` of a cost group of so many *nodes* at most, from the workers and damage of its *costs*.

    >>> _extra([(3, 4), (2, 1)], nodes=1, slack=1)
    [[0, None], [0, -3]]
    """
    most, full = costs[0]
    single = [(most - workers, damage - full) for workers, damage in costs if most - workers <= slack]
    rows: list[list[int | None]] = [[0, *[None] * slack]]
    for _ in range(nodes):
        row: list[int | None] = [None] * (slack + 1)
        for before, cost in enumerate(rows[-1]):
            if cost is not None:
                for lacking, added in single:
                    less, total = before + lacking, cost + added
                    if less <= slack and ((lowest := row[less]) is None or total < lowest):
                        row[less] = total
        rows.append(row)
    return rows


def _extended(states: _States, number: int, group: _CostGroup, reach: Sequence[int], goal: Goal) -> _States:
    """Return the states after nodes of *group* were taken as well, of those that can still complete the gang.

    *reach* is how many workers the nodes so far and n of those after them take at most, at [n].
    """
    most, full, size, last = group.most, group.costs[group.most], len(group.nodes), len(group.extra) - 1
    extended: _States = {}
    for (taken, placed), (damage, pointer) in states.items():
        for more in range(min(size, goal.count - taken), size - 1 if group.kept else -1, -1):
            left, after = goal.count - taken - more, placed + more * most
            # Too few nodes remain after this group, or they cannot take the workers that are missing. With fewer nodes
            # of this group even more would be missing, so the loop ends.
            if left >= len(reach):
                break
            spare = after + reach[left] - reach[0] - goal.workers
            if spare < 0:
                break
            row, base = group.extra[min(more, last)], damage + more * full
            for less in range(max(after + left - goal.workers, 0), min(spare, len(row) - 1) + 1):
                added = row[less]
                if added is None:
                    continue
                state, total = (taken + more, after - less), base + added
                previous = extended.get(state)
                if previous is None or total < previous[0]:
                    extended[state] = (total, (pointer, number, more, less) if more else pointer)
    return extended


def _unrolled(cost_groups: Sequence[_CostGroup], pointer: _BackPointer) -> Chosen:
    """Return the choice that *pointer* leads back through."""
    chosen: Chosen = []
    while pointer is not None:
        pointer, number, more, less = pointer
        group = cost_groups[number]
        # A cost group may have more nodes than are taken: those without an amount are left out.
        chosen += [
            (position, _offer(alike, workers))
            for (position, alike), workers in zip(group.nodes, _amounts(group, more, less), strict=False)
        ]
    return chosen


def _offer(group: NodeGroup, workers: int) -> Offer:
    return next(offer for offer in group.offers if offer.workers == workers)


def _amounts(group: _CostGroup, more: int, less: int) -> list[int]:
    """Return how many workers *more* nodes of *group* take, *less* than the most in all, for the least damage."""
    amounts, full = [group.most] * more, group.costs[group.most]
    while less:
        row = min(more, len(group.extra) - 1)
        before, target = group.extra[row - 1], group.extra[row][less]
        # One of the numbers of workers leads back to a cell of the row before with the rest of the damage.
        workers = next(
            workers
            for workers, damage in group.costs.items()
            if (rest := less - group.most + workers) >= 0
            and (cost := before[rest]) is not None
            and cost + damage - full == target
        )
        more -= 1
        amounts[more] = workers
        less -= group.most - workers
    return amounts
