"""The best choice of nodes for a gang among groups of equal nodes: exact where that is short, else greedy.

The goal names the fewest nodes that hold the gang, so that the *slack*, the places left unused on them, is smaller than
one node. Bandwidth is the lowest of the nodes: the highest limit is looked for that still leaves a choice. Damage is a sum:
without slack all but the narrowest of the chosen nodes are forced, and of those the least damaged are taken; with slack,
``slack`` decides which nodes leave which places unused.

Three nodes take two workers each, at 45, 45 and 8 GB/s; three workers need two nodes and leave one place unused. The
rates that occur are 8 and 45. At 45 or more two nodes remain, which have four places: enough, so the limit is 45, and
only their damage is left to compare.

Where GPUs left over go before bandwidth, their number limits the choice as well: a limit on bandwidth leaves a choice only
if the one of least damage strands no more. Where the two are weighed, every rate is tried as a limit, the highest first,
until no lower one can be worth more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import attrgetter

from arena_topo.model.plan.demand import Objective
from arena_topo.planner.nodes.node_state import Offer, damage
from arena_topo.planner.nodes.objective import Goal, Merit
from arena_topo.planner.nodes.slack import Chosen, NodeGroup, spread


@dataclass(slots=True)
class Effort:
    """How many steps of search one decision may still take."""

    steps: int

    def spend(self, steps: int) -> bool:
        """Take *steps* off if there are as many; whether there were."""
        if steps > self.steps:
            return False
        self.steps -= steps
        return True


def search(groups: Sequence[NodeGroup], goal: Goal, effort: Effort) -> Chosen | None:
    """Return the best choice for *goal*: highest busbw and least damage in the order of its objective.

    None where *effort* does not suffice. NICs bound a gang of several nodes only.
    """
    pool = sorted(groups, key=_width)
    # Bandwidth goes before any number of GPUs left over; another objective bounds that number.
    most: int | None = None
    measures = (_BUSBW, _INSIDE) if goal.count > 1 else (_INSIDE,)
    if goal.objective is not Objective.BANDWIDTH:
        most = _allowance(pool, goal, measures[0], effort)
        if most is None:
            return None
    for measure in measures:
        raised = _raised(pool, goal, measure, effort, most)
        if raised is None:
            return None
        pool = raised
    return _cheapest(pool, goal, effort)


def greedy(groups: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return a choice for *goal*: the widest nodes, of equally wide ones the best, all of them full but the last ones."""
    full = [(group.offers[0], position, group) for group in groups for position in group.nodes]
    full.sort(key=lambda entry: (not entry[2].kept, *_full_rank(entry[0]), entry[1]))
    taken = full[: goal.count]
    surplus = sum(offer.workers for offer, _, _ in taken) - goal.workers
    # On the fewest nodes one of them can have all that is left over; on more nodes, or with kept ones, it takes several.
    if any(group.kept for group in groups) or not any(surplus < offer.workers for offer, _, _ in taken):
        return _emptied_from_behind(taken, surplus)
    # The surplus is taken off the node that is fastest with the rest, where it can be. Offers go down from the most
    # workers one by one, so the offer at index i takes i fewer than the first.
    rates = [
        (group.offers[surplus].busbw, group.offers[surplus].inside) if surplus < offer.workers else _LOWEST
        for offer, _, group in taken
    ]
    reduced = max(range(goal.count), key=rates.__getitem__)
    # On more nodes than the fewest the surplus may be more than any one node can spare.
    if rates[reduced] == _LOWEST:
        return _emptied_from_behind(taken, surplus)
    return [
        (position, group.offers[surplus] if index == reduced else offer)
        for index, (offer, position, group) in enumerate(taken)
    ]


def _emptied_from_behind(taken: Sequence[tuple[Offer, int, NodeGroup]], surplus: int) -> Chosen:
    """Return *taken* with *surplus* workers fewer, off the last nodes: more than one of them may have so many to spare."""
    chosen: Chosen = []
    for _, position, group in reversed(taken):
        fewer = min(surplus, len(group.offers) - 1)
        surplus -= fewer
        chosen.append((position, group.offers[fewer]))
    return chosen


_LOWEST = (-inf, -inf)
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")


_Rated = tuple[NodeGroup, tuple[float, ...]]
"""A group and the rate of each of its offers."""


def _full_rank(offer: Offer) -> tuple[int, float, float, int]:
    return -offer.workers, -offer.busbw, -offer.inside, offer.damage


def _width(group: NodeGroup) -> tuple[int, int]:
    return -group.most, group.nodes[0]


def _widest(pool: Sequence[NodeGroup], count: int) -> list[tuple[NodeGroup, int]]:
    """Return the *count* widest nodes of *pool*, which is sorted by width, those that are kept among them: by group."""
    widest: list[tuple[NodeGroup, int]] = []
    left = count - sum(len(group.nodes) for group in pool if group.kept)
    for group in pool:
        taken = len(group.nodes) if group.kept else min(len(group.nodes), left)
        if not group.kept:
            left -= taken
        if taken:
            widest.append((group, taken))
    return widest


def _spare(widest: Sequence[tuple[NodeGroup, int]], goal: Goal) -> int:
    """Return how many places more than the goal needs *widest* have; -1 where they are too few or too narrow."""
    if sum(taken for _, taken in widest) != goal.count:
        return -1
    return max(sum(group.most * taken for group, taken in widest) - goal.workers, -1)


def _allowance(
    pool: Sequence[NodeGroup], goal: Goal, measure: Callable[[Offer], float], effort: Effort
) -> int | None:
    """Return how many GPUs the best choice leaves over where they go before, or beside, bandwidth; None without *effort*.

    At 19 GB/s a choice of four GPUs leaves four over, at 13 GB/s another one leaves none: 0 for both objectives.
    """
    chosen = _cheapest(pool, goal, effort)
    if chosen is None:
        return None
    # A limit on the rates takes choices away, so that none of them leaves over less than the least of all.
    least = most = _stranded(chosen)
    if goal.objective is Objective.PACK:
        return least

    def worth(rate: float, stranded: int) -> Merit:
        return goal.merit(rate, 0.0, damage(stranded, 0.0))

    rated = [(group, tuple(map(measure, group.offers))) for group in pool]
    best = worth(min(measure(offer) for _, offer in chosen), least)
    for rate in sorted({rate for _, rates in rated for rate in rates}, reverse=True):
        if worth(rate, least) >= best:
            break
        chosen = _cheapest(_limited(rated, rate), goal, effort)
        if chosen is None:
            return None
        if chosen and (other := worth(rate, _stranded(chosen))) < best:
            best, most = other, _stranded(chosen)
    return most


def _raised(
    pool: list[NodeGroup],
    goal: Goal,
    measure: Callable[[Offer], float],
    effort: Effort,
    most: int | None = None,
) -> list[NodeGroup] | None:
    """Return *pool* with only the offers that reach the highest possible minimum of *measure*, still sorted.

    *most* GPUs may be left over, any number where it is None.
    """
    rated = [(group, tuple(map(measure, group.offers))) for group in pool]
    rates = sorted({rate for _, rates in rated for rate in rates})
    # At the lowest rate every offer remains, and the pool as it is has a choice: the bisection starts from there.
    best, low, high = pool, 0, len(rates)
    while high - low > 1:
        middle = (low + high) // 2
        limited = _limited(rated, rates[middle])
        possible = _is_possible(limited, goal, effort, most)
        if possible is None:
            return None
        if possible:
            best, low = limited, middle
        else:
            high = middle
    return best


def _limited(rated: Sequence[_Rated], least: float) -> list[NodeGroup]:
    """Return the groups with only the offers whose rate is *least* or more, sorted as before."""
    limited, is_sorted = [], True
    for group, rates in rated:
        if min(rates) >= least:
            limited.append(group)
        elif max(rates) >= least:
            offers = [offer for offer, rate in zip(group.offers, rates, strict=True) if rate >= least]
            limited.append(group._replace(offers=tuple(offers)))
            # Without its widest offer a group may belong further back.
            is_sorted = False
        elif group.kept:
            return []
    return limited if is_sorted else sorted(limited, key=_width)


def _is_possible(pool: Sequence[NodeGroup], goal: Goal, effort: Effort, most: int | None) -> bool | None:
    """Whether *pool* has a choice for *goal* that leaves over *most* GPUs; None where *effort* does not suffice to tell."""
    if most is not None:
        chosen = _cheapest(pool, goal, effort)
        return None if chosen is None else bool(chosen) and _stranded(chosen) <= most
    widest = _widest(pool, goal.count)
    slack = _spare(widest, goal)
    if slack < 0:
        return False
    # Where every number of workers between the fewest and the most is possible, a sum decides.
    fewest = sum(taken * group.offers[-1].workers for group, taken in widest)
    if fewest <= goal.workers and all(group.is_whole for group, _ in widest):
        return True
    chosen = _spread(pool, goal, slack, effort)
    return None if chosen is None else bool(chosen)


def _cheapest(pool: Sequence[NodeGroup], goal: Goal, effort: Effort) -> Chosen | None:
    """Return the choice of least damage, empty where there is none, None where *effort* does not suffice."""
    widest = _widest(pool, goal.count)
    slack = _spare(widest, goal)
    if slack < 0:
        return []
    # Nodes that are kept need not be among the widest.
    if slack == 0 and not any(group.kept for group in pool):
        return _least_damaged(pool, goal)
    return _spread(pool, goal, slack, effort)


def _stranded(chosen: Chosen) -> int:
    return sum(offer.stranded for _, offer in chosen)


def _least_damaged(pool: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return the choice of least damage where every chosen node is full."""
    # Every place on the widest nodes is needed, so each node wider than the narrowest of them is taken.
    narrowest = _widest(pool, goal.count)[-1][0].most
    forced = [
        (position, group.offers[0]) for group in pool if group.most > narrowest for position in group.nodes
    ]
    free = sorted(
        (group for group in pool if group.most == narrowest), key=lambda group: group.offers[0].damage
    )
    candidates = chain.from_iterable(
        ((position, group.offers[0]) for position in group.nodes) for group in free
    )
    return forced + [entry for entry, _ in zip(candidates, range(goal.count - len(forced)), strict=False)]


def _spread(pool: Sequence[NodeGroup], goal: Goal, slack: int, effort: Effort) -> Chosen | None:
    """Return the choice of least damage, empty where there is none, None where *effort* does not suffice."""
    # Which of the nodes that are kept are taken is no question, so that they add no states.
    free = goal.count - sum(len(group.nodes) for group in pool if group.kept)
    if not effort.spend(len(pool) * (slack + 1) * max(min(free, slack + 1), 1) ** 2):
        return None
    return spread(pool, goal, slack)
