"""The best choice of nodes for a gang among groups of equal nodes: exact where that is short, else greedy.

The goal names the fewest nodes that hold the gang, so that the *slack*, the places left unused on them, is smaller than
one node. Bandwidth is the lowest of the nodes and comes first: the highest limit is looked for that still leaves a
choice. Damage is a sum: without slack all but the narrowest of the chosen nodes are forced, and of those the least
damaged are taken; with slack, dynamic programming runs over the groups, with the nodes and the slack used so far as its
state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import inf
from operator import attrgetter

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
    rates = sorted({measure(offer) for group in pool for offer in group.offers})
    best, low, high = pool, 0, len(rates)
    while high - low > 1:
        middle = (low + high) // 2
        limited = _limited(pool, measure, rates[middle])
        possible = _is_possible(limited, goal, effort)
        if possible is None:
            return None
        if possible:
            best, low = limited, middle
        else:
            high = middle
    return best


def _limited(pool: Sequence[Group], measure: Callable[[Offer], float], least: float) -> list[Group]:
    """Return *pool* with only the offers whose *measure* is *least* or more."""
    kept = (
        Group(group.nodes, tuple(offer for offer in group.offers if measure(offer) >= least))
        for group in pool
    )
    return sorted((group for group in kept if group.offers), key=_width)


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


_Chain = tuple["_Chain", int, int, int] | None
"""The way to a state: the one before it, a group's number, how many of its nodes are taken, and how much less."""
_States = dict[tuple[int, int], tuple[int, _Chain]]
"""By the numbers of nodes and workers placed: the least damage so far, and the way there."""


def _spread(pool: Sequence[Group], goal: Goal, slack: int, effort: Effort) -> Chosen | None:
    """Return the choice of least damage, empty where there is none, None where *effort* does not suffice.

    A node that is left out, or not filled, is slack: before each group the nodes taken and the places filled are known
    up to the slack, and so is what may be taken of it.
    """
    if not effort.spend(len(pool) * (slack + 1) * min(goal.count, slack + 1) ** 2):
        return None
    reach = list(accumulate((group.most for group in pool for _ in group.nodes), initial=0))
    states: _States = {(0, 0): (0, None)}
    position = 0
    for number, group in enumerate(pool):
        position += len(group.nodes)
        turn = _Turn(number, group, _extra(group, slack), position)
        states = _extended(states, turn, reach, goal)
    best = states.get((goal.count, goal.workers))
    return _unrolled(pool, best[1], slack) if best else []


@dataclass(frozen=True, slots=True)
class _Turn:
    """A group whose turn it is, what taking less costs on it, and how many nodes there are up to its end."""

    number: int
    group: Group
    extra: list[list[float]]
    position: int


def _extended(states: _States, turn: _Turn, reach: Sequence[int], goal: Goal) -> _States:
    """Return the states after nodes of a group were taken as well, of those that can still complete the gang."""
    group, extra, position = turn.group, turn.extra, turn.position
    most, full, size = group.most, group.offers[0].damage, len(group.nodes)
    made: _States = {}
    for (taken, placed), (damage, way) in states.items():
        for more in range(min(size, goal.count - taken), -1, -1):
            left, after = goal.count - taken - more, placed + more * most
            if position + left >= len(reach):
                break
            spare = after + reach[position + left] - reach[position] - goal.workers
            if spare < 0:
                break
            row = extra[min(more, len(extra) - 1)]
            for less in range(min(spare, len(row) - 1) + 1):
                if row[less] == inf or after - less + left > goal.workers:
                    continue
                key, total = (taken + more, after - less), damage + more * full + int(row[less])
                known = made.get(key)
                if known is None or total < known[0]:
                    made[key] = (total, (way, turn.number, more, less) if more else way)
    return made


def _extra(group: Group, slack: int) -> list[list[float]]:
    """Return what it costs that n nodes of *group* together take m workers less than the most, as [n][m].

    From as many nodes on as there is slack, another one changes nothing.
    """
    full, most = group.offers[0].damage, group.most
    single = [inf] * (slack + 1)
    for offer in group.offers:
        if most - offer.workers <= slack:
            single[most - offer.workers] = offer.damage - full
    rows: list[list[float]] = [[0, *[inf] * slack]]
    for _ in range(min(slack, len(group.nodes))):
        before = rows[-1]
        rows.append(
            [min(before[less - mine] + single[mine] for mine in range(less + 1)) for less in range(slack + 1)]
        )
    return rows


def _unrolled(pool: Sequence[Group], way: _Chain, slack: int) -> Chosen:
    """Return the choice that *way* is."""
    chosen: Chosen = []
    while way is not None:
        way, number, more, less = way
        group = pool[number]
        by_width = {offer.workers: offer for offer in group.offers}
        taken = [group.offers[0]] * more
        rows = _extra(group, slack) if less else []
        while less:
            row = min(more, len(rows) - 1)
            before, most, full = rows[row - 1], group.most, group.offers[0].damage
            mine = next(
                each
                for each in range(less + 1)
                if (offer := by_width.get(most - each))
                and before[less - each] + offer.damage - full == rows[row][less]
            )
            more -= 1
            taken[more] = by_width[most - mine]
            less -= mine
        chosen += zip(group.nodes, taken, strict=False)
    return chosen
