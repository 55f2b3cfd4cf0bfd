"""The best choice of nodes for a gang among groups of equal nodes: exact where that is short, else greedy.

The goal names the fewest nodes that hold the gang, so that the *slack*, the places left unused on them, is smaller than
one node. Bandwidth is the lowest of the nodes and comes first: the highest limit is looked for that still leaves a
choice. Damage is a sum: without slack all but the narrowest of the chosen nodes are forced, and of those the least
damaged are taken; with slack, ``spreading`` tells who leaves which places unused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import attrgetter

from arena_topo.planner.nodes.offers import Offer
from arena_topo.planner.nodes.slack import Chosen, Goal, Group, spread


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


def search(groups: Sequence[Group], goal: Goal, effort: Effort) -> Chosen | None:
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
    return _cheapest(pool, goal) if slack == 0 else _spread(pool, goal, slack, effort)


def greedy(groups: Sequence[Group], goal: Goal) -> Chosen:
    """Return a choice for *goal*: the widest nodes, of equally wide ones the best, all of them full but one."""
    full = [(group.offers[0], at, group) for group in groups for at in group.nodes]
    full.sort(key=lambda each: (-each[0].workers, -each[0].busbw, -each[0].inside, each[0].damage, each[1]))
    taken = full[: goal.count]
    surplus = sum(offer.workers for offer, _, _ in taken) - goal.workers
    rates = [
        (each[2].offers[surplus].busbw, each[2].offers[surplus].inside)
        if surplus < each[0].workers
        else _LOWEST
        for each in taken
    ]
    reduced = max(range(goal.count), key=rates.__getitem__)
    return [
        (node, group.offers[surplus] if at == reduced else offer)
        for at, (offer, node, group) in enumerate(taken)
    ]


_LOWEST = (-inf, -inf)
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")


_Rated = tuple[Group, tuple[float, ...]]
"""A group and the rate of each of its offers."""


def _width(group: Group) -> tuple[int, int]:
    return -group.most, group.nodes[0]


def _widest(pool: Sequence[Group], count: int) -> list[int]:
    """Return the most workers of the *count* widest nodes of *pool*, which is sorted by them."""
    found: list[int] = []
    for group in pool:
        found += [group.most] * min(len(group.nodes), count - len(found))
        if len(found) == count:
            break
    return found


def _raised(
    pool: list[Group], goal: Goal, measure: Callable[[Offer], float], effort: Effort
) -> list[Group] | None:
    """Return *pool* with only the offers that reach the highest possible minimum of *measure*, still sorted."""
    rated = [(group, tuple(map(measure, group.offers))) for group in pool]
    rates = sorted({rate for _, rates in rated for rate in rates})
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


def _limited(rated: Sequence[_Rated], least: float) -> list[Group]:
    """Return the groups with only the offers whose rate is *least* or more, sorted as before."""
    kept, whole = [], True
    for group, rates in rated:
        if min(rates) >= least:
            kept.append(group)
        elif max(rates) >= least:
            offers = [offer for offer, rate in zip(group.offers, rates, strict=True) if rate >= least]
            kept.append(Group(group.nodes, tuple(offers)))
            whole = False
    return kept if whole else sorted(kept, key=_width)


def _is_possible(pool: Sequence[Group], goal: Goal, effort: Effort) -> bool | None:
    """Whether *pool* has a choice for *goal*; None where *effort* does not suffice to tell."""
    widest = _widest(pool, goal.count)
    slack = sum(widest) - goal.workers
    if len(widest) < goal.count or slack < 0:
        return False
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
    found = _spread(pool, goal, slack, effort)
    return None if found is None else bool(found)


def _cheapest(pool: Sequence[Group], goal: Goal) -> Chosen:
    """Return the choice of least damage where every chosen node is full."""
    narrowest = _widest(pool, goal.count)[-1]
    chosen = [(at, group.offers[0]) for group in pool if group.most > narrowest for at in group.nodes]
    rest = sorted(
        (group for group in pool if group.most == narrowest), key=lambda each: each.offers[0].damage
    )
    free = chain.from_iterable(((at, group.offers[0]) for at in group.nodes) for group in rest)
    return chosen + [each for each, _ in zip(free, range(goal.count - len(chosen)), strict=False)]


def _spread(pool: Sequence[Group], goal: Goal, slack: int, effort: Effort) -> Chosen | None:
    """Return the choice of least damage, empty where there is none, None where *effort* does not suffice."""
    if not effort.spend(len(pool) * (slack + 1) * min(goal.count, slack + 1) ** 2):
        return None
    return spread(pool, goal, slack)
