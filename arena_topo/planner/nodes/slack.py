"""Where the widest nodes have places to spare: which nodes are left out or not filled, for the least damage.

Dynamic programming over the nodes, widest first, equally good ones at once. A node that is left out, or not filled, is
*slack*: the nodes taken and the places filled so far are known up to the slack that is left, so that the states are few.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from arena_topo.planner.nodes.offers import Offer

Chosen = list[tuple[int, Offer]]
"""The nodes that take the gang, by position, each with its offer."""


class Group(NamedTuple):
    """Nodes that are equally good, by position, and what each may take: the most workers first."""

    nodes: tuple[int, ...]
    offers: tuple[Offer, ...]

    @property
    def most(self) -> int:
        """The most workers that one of the nodes may take."""
        return self.offers[0].workers

    @property
    def is_whole(self) -> bool:
        """Whether the offers leave out no number of workers between the most and the least."""
        return self.offers[0].workers - self.offers[-1].workers == len(self.offers) - 1


@dataclass(frozen=True, slots=True)
class Goal:
    """So many nodes that together take so many workers."""

    count: int
    workers: int


@dataclass(frozen=True, slots=True)
class _Turn:
    """Nodes that do the same damage, by position, each with its group.

    ``extra`` at [n][m] is the damage that n of them add when they take m workers less than the most, None where they
    cannot; from as many nodes on as there is slack, another one changes nothing.
    """

    nodes: tuple[tuple[int, Group], ...]
    costs: dict[int, int]
    extra: list[list[int | None]]

    @property
    def most(self) -> int:
        """The most workers that one of the nodes may take."""
        return self.nodes[0][1].most


_Way = tuple["_Way", int, int, int] | None
"""The way to a state: the one before it, a turn's number, how many of its nodes are taken, and how much less."""
_States = dict[tuple[int, int], tuple[int, _Way]]
"""By the numbers of nodes and workers placed: the least damage so far, and the way there."""


def spread(pool: Sequence[Group], goal: Goal, slack: int) -> Chosen:
    """Return the choice of least damage for *goal* among *pool*, widest first; empty where there is none.

    *slack* is how many places more the widest nodes have than the goal needs.
    """
    turns = _turns(pool, slack)
    reach = list(accumulate((turn.most for turn in turns for _ in turn.nodes), initial=0))
    states: _States = {(0, 0): (0, None)}
    position = 0
    for number, turn in enumerate(turns):
        position += len(turn.nodes)
        states = _extended(states, number, turn, reach[position:], goal)
    best = states.get((goal.count, goal.workers))
    return _unrolled(turns, best[1]) if best else []


def _turns(pool: Sequence[Group], slack: int) -> list[_Turn]:
    """Return the nodes of *pool*, those together whose offers do the same damage, in its order."""
    alike: dict[tuple[tuple[int, int], ...], list[tuple[int, Group]]] = {}
    for group in pool:
        costs = tuple((offer.workers, offer.damage) for offer in group.offers)
        alike.setdefault(costs, []).extend((at, group) for at in group.nodes)
    made = []
    for costs, nodes in alike.items():
        nodes.sort(key=lambda each: each[0])
        made.append(_Turn(tuple(nodes), dict(costs), _extra(costs, min(slack, len(nodes)), slack)))
    return made


def _extra(costs: Sequence[tuple[int, int]], nodes: int, slack: int) -> list[list[int | None]]:
    """Return the ``extra`` of a turn of so many *nodes* at most, where each may take so many workers at such damage."""
    most, full = costs[0]
    single = [(most - workers, damage - full) for workers, damage in costs if most - workers <= slack]
    rows: list[list[int | None]] = [[0, *[None] * slack]]
    for _ in range(nodes):
        row: list[int | None] = [None] * (slack + 1)
        for before, cost in enumerate(rows[-1]):
            if cost is not None:
                for mine, added in single:
                    less, total = before + mine, cost + added
                    if less <= slack and ((known := row[less]) is None or total < known):
                        row[less] = total
        rows.append(row)
    return rows


def _extended(states: _States, number: int, turn: _Turn, reach: Sequence[int], goal: Goal) -> _States:
    """Return the states after nodes of *turn* were taken as well, of those that can still complete the gang.

    *reach* is how many workers the nodes so far and n of those after them take at most, at [n].
    """
    most, full, size, last = turn.most, turn.costs[turn.most], len(turn.nodes), len(turn.extra) - 1
    made: _States = {}
    for (taken, placed), (damage, way) in states.items():
        for more in range(min(size, goal.count - taken), -1, -1):
            left, after = goal.count - taken - more, placed + more * most
            if left >= len(reach):
                break
            spare = after + reach[left] - reach[0] - goal.workers
            if spare < 0:
                break
            row, base = turn.extra[min(more, last)], damage + more * full
            for less in range(max(after + left - goal.workers, 0), min(spare, len(row) - 1) + 1):
                added = row[less]
                if added is None:
                    continue
                key, total = (taken + more, after - less), base + added
                known = made.get(key)
                if known is None or total < known[0]:
                    made[key] = (total, (way, number, more, less) if more else way)
    return made


def _unrolled(turns: Sequence[_Turn], way: _Way) -> Chosen:
    """Return the choice that *way* is."""
    chosen: Chosen = []
    while way is not None:
        way, number, more, less = way
        turn = turns[number]
        amounts = _amounts(turn, more, less)
        chosen += [
            (at, _offer(group, workers)) for (at, group), workers in zip(turn.nodes, amounts, strict=False)
        ]
    return chosen


def _offer(group: Group, workers: int) -> Offer:
    return next(offer for offer in group.offers if offer.workers == workers)


def _amounts(turn: _Turn, more: int, less: int) -> list[int]:
    """Return how many workers *more* nodes of *turn* take, *less* than the most in all, for the least damage."""
    taken, full = [turn.most] * more, turn.costs[turn.most]
    while less:
        row = min(more, len(turn.extra) - 1)
        before, target = turn.extra[row - 1], turn.extra[row][less]
        workers = next(
            each
            for each, damage in turn.costs.items()
            if (at := less - turn.most + each) >= 0
            and (cost := before[at]) is not None
            and cost + damage - full == target
        )
        more -= 1
        taken[more] = workers
        less -= turn.most - workers
    return taken
