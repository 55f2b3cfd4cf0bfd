"""The best choice of nodes for a gang among groups of equal nodes: exact where that is short, else greedy.

The goal names the fewest nodes that hold the gang, so that the *slack*, the places left unused on them, is smaller than
one node. Bandwidth is the lowest of the nodes and comes first: the highest limit is looked for that still leaves a
choice. Damage is a sum: without slack all but the narrowest of the chosen nodes are forced, and of those the least
damaged are taken; with slack, ``slack`` decides which nodes leave which places unused.

Three nodes take two workers each, at 45, 45 and 8 GB/s; three workers need two nodes and leave one place unused. The
rates that occur are 8 and 45. At 45 or more two nodes remain, which have four places: enough, so the limit is 45, and
only their damage is left to compare.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import attrgetter

from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.slack import Chosen, Goal, NodeGroup, spread


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
    """Return the best choice for *goal*: highest busbw, highest busbw inside, least damage.

    None where *effort* does not suffice. NICs bound a gang of several nodes only.
    """
    pool = sorted(groups, key=_width)
    for measure in (_BUSBW, _INSIDE) if goal.count > 1 else (_INSIDE,):
        raised = _raised(pool, goal, measure, effort)
        if raised is None:
            return None
        pool = raised
    slack = sum(_widest(pool, goal.count)) - goal.workers
    return _least_damaged(pool, goal) if slack == 0 else _spread(pool, goal, slack, effort)


def greedy(groups: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return a choice for *goal*: the widest nodes, of equally wide ones the best, all of them full but one."""
    full = [(group.offers[0], position, group) for group in groups for position in group.nodes]
    full.sort(key=lambda entry: (*_full_rank(entry[0]), entry[1]))
    taken = full[: goal.count]
    surplus = sum(offer.workers for offer, _, _ in taken) - goal.workers
    # The surplus is taken off the node that is fastest with the rest, where it can be. Offers go down from the most
    # workers one by one, so the offer at index i takes i fewer than the first.
    rates = [
        (group.offers[surplus].busbw, group.offers[surplus].inside) if surplus < offer.workers else _LOWEST
        for offer, _, group in taken
    ]
    reduced = max(range(goal.count), key=rates.__getitem__)
    return [
        (position, group.offers[surplus] if index == reduced else offer)
        for index, (offer, position, group) in enumerate(taken)
    ]


_LOWEST = (-inf, -inf)
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")


_Rated = tuple[NodeGroup, tuple[float, ...]]
"""A group and the rate of each of its offers."""


def _full_rank(offer: Offer) -> tuple[int, float, float, int]:
    return -offer.workers, -offer.busbw, -offer.inside, offer.damage


def _width(group: NodeGroup) -> tuple[int, int]:
    return -group.most, group.nodes[0]


def _widest(pool: Sequence[NodeGroup], count: int) -> list[int]:
    """Return the most workers of each of the *count* widest nodes of *pool*, which is sorted by width."""
    widest: list[int] = []
    for group in pool:
        widest += [group.most] * min(len(group.nodes), count - len(widest))
        if len(widest) == count:
            break
    return widest


def _raised(
    pool: list[NodeGroup], goal: Goal, measure: Callable[[Offer], float], effort: Effort
) -> list[NodeGroup] | None:
    """Return *pool* with only the offers that reach the highest possible minimum of *measure*, still sorted."""
    rated = [(group, tuple(map(measure, group.offers))) for group in pool]
    rates = sorted({rate for _, rates in rated for rate in rates})
    # At the lowest rate every offer remains, and the pool as it is has a choice: the bisection starts from there.
    best, low, high = pool, 0, len(rates)
    while high - low > 1:
        middle = (low + high) // 2
        limited = _limited(rated, rates[middle])
        possible = _is_possible(limited, goal, effort)
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
            limited.append(NodeGroup(group.nodes, tuple(offers)))
            # Without its widest offer a group may belong further back.
            is_sorted = False
    return limited if is_sorted else sorted(limited, key=_width)


def _is_possible(pool: Sequence[NodeGroup], goal: Goal, effort: Effort) -> bool | None:
    """Whether *pool* has a choice for *goal*; None where *effort* does not suffice to tell."""
    widest = _widest(pool, goal.count)
    slack = sum(widest) - goal.workers
    if len(widest) < goal.count or slack < 0:
        return False
    # Where every number of workers between the fewest and the most is possible, a sum decides.
    left, fewest, whole = goal.count, 0, True
    for group in pool:
        taken = min(len(group.nodes), left)
        fewest += taken * group.offers[-1].workers
        whole = whole and group.is_whole
        left -= taken
        if not left:
            break
    if whole and fewest <= goal.workers:
        return True
    chosen = _spread(pool, goal, slack, effort)
    return None if chosen is None else bool(chosen)


def _least_damaged(pool: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return the choice of least damage where every chosen node is full."""
    # Every place on the widest nodes is needed, so each node wider than the narrowest of them is taken.
    narrowest = _widest(pool, goal.count)[-1]
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
    if not effort.spend(len(pool) * (slack + 1) * min(goal.count, slack + 1) ** 2):
        return None
    return spread(pool, goal, slack)
