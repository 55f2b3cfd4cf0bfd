"""The domain and the nodes for a gang: by what choices are compared, and how the best one is found.

The order of choice, among the domains of the closest level that have room for the gang:

1. the fewest nodes (``choose_domain``);
2. ``Goal.score``: the fewest domains of each closer level, the coarsest first; the highest bandwidth, the
   fewest GPUs left over on the nodes, and the least value that these lose; another objective puts the GPUs
   left over before the bandwidth;
3. of single nodes the one with the least cpu and memory free (``Fleet.unused``);
4. the tightest domain: the one with the least room, then the one within the tightest domain of each coarser
   tier;
5. the first in fabric order; in a domain the tightest domains of the closer levels, then the first nodes.

A ``Rank`` holds 2, 4 and 5. Whatever is added to it has a bound in ``DomainBounds``, by which most domains
are never searched.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import accumulate, chain, combinations, compress, islice, repeat
from math import comb, inf
from operator import attrgetter, itemgetter
from typing import NamedTuple

from arena_topo.model.placement_options import Objective
from arena_topo.planner.fleet import (
    Capacity,
    Domain,
    Fleet,
    Room,
    capacity_by_domain,
    domain_at,
    domains_at,
    rooms,
)
from arena_topo.planner.memo import Memo
from arena_topo.planner.offers import DamageTable, NodeState, Offer, Use, loss_of, nic_rate, stranded_of

# By what two choices of as many nodes are compared: their bandwidth, or the GPUs left over on them.
#
# A worker of four GPUs may get half of an empty box of eight at 19 GB/s, or the free half of another box at
# 13 GB/s:
#
# =========  ==============================  =============================  ==========
# objective  empty box                       half-used box                  taken
# =========  ==============================  =============================  ==========
# bandwidth  19 GB/s                         13 GB/s                        empty
# pack       4 GPUs left over                none left over                 half-used
# =========  ==============================  =============================  ==========

DOMAINS_FIRST: bool = True
"""Whether the domains of closer levels that a gang touches are compared before its bandwidth, or after it."""

Score = tuple[float, ...]
"""What choices of as many nodes in domains of one level are compared by, the lowest best."""
Rank = tuple[Score, Room, int]
"""What such choices in different domains are compared by: score, room of the domain, first node."""


@dataclass(frozen=True, slots=True, eq=False)
class CloserLevel:
    """A level within the one that holds a gang: its domains, and the number of each node's domain."""

    numbers: Sequence[int]
    domains: Sequence[Domain]
    capacity: Capacity

    def room(self, number: int) -> int:
        """Return how many workers the domain *number* has room for."""
        return self.capacity.within(self.domains[number])


@dataclass(frozen=True, slots=True)
class Goal:
    """So many nodes that together take so many workers, and by what choices of them are compared.

    ``closer`` are the levels whose domains count, the coarsest first.
    """

    count: int
    workers: int
    objective: Objective = Objective.BANDWIDTH
    closer: tuple[CloserLevel, ...] = ()

    def score(self, busbw: float, inside: float, damage: int, domains: Sequence[int] = ()) -> Score:
        """Return the score of nodes with the lowest *busbw*, the lowest *inside*, and *damage* in all.

        *domains* are how many they touch of each closer level. With a *busbw* that is none too low, and a
        *damage* and *domains* that are none too high, it is a bound: no real score is lower.
        """
        stranded, loss = stranded_of(damage), loss_of(damage)
        if self.objective is Objective.PACK:
            return (*domains, stranded, -busbw, -inside, loss)
        if DOMAINS_FIRST:
            return (*domains, -busbw, -inside, stranded, loss)
        return (-busbw, -inside, *domains, stranded, loss)

    def score_of(self, nodes: Sequence[int], offers: Sequence[Offer]) -> Score:
        """Return the score of *nodes*, by position, that make these *offers*."""
        return self.score_with(offers, self.domains_of(nodes))

    def score_with(self, offers: Sequence[Offer], domains: Sequence[int]) -> Score:
        """Return the score of nodes that make these *offers*, and touch so many *domains*."""
        inside = min(map(_INSIDE, offers))
        busbw = inside if len(offers) == 1 else min(map(_BUSBW, offers))
        return self.score(busbw, inside, sum(map(_DAMAGE, offers)), domains)

    def domains_of(self, nodes: Sequence[int]) -> tuple[int, ...]:
        """Return how many domains of each closer level *nodes* touch."""
        return tuple(len(set(map(level.numbers.__getitem__, nodes))) for level in self.closer)


@dataclass(frozen=True, slots=True)
class ChosenNodes:
    """The nodes that take a gang, or a role of one, as positions in fabric order, and each one's offer."""

    nodes: tuple[int, ...]
    offers: tuple[Offer, ...]
    score: Score

    @property
    def busbw(self) -> float:
        """The lowest busbw of the nodes in GB/s; NICs count where there are several nodes."""
        # A gang runs at the pace of its slowest node, and on one node it does not use the NICs.
        return min(map(_INSIDE if len(self.offers) == 1 else _BUSBW, self.offers))

    @property
    def stranded(self) -> int:
        """The GPUs left over on the nodes."""
        return sum(offer.stranded for offer in self.offers)


# Where the widest nodes have places to spare: which nodes are left out or not filled, for the least damage.
#
# Dynamic programming over the nodes, widest first, equally good ones at once. A node that is left out, or not
# filled, is *slack*: the nodes taken and the places filled so far are known up to the slack that is left, so
# that the states are few.
#
# Five workers are to go onto two of these three nodes:
#
# ====  ===========================  ===========================
# node  damage with 3 workers        damage with 2 workers
# ====  ===========================  ===========================
# 0     4                            1
# 1     0                            9
# 2     (takes only 2)               5
# ====  ===========================  ===========================
#
# The two widest nodes have six places, so the slack is 1. After node 0 the states (nodes taken, workers
# placed) are (0, 0) at damage 0, (1, 3) at 4 and (1, 2) at 1. After node 1 only those are kept that can still
# make it: (1, 3) at 0, with node 0 left out; (2, 5) at min(1 + 0, 4 + 9) = 1; and (1, 3) at 4 loses to the
# one at 0. Node 2 would turn (1, 3) into (2, 5) at 0 + 5 = 5. The best way to (2, 5) costs 1: two workers on
# node 0, three on node 1.

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

    ``costs`` is the damage by number of workers. ``extra`` at [n][m] is the damage that n of the nodes add
    when they take m workers less than the most, None where they cannot; with as many nodes as there is slack
    the rows end, because further nodes are full and add nothing. With costs {3: 4, 2: 1} and a slack of 1 the
    rows are [0, None] for no node and [0, -3] for one or more.
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
"""How a state was reached: the pointer of the state before, the number of a cost group, how many nodes are
taken, and how many workers fewer than the most."""
_States = dict[tuple[int, int], tuple[int, _BackPointer]]
"""By nodes taken and workers placed: the least damage so far, and how the state was reached."""


def spread(pool: Sequence[NodeGroup], goal: Goal, slack: int) -> Chosen:
    """Return the choice of least damage for *goal* among *pool*, widest first; empty if there is none.

    *slack* is how many places more the widest nodes have than the goal needs.
    """
    cost_groups = _cost_groups(pool, slack, 0)
    widths = chain.from_iterable([repeat(group.most, len(group.nodes)) for group in cost_groups])
    reach = list(accumulate(widths, initial=0))
    states: _States = {(0, 0): (0, None)}
    position = 0
    for number, group in enumerate(cost_groups):
        position += len(group.nodes)
        # No more nodes than the goal's are taken after it.
        states = _extended(states, number, group, reach[position : position + goal.count + 1], goal)
    best = states.get((goal.count, goal.workers))
    return _unrolled(cost_groups, best[1]) if best else []


def _cost_groups(pool: Sequence[NodeGroup], slack: int, shift: int | None) -> list[_CostGroup]:
    """Return the nodes of *pool*, those together whose offers do the same damage, in its order.

    Damages are shifted by so many bits, below which something else is compared; without them none count.
    """
    by_costs: dict[tuple[bool, tuple[tuple[int, int], ...]], list[tuple[int, NodeGroup]]] = {}
    for group in pool:
        if shift is None:
            costs = tuple([(offer.workers, 0) for offer in group.offers])
        else:
            costs = tuple([(offer.workers, offer.damage << shift) for offer in group.offers])
        by_costs.setdefault((group.kept, costs), []).extend(zip(group.nodes, repeat(group), strict=False))
    cost_groups = []
    # Nodes of several groups may do the same damage; of equal ones the first in fabric order are taken.
    for (kept, costs), nodes in by_costs.items():
        nodes.sort(key=itemgetter(0))
        cost_groups.append(
            _CostGroup(tuple(nodes), dict(costs), _extra(costs, min(slack, len(nodes)), slack), kept)
        )
    return cost_groups


def _extra(costs: Sequence[tuple[int, int]], nodes: int, slack: int) -> list[list[int | None]]:
    """Return the ``extra`` of a cost group of up to *nodes*, from the workers and damage of its *costs*.

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
    count, workers, extra = goal.count, goal.workers, group.extra
    extended: _States = {}
    # Of a group at least as wide as those after it, fewer nodes never make room for more workers.
    is_widest = len(reach) < 2 or most >= reach[1] - reach[0]
    for (taken, placed), (done, pointer) in states.items():
        for more in range(min(size, count - taken), size - 1 if group.kept else -1, -1):
            left, after = count - taken - more, placed + more * most
            # Too few nodes remain after this group, or they cannot take the workers that are missing. With
            # fewer nodes of this group even more are missing, unless those after it are wider.
            if left >= len(reach):
                break
            spare = after + reach[left] - reach[0] - workers
            if spare < 0:
                if is_widest:
                    break
                continue
            row, base = extra[min(more, last)], done + more * full
            for less in range(max(after + left - workers, 0), min(spare, len(row) - 1) + 1):
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
    """Return the workers of *more* nodes of *group*, *less* than the most in all, for the least damage."""
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


# The best choice of nodes for a gang among groups of equal nodes: exact where that is short, else greedy.
#
# The goal names the fewest nodes that hold the gang, so that the *slack*, the places left unused on them, is
# smaller than one node. Bandwidth is the lowest of the nodes: the highest limit is looked for that still
# leaves a choice. Damage is a sum: without slack all but the narrowest of the chosen nodes are forced, and of
# those the least damaged are taken; with slack, ``slack`` decides which nodes leave which places unused.
#
# Three nodes take two workers each, at 45, 45 and 8 GB/s; three workers need two nodes and leave one place
# unused. The rates that occur are 8 and 45. At 45 or more two nodes remain, which have four places: enough,
# so the limit is 45, and only their damage is left to compare.
#
# Where GPUs left over go before bandwidth, their number limits the choice as well: a limit on bandwidth
# leaves a choice only if the one of least damage strands no more.


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


def search(
    groups: Sequence[NodeGroup],
    goal: Goal,
    effort: Effort,
    is_beaten: Callable[[tuple[int, ...]], bool] | None = None,
) -> tuple[Chosen, bool]:
    """Return the best choice for *goal*, empty if there is none, and whether no other can be better.

    The highest busbw and the least damage in the order of its objective. NICs bound a gang of several nodes
    only. Where *effort* does not suffice the choice is ``greedy``. It is empty as well where choices that
    touch so many domains are *is_beaten* by another one.
    """
    pool = sorted(groups, key=_width)
    if goal.closer and DOMAINS_FIRST and goal.objective is Objective.BANDWIDTH:
        return _search_in_few(pool, goal, effort, is_beaten)
    # What goes before bandwidth bounds it: the GPUs left over, and the domains touched.
    # A limit on the rates only takes choices away, so that none has less of these than the best without one.
    least: Chosen | None = None
    most: Score | None = None
    if goal.objective is not Objective.BANDWIDTH:
        least = _cheapest(pool, goal, effort)
        if least is None:
            return greedy(groups, goal), False
        most = _before_rates(least, goal)
    raised = _with_highest_rates(pool, goal, effort, most)
    if least is not None and raised is pool:
        return least, True
    chosen = None if raised is None else _cheapest(raised, goal, effort)
    return (greedy(groups, goal), False) if chosen is None else (chosen, True)


def _search_in_few(
    pool: list[NodeGroup],
    goal: Goal,
    effort: Effort,
    is_beaten: Callable[[tuple[int, ...]], bool] | None,
) -> tuple[Chosen, bool]:
    """Return what ``search`` does where the fewest domains of closer levels go before bandwidth."""
    fewest = _fewest_touched(pool, goal, effort)
    if fewest is None:
        return greedy(pool, goal), False
    if not fewest.proven:
        return _among(fewest.packed, goal), False
    if not fewest.domains or (is_beaten and is_beaten(fewest.domains)):
        return [], True
    raised = _with_highest_rates(pool, goal, effort, fewest.domains)
    if raised is None:
        return _among(fewest.packed or _packed(pool, goal), goal), False
    chosen, proven = _closest(raised, goal, effort, fewest.domains, fewest.packed if raised is pool else ())
    return (chosen, proven) if chosen or proven else (greedy(raised, goal) or greedy(pool, goal), False)


def _with_highest_rates(
    pool: list[NodeGroup], goal: Goal, effort: Effort, most: Score | None
) -> list[NodeGroup] | None:
    """Return *pool* with only the offers of the highest bandwidth that leaves a choice within *most*.

    None where *effort* does not suffice.
    """
    raised: list[NodeGroup] | None = pool
    for measure in (_BUSBW, _INSIDE) if goal.count > 1 else (_INSIDE,):
        raised = raised and _raised(raised, goal, measure, effort, most)
    return raised


def greedy(groups: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return a choice for *goal*: the widest nodes, of equally wide ones the best, all but the last full.

    Empty where the rates were limited, and what is left does not add up to the workers. Where domains of
    closer levels count, the choice is among the nodes of the widest of these.
    """
    if goal.closer:
        return _among(_packed(groups, goal), goal)
    full = [(group.offers[0], position, group) for group in groups for position in group.nodes]
    full.sort(key=lambda entry: (not entry[2].kept, *_full_rank(entry[0]), entry[1]))
    taken = full[: goal.count]
    surplus = sum(offer.workers for offer, _, _ in taken) - goal.workers
    # On the fewest nodes one of them can have all that is left over; on more nodes, or with kept ones, it
    # takes several.
    if any(group.kept for group in groups) or not any(surplus < offer.workers for offer, _, _ in taken):
        return _emptied_from_behind(taken, surplus)
    # The surplus is taken off the node that is fastest with the rest, where it can be.
    fewer = [
        next((each for each in group.offers if each.workers == offer.workers - surplus), None)
        for offer, _, group in taken
    ]
    rates = [(each.busbw, each.inside) if each else _LOWEST for each in fewer]
    reduced = max(range(goal.count), key=rates.__getitem__)
    # On more nodes than the fewest the surplus may be more than any one node can spare.
    if (instead := fewer[reduced]) is None:
        return _emptied_from_behind(taken, surplus)
    return [
        (position, instead if index == reduced else offer) for index, (offer, position, _) in enumerate(taken)
    ]


def _among(packed: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return a choice among nodes that are *packed* into few domains already."""
    plain = replace(goal, closer=())
    return search(packed, plain, Effort(_LITTLE))[0] or greedy(packed, plain)


def _emptied_from_behind(taken: Sequence[tuple[Offer, int, NodeGroup]], surplus: int) -> Chosen:
    """Return *taken* with *surplus* workers fewer, off the last nodes; empty where these cannot give them."""
    chosen: Chosen = []
    for full, position, group in reversed(taken):
        # Where the rate was limited, a group may lack numbers of workers between its most and its least.
        offer = next(each for each in reversed(group.offers) if each.workers >= full.workers - surplus)
        surplus -= full.workers - offer.workers
        chosen.append((position, offer))
    return [] if surplus else chosen


_LOWEST = (-inf, -inf)
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")
_DAMAGE: Callable[[Offer], int] = attrgetter("damage")
_START: Callable[[Domain], int] = attrgetter("start")


_Rated = tuple[NodeGroup, tuple[float, ...], float, float]
"""A group, the rate of each of its offers, and the lowest and the highest of these."""


def _full_rank(offer: Offer) -> tuple[int, float, float, int]:
    return -offer.workers, -offer.busbw, -offer.inside, offer.damage


def _width(group: NodeGroup) -> tuple[int, int]:
    return -group.offers[0].workers, group.nodes[0]


def _widest(pool: Sequence[NodeGroup], count: int) -> list[tuple[NodeGroup, int]]:
    """Return the *count* widest nodes of *pool*, sorted by width, by group; kept nodes are among them."""
    widest: list[tuple[NodeGroup, int]] = []
    kept = sum([len(group.nodes) for group in pool if group.kept])
    left = count - kept
    for group in pool:
        taken = len(group.nodes) if group.kept else min(len(group.nodes), left)
        if not group.kept:
            left -= taken
        if taken:
            widest.append((group, taken))
        elif not kept:
            break
    return widest


def _spare(widest: Sequence[tuple[NodeGroup, int]], goal: Goal) -> int:
    """Return how many more workers *widest* take than the goal needs; -1 if too few or too narrow."""
    if sum([taken for _, taken in widest]) != goal.count:
        return -1
    return max(sum([group.offers[0].workers * taken for group, taken in widest]) - goal.workers, -1)


def _raised(
    pool: list[NodeGroup],
    goal: Goal,
    measure: Callable[[Offer], float],
    effort: Effort,
    most: Score | None = None,
) -> list[NodeGroup] | None:
    """Return *pool* with only the offers that reach the highest possible minimum of *measure*, still sorted.

    *most* bounds what goes before the rates; None where nothing does.
    """
    measured = [tuple(map(measure, group.offers)) for group in pool]
    rated = [(group, each, min(each), max(each)) for group, each in zip(pool, measured, strict=True)]
    rates = sorted(set(chain.from_iterable(measured)))
    # At the lowest rate every offer remains, and the pool has a choice: the bisection starts there.
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
    for group, rates, lowest, highest in rated:
        if lowest >= least:
            limited.append(group)
        elif highest >= least:
            offers = [offer for offer, rate in zip(group.offers, rates, strict=True) if rate >= least]
            limited.append(NodeGroup(group.nodes, tuple(offers), group.kept))
            # Without its widest offer a group may belong further back.
            is_sorted = False
        elif group.kept:
            return []
    return limited if is_sorted else sorted(limited, key=_width)


def _is_possible(pool: Sequence[NodeGroup], goal: Goal, effort: Effort, most: Score | None) -> bool | None:
    """Whether *pool* has a choice for *goal* within *most*; None if *effort* is too little."""
    if most is not None and goal.objective is Objective.BANDWIDTH:
        least = _fewest_touched(pool, goal, effort, most)
        if least is None or (not least.proven and least.domains > most):
            return None
        return bool(least.domains) and least.domains <= most
    if most is not None:
        chosen = _cheapest(pool, goal, effort)
        return None if chosen is None else bool(chosen) and _before_rates(chosen, goal) <= most
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
    """Return the choice of least damage, empty if there is none, None where *effort* does not suffice."""
    if goal.closer:
        chosen, proven = _closest(pool, goal, effort)
        return chosen if proven else None
    widest = _widest(pool, goal.count)
    slack = _spare(widest, goal)
    if slack < 0:
        return []
    # Nodes that are kept need not be among the widest.
    if slack == 0 and not any(group.kept for group in pool):
        return _least_damaged(pool, goal)
    return _spread(pool, goal, slack, effort)


def _before_rates(chosen: Chosen, goal: Goal) -> Score:
    """Return what of the score of *chosen* goes before its rates; nothing to compare where it is empty."""
    domains = goal.domains_of([position for position, _ in chosen])
    if goal.objective is Objective.BANDWIDTH:
        return domains
    return (*domains, sum(offer.stranded for _, offer in chosen))


def _least_damaged(pool: Sequence[NodeGroup], goal: Goal) -> Chosen:
    """Return the choice of least damage where every chosen node is full."""
    # Every place on the widest nodes is needed, so each node wider than the narrowest of them is taken.
    narrowest = _widest(pool, goal.count)[-1][0].most
    forced = chain.from_iterable(map(_all_full, (group for group in pool if group.most > narrowest)))
    free = sorted(
        (group for group in pool if group.most == narrowest), key=lambda group: group.offers[0].damage
    )
    return list(islice(chain(forced, chain.from_iterable(map(_all_full, free))), goal.count))


def _all_full(group: NodeGroup) -> Iterable[tuple[int, Offer]]:
    return zip(group.nodes, repeat(group.offers[0]), strict=False)


def _spread(pool: Sequence[NodeGroup], goal: Goal, slack: int, effort: Effort) -> Chosen | None:
    """Return the choice of least damage, empty if there is none, None where *effort* does not suffice."""
    # Which of the nodes that are kept are taken is no question, so that they add no states.
    free = goal.count - sum(len(group.nodes) for group in pool if group.kept)
    if not effort.spend(len(pool) * (slack + 1) * max(min(free, slack + 1), 1) ** 2):
        return None
    return spread(pool, goal, slack)


# Which domains of the closer levels are touched: the fewest, the coarsest level first.
#
# Dynamic programming as in ``spread``, domain by domain. To enter a domain costs what its level counts, and
# its nodes then cost their damage: a domain of a coarse level is entered before those in it. The costs are
# added up as one integer, in which domains come before damage, and damage before the room of the domains
# entered, so that of equally good choices the tightest domains are taken.
#
# Racks r1, r2 and r3 of one block have 4, 4 and 1 nodes free, and a gang needs five. No rack holds five, so
# two are the fewest. After r1 the states are: no node at cost 0, one to four nodes in one rack. After r2 five
# nodes are reached over two racks with room for 8; after r3 over r1 and r3, with room for 5: these are taken,
# and r2 stays whole. What needs a third rack is dropped as soon as that shows: with three nodes of r1 two are
# missing, more than r3 has. Mostly this is not needed: the widest racks are the fewest, and as good as any.

_DOMAIN_BITS = 24
_DAMAGE_BITS = 160
"""More than any damage of a gang has, preferences missed included."""
_ROOM_BITS = 40
_MOST_CHOICES = 64
"""Choices of domains of one level that are compared by how many domains of the next they have."""
_SHARE = 8
"""The part of the effort that is left for other domains where the search in one of them would not end."""
_STEPS_PER_OPTION = 3
"""An option of a state takes as long as so many steps of the search elsewhere."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entered:
    """A domain of a closer level: what it costs to enter it, and the domains, or the nodes, that it has.

    ``depth`` is 0 for the coarsest level, ``size`` the number of nodes in the pool, ``kept`` whether one of
    them is taken in any case. ``after`` is by depth the number of the next domain in fabric order.
    """

    depth: int
    cost: int
    size: int
    kept: bool
    inner: Sequence["_Entered"]
    groups: Sequence[NodeGroup]
    after: tuple[int, ...]


class _OutOfEffort(Exception):
    """The search took more steps than it may."""


def _closest(
    pool: Sequence[NodeGroup],
    goal: Goal,
    effort: Effort,
    fewest: tuple[int, ...] = (),
    packed: Sequence[NodeGroup] = (),
) -> tuple[Chosen, bool]:
    """Return the choice that touches the fewest domains, and of those the one of least damage.

    Empty if none is known; the second value says whether there is no better one. *fewest* is a bound on how
    few domains are touched, and *packed* are nodes of *pool* in so few, if they are known.
    """
    slack = _spare(_widest(pool, goal.count), goal)
    if slack < 0:
        return [], True
    plain = replace(goal, closer=())
    least = _cheapest(pool, plain, effort) if not any(group.kept for group in pool) else None
    if least == []:
        return [], True
    known: Chosen = []
    # Nodes that are kept, or may not take any number of workers, can make more domains necessary.
    if all(group.is_whole and not group.kept for group in pool):
        # Mostly the widest domains are the fewest, and their nodes are as good as any.
        packed = packed or _packed(pool, goal)
        # Where every node is packed, that is the same search once more.
        is_all = sum(len(group.nodes) for group in packed) == sum(len(group.nodes) for group in pool)
        known = (least if is_all else _cheapest(packed, plain, effort)) or []
        domains = goal.domains_of([position for position, _ in known])
        is_cheapest = bool(known and least) and _damage(known) == _damage(least or [])
        if is_cheapest and (domains == fewest or domains <= _floor(pool, goal, slack, _held(pool, goal))):
            return known, True
        if known and not _is_short(pool, goal, domains, slack, effort):
            return known, False
    try:
        return _Nested(pool, goal, slack, effort).best(known), True
    except _OutOfEffort:
        effort.steps = 0
        return known, False


@dataclass(frozen=True, slots=True)
class _Fewest:
    """How few domains of each closer level are touched, the coarsest first; none if there is no choice.

    ``packed`` are nodes in so few, empty where they are not known. ``proven``: no choice touches fewer.
    """

    domains: tuple[int, ...] = ()
    packed: Sequence[NodeGroup] = ()
    proven: bool = True


def _fewest_touched(
    pool: Sequence[NodeGroup], goal: Goal, effort: Effort, enough: Score | None = None
) -> _Fewest | None:
    """Return how few domains a choice from *pool* touches; any will do that touches no more than is *enough*.

    None where *effort* does not suffice to find any.
    """
    slack = _spare(_widest(pool, goal.count), goal)
    if slack < 0:
        return _Fewest()
    effort.steps = max(effort.steps - _STEPS_PER_OPTION * sum([len(group.nodes) for group in pool]), 0)
    if _is_loose(pool, goal):
        if _is_even(pool):
            return _fewest_even(pool, goal, effort, enough)
        return _fewest_mixed(pool, goal, slack, effort, enough)
    if not any(group.kept for group in pool):
        chosen = _cheapest(pool, replace(goal, closer=()), effort)
        if not chosen:
            return None if chosen is None else _Fewest()
    found = _fewer(pool, goal, slack, effort, _Fewest())
    return found if found.proven else None


def _fewest_mixed(
    pool: Sequence[NodeGroup], goal: Goal, slack: int, effort: Effort, enough: Score | None
) -> _Fewest:
    """Return what ``_fewest_touched`` does where the nodes of *pool* differ in how many workers they take."""
    held = _held(pool, goal)
    least = _floor(pool, goal, slack, held)
    if enough and least > enough:
        return _Fewest(least)
    best: _Fewest | None = None
    # Where some places stay unused, the domains with most nodes need not be those with the widest ones.
    for narrowest in (0, _narrowest(pool, goal)) if slack else (0,):
        packed = _packed(pool, goal, narrowest, held)
        domains = goal.domains_of([position for group in packed for position in group.nodes])
        if best is None or domains < best.domains:
            best = _Fewest(domains, packed)
        if domains == least or (enough and domains <= enough):
            break
    best = best or _Fewest()
    if best.domains == least or (enough and best.domains <= enough):
        return best
    if not _is_short(pool, goal, best.domains, slack, effort):
        return replace(best, proven=False)
    return _fewer(pool, goal, slack, effort, best)


def _fewer(pool: Sequence[NodeGroup], goal: Goal, slack: int, effort: Effort, known: _Fewest) -> _Fewest:
    """Return how few domains are touched by the search among all, *known* if no fewer."""
    try:
        fewer = _Nested(pool, goal, slack, effort, damages=False).fewest(known.domains)
    except _OutOfEffort:
        effort.steps = 0
        return replace(known, proven=False)
    return _Fewest(fewer) if fewer else known


def _narrowest(pool: Sequence[NodeGroup], goal: Goal) -> int:
    """Return the width of the narrowest of the widest nodes."""
    return min(group.most for group, _ in _widest(pool, goal.count))


class _Sized(NamedTuple):
    """A domain: its number, how many nodes it has, and the domains of the next closer level in it."""

    number: int
    nodes: int
    inner: Sequence["_Sized"]


def _tree(pool: Sequence[NodeGroup], closer: Sequence[CloserLevel]) -> Sequence[_Sized]:
    """Return the domains of the coarsest of the *closer* levels that have nodes of *pool*."""
    finest = Counter(map(closer[-1].numbers.__getitem__, chain.from_iterable(group.nodes for group in pool)))
    parts = [_Sized(number, nodes, ()) for number, nodes in finest.items()]
    for finer, level in zip(closer[:0:-1], closer[-2::-1], strict=True):
        around: defaultdict[int, list[_Sized]] = defaultdict(list)
        numbers, domains = level.numbers, finer.domains
        for part in parts:
            around[numbers[domains[part.number].start]].append(part)
        parts = [
            _Sized(number, sum([part.nodes for part in inner]), inner) for number, inner in around.items()
        ]
    return parts


def _widest_first(part: _Sized) -> tuple[int, int]:
    return -part.nodes, part.number


def _fewest_even(pool: Sequence[NodeGroup], goal: Goal, effort: Effort, enough: Score | None) -> _Fewest:
    """Return what ``_fewest_touched`` does where all nodes of *pool* take as many workers."""
    tree = parts = every = _tree(pool, goal.closer)
    most, least = list[int](), list[int]()
    chosen: Sequence[_Sized] = ()
    for _ in goal.closer:
        least.append(how_many([part.nodes for part in every], goal.count))
        every = [inner for part in every for inner in part.inner]
        chosen = _widest_domains(parts, goal.count)
        most.append(len(chosen))
        parts = [inner for part in chosen for inner in part.inner]
    known, floor = tuple(most), tuple(least)
    packed = _within_domains(pool, goal.closer[-1], {part.number for part in chosen})
    if known == floor or (enough and known <= enough):
        return _Fewest(known, packed)
    if enough and floor > enough:
        return _Fewest(floor)
    fewest = _fewest_inside(tree, goal.count, effort)
    if fewest is None:
        return _Fewest(known, packed, proven=False)
    domains, chosen = fewest
    if domains < known:
        # Among few nodes the search finds the tightest domains, among many it takes too long.
        few = {part.number for part in chosen} if goal.count > _MOST_SORTED else set[int]()
        packed = _within_domains(pool, goal.closer[-1], few)
    return _Fewest(domains, packed)


def _widest_domains(parts: Sequence[_Sized], count: int) -> Sequence[_Sized]:
    """Return the widest of *parts* that have *count* nodes, the last one the tightest that holds the rest."""
    ordered = sorted(parts, key=_widest_first)
    number = how_many([part.nodes for part in parts], count)
    left = count - sum([part.nodes for part in ordered[: number - 1]])
    last = min((part.nodes, part.number, part) for part in ordered[number - 1 :] if part.nodes >= left)[2]
    return [*ordered[: number - 1], last]


def _within_domains(
    pool: Sequence[NodeGroup], level: CloserLevel, chosen: Collection[int]
) -> Sequence[NodeGroup]:
    """Return the nodes of *pool* that are in the domains of *level* that are *chosen*."""
    numbers = level.numbers
    return [
        NodeGroup(own, group.offers, group.kept)
        for group in pool
        if (own := tuple([at for at in group.nodes if numbers[at] in chosen]))
    ]


def _fewest_inside(
    parts: Sequence[_Sized], count: int, effort: Effort
) -> tuple[tuple[int, ...], Sequence[_Sized]] | None:
    """Return how few domains of each level have *count* nodes, and which of the finest level these are.

    *parts* are those of the coarsest level. None where *effort* does not suffice.
    """
    number = how_many([part.nodes for part in parts], count)
    if not parts[0].inner:
        return (number,), _widest_domains(parts, count)
    if comb(len(parts), number) > _MOST_CHOICES:
        return None
    # No choice of as many domains has fewer inside than the largest of all would be.
    least = (how_many([inner.nodes for part in parts for inner in part.inner], count),)
    best: tuple[tuple[int, ...], Sequence[_Sized]] = (), ()
    for among in combinations(sorted(parts, key=_widest_first), number):
        if best[0] == least:
            break
        if sum([part.nodes for part in among]) >= count:
            inner = [each for part in among for each in part.inner]
            enough = effort.spend(_STEPS_PER_OPTION * len(inner))
            fewest = _fewest_inside(inner, count, effort) if enough else None
            if fewest is None:
                return None
            best = fewest if not best[0] or fewest[0] < best[0] else best
    return (number, *best[0]), best[1]


def _is_loose(pool: Sequence[NodeGroup], goal: Goal) -> bool:
    """Whether any nodes of *pool* that have room for the gang can be filled with exactly its workers."""
    if not all(group.is_whole and not group.kept for group in pool):
        return False
    left, fewest = goal.count, 0
    for least, nodes in sorted(
        ((group.offers[-1].workers, len(group.nodes)) for group in pool), reverse=True
    ):
        taken = min(left, nodes)
        left, fewest = left - taken, fewest + taken * least
    return fewest <= goal.workers


def _is_short(
    pool: Sequence[NodeGroup], goal: Goal, known: Sequence[int], slack: int, effort: Effort
) -> bool:
    """Whether a search for choices that touch no more domains than *known* probably ends within *effort*.

    Where it does not, that takes most of the effort.
    """
    if _is_uniform(pool):
        return True
    numbers = goal.closer[-1].numbers
    sizes = Counter(numbers[position] for group in pool for position in group.nodes)
    ordered = [sizes[number] for number in sorted(sizes)]
    # How many numbers of nodes taken are left to look at after a quarter, a half and three of the domains.
    alive = [
        _ways(ordered[: len(ordered) * part // 4], ordered[len(ordered) * part // 4 :], goal.count, known[-1])
        for part in (1, 2, 3)
    ]
    options = sum(alive) / len(alive) * sizes.total() * (slack + 1)
    if _STEPS_PER_OPTION * options <= effort.steps:
        return True
    # There may be other domains in which it is shorter, if not many.
    effort.steps = effort.steps // _SHARE if effort.steps > _LITTLE else 0
    return False


def _ways(before: Sequence[int], after: Sequence[int], count: int, most: int) -> int:
    """Return in how many ways *count* nodes are parted between domains *before* and *after*, by their sizes.

    They come from *most* domains at the most. Of five nodes in two domains the first two here give none, or
    two to five:

    >>> _ways([4, 3], [3, 2], count=5, most=2)
    5
    """
    first, rest = (list(accumulate(sorted(sizes, reverse=True), initial=0)) for sizes in (before, after))
    ways = below = 0
    for entered, given in enumerate(first[: most + 1]):
        lowest = max(count - rest[min(most - entered, len(rest) - 1)], below)
        highest = min(given, count)
        if lowest <= highest:
            ways, below = ways + highest - lowest + 1, highest + 1
    return ways


def _damage(chosen: Chosen) -> int:
    return sum(offer.damage for _, offer in chosen)


def _is_uniform(pool: Sequence[NodeGroup]) -> bool:
    """Whether all nodes of *pool* may take as many workers, at the same damage."""
    kinds = {tuple((offer.workers, offer.damage) for offer in group.offers) for group in pool}
    return len(kinds) == 1 and not any(group.kept for group in pool)


Widths = Mapping[int, Mapping[int, int]]
"""By the number of a domain, how many nodes of each width it has, the widest first."""


def _widths(pool: Sequence[NodeGroup], level: CloserLevel) -> Widths:
    nodes: defaultdict[int, list[int]] = defaultdict(list)
    for group in pool:
        nodes[group.most] += group.nodes
    held: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for width in sorted(nodes, reverse=True):
        for number, times in Counter(map(level.numbers.__getitem__, nodes[width])).items():
            held[number][width] = times
    return held


def _held(pool: Sequence[NodeGroup], goal: Goal) -> Sequence[Widths]:
    """Return the widths of the nodes of *pool* in the domains of each closer level."""
    return [_widths(pool, level) for level in goal.closer]


def _floor(pool: Sequence[NodeGroup], goal: Goal, slack: int, held: Sequence[Widths]) -> tuple[int, ...]:
    """Return how many domains of each closer level, with nodes of the widths *held*, hold the gang at least.

    By their nodes, by their room, and by the nodes of each width among the widest: of these no more can be
    left out than there is *slack*.
    """
    times = Counter[int]()
    for group, taken in _widest(pool, goal.count):
        times[group.most] += taken
    needed = list(zip(times, accumulate(times.values()), strict=True))
    least = []
    for by_domain in held:
        domains = by_domain.values()
        nodes = [sum(widths.values()) for widths in domains]
        room = [sum([width * number for width, number in widths.items()]) for widths in domains]
        most = max(how_many(nodes, goal.count), how_many(room, goal.workers))
        for least_width, number in needed:
            wide = [sum([n for width, n in widths.items() if width >= least_width]) for widths in domains]
            most = max(most, how_many(wide, number - slack))
        least.append(most)
    return tuple(least)


def how_many(sizes: Iterable[int], total: int) -> int:
    """Return how many of *sizes*, the largest first, add up to *total*; one more than there are if none do.

    >>> how_many([1, 4, 2], 5), how_many([1, 4, 2], 8)
    (2, 4)
    """
    return bisect_left(list(accumulate(sorted(sizes, reverse=True))), total) + 1


def _packed(
    pool: Sequence[NodeGroup], goal: Goal, narrowest: int = 0, held: Sequence[Widths] = ()
) -> Sequence[NodeGroup]:
    """Return *pool* in few domains: level by level the widest ones, and the tightest that holds the rest.

    The widest are those with the most nodes that take *narrowest* workers or more. *held* are the widths of
    the nodes of *pool*, if they are known.
    """
    kept = [position for group in pool if group.kept for position in group.nodes]
    left = pool
    for number, level in enumerate(goal.closer):
        widths = held[number] if held and left is pool else _widths(left, level)
        chosen = _few(widths, {level.numbers[position] for position in kept}, goal, narrowest)
        if len(chosen) < len(widths):
            left = _within_domains(left, level, chosen)
    return left


def _few(held: Widths, forced: Collection[int], goal: Goal, narrowest: int) -> Collection[int]:
    """Return domains with *forced* among them that hold the gang, of those whose nodes' widths are *held*."""
    totals = {
        number: sum([times for width, times in widths.items() if width >= narrowest])
        for number, widths in held.items()
    }
    among: dict[int, int] = {}

    def holds(one: Mapping[int, int]) -> bool:
        nodes, workers = goal.count, goal.workers
        for width in sorted({*among, *one}, reverse=True):
            taken = min(among.get(width, 0) + one.get(width, 0), nodes)
            nodes, workers = nodes - taken, workers - taken * width
        return nodes <= 0 and workers <= 0

    def take(number: int) -> None:
        for width, times in held[number].items():
            among[width] = among.get(width, 0) + times

    for number in forced:
        take(number)
    if holds({}):
        return forced
    others = sorted(held.keys() - forced, key=lambda number: (-totals[number], number))
    most = 0
    while most < len(others) - 1 and not holds(held[others[most]]):
        take(others[most])
        most += 1
    # One with fewer nodes than are missing need not be looked at; of the others the nodes may be too narrow.
    missing = goal.count - sum(among.values())
    rest = sorted(others[most:], key=lambda number: (totals[number], number))
    enough = (number for number in rest if sum(held[number].values()) >= missing)
    last = next((number for number in enough if holds(held[number])), others[most])
    return {*forced, *others[:most], last}


class _Nested:
    """The nodes of a pool by the domains of the closer levels, and the search among these.

    Without *damages* only domains count.
    """

    def __init__(
        self, pool: Sequence[NodeGroup], goal: Goal, slack: int, effort: Effort, *, damages: bool = True
    ) -> None:
        self._goal = goal
        self._slack = slack
        self._effort = effort
        self._damages = damages
        depths = len(goal.closer)
        self._room_bits = _ROOM_BITS * depths
        self._domains_from = self._room_bits + _DAMAGE_BITS
        self._units = [1 << (self._domains_from + _DOMAIN_BITS * (depths - 1 - at)) for at in range(depths)]
        self._pool = pool
        # Nodes that are all alike need no states but how many of them are covered.
        self._is_uniform = _is_uniform(pool) if damages else _is_even(pool)
        # Where every node is filled, those of a domain are taken in the order of their damage.
        self._is_full = not slack and _is_even(pool)
        self._cost_groups: list[_CostGroup] = []
        self._leaves: list[_Entered] = []
        # By depth the sizes of the domains in fabric order, and how many nodes the one that is entered still
        # has after those that were visited.
        self._sizes: list[list[int]] = [[] for _ in range(depths)]
        self._rest = [0] * depths
        self._largest: dict[tuple[int, int], list[int]] = {}
        self._parts = self._entered(0, pool)
        widths = chain.from_iterable([group.most] * len(group.nodes) for group in pool)
        self._reach = list(accumulate(islice(widths, goal.count), initial=0))
        least = sorted((min(map(_DAMAGE, group.offers)), len(group.nodes)) for group in pool)
        each = chain.from_iterable([damage] * nodes for damage, nodes in least)
        self._least_damage = list(accumulate(islice(each, goal.count), initial=0))

    def _entered(self, depth: int, pool: Sequence[NodeGroup]) -> list[_Entered]:
        """Return the domains at *depth* of the nodes of *pool*, in fabric order."""
        level, by_number = self._goal.closer[depth], dict[int, list[NodeGroup]]()
        for group in pool:
            nodes: dict[int, list[int]] = {}
            for position in group.nodes:
                nodes.setdefault(level.numbers[position], []).append(position)
            for number, positions in nodes.items():
                by_number.setdefault(number, []).append(NodeGroup(tuple(positions), group.offers, group.kept))
        finest = depth == len(self._goal.closer) - 1
        shift = _ROOM_BITS * (len(self._goal.closer) - 1 - depth)
        parts = []
        for number, groups in sorted(by_number.items(), key=lambda entry: entry[1][0].nodes[0]):
            size = sum(len(group.nodes) for group in groups)
            self._sizes[depth].append(size)
            inner = () if finest else self._entered(depth + 1, groups)
            room = level.room(number) << shift if self._damages else 0
            kept = any(group.kept for group in groups)
            after = tuple(map(len, self._sizes))
            parts.append(_Entered(depth, self._units[depth] + room, size, kept, inner, groups, after))
        return parts

    def best(self, known: Chosen) -> Chosen:
        """Return the best choice, empty if there is none, where *known* is one, if any.

        Raises ``_OutOfEffort``.
        """
        found = self._found(self._cost_of(known) if known else None)
        if not found:
            return []
        if self._is_uniform:
            return self._filled(found[1])
        return self._taken(found[1]) if self._is_full else _unrolled(self._cost_groups, found[1])

    def fewest(self, known: Sequence[int]) -> tuple[int, ...]:
        """Return how few domains of each level a choice touches; empty if none touches fewer than *known*.

        Raises ``_OutOfEffort``.
        """
        cost = sum(unit * number for unit, number in zip(self._units, known, strict=False))
        found = self._found(cost - 1 if known else None)
        if not found:
            return ()
        mask = (1 << _DOMAIN_BITS) - 1
        return tuple(found[0] // unit & mask for unit in self._units)

    def _cost_of(self, chosen: Chosen) -> int:
        """Return what *chosen* costs here."""
        cost = 0 if self._is_uniform else _damage(chosen) << self._room_bits
        for depth, level in enumerate(self._goal.closer):
            entered = {level.numbers[position] for position, _ in chosen}
            room = sum(map(level.room, entered)) << _ROOM_BITS * (len(self._goal.closer) - 1 - depth)
            cost += len(entered) * self._units[depth] + room
        return cost

    def _found(self, most: int | None) -> tuple[int, _BackPointer] | None:
        """Return the cost of the best choice, *most* at the most, and how it was reached."""
        # No choice enters as many domains as there are bits for.
        self._most = 1 << (self._domains_from + _DOMAIN_BITS * len(self._units)) if most is None else most
        states: _States = {(0, 0): (0, None)}
        for part in self._parts:
            states = self._visited(states, part)
        return states.get((self._goal.count, 0 if self._is_uniform else self._goal.workers))

    def _visited(self, states: _States, part: _Entered) -> _States:
        """Return *states* after those that enter *part* took nodes of it, of those that may still be best."""
        inside: _States = {
            state: (cost + part.cost, pointer)
            for state, (cost, pointer) in states.items()
            if state[0] < self._goal.count and cost + part.cost <= self._most
        }
        if not self._effort.spend(len(states)):
            raise _OutOfEffort
        if inside:
            if part.inner:
                self._rest[part.depth] = part.size
                for inner in part.inner:
                    self._rest[part.depth] -= inner.size
                    inside = self._visited(inside, inner)
            else:
                inside = self._with_nodes(inside, part)
        # Nodes that are kept leave no choice but to enter.
        merged = {} if part.kept else dict(states)
        for state, entry in inside.items():
            before = merged.get(state)
            if before is None or entry[0] < before[0]:
                merged[state] = entry
        return self._promising(merged, part.after)

    def _with_nodes(self, states: _States, leaf: _Entered) -> _States:
        """Return *states* after nodes of *leaf*, which was entered, are taken as well."""
        if self._is_uniform:
            return self._covered(states, leaf)
        if self._is_full:
            return self._filling(states, leaf)
        shift = self._room_bits if self._damages else None
        for group in _cost_groups(leaf.groups, self._slack, shift):
            options = len(states) * min(len(group.nodes), self._goal.count) * (self._slack + 1)
            if not self._effort.spend(_STEPS_PER_OPTION * options):
                raise _OutOfEffort
            self._cost_groups.append(group)
            states = _extended(states, len(self._cost_groups) - 1, group, self._reach, self._goal)
        return states

    def _promising(self, states: _States, after: Sequence[int]) -> _States:
        """Return those of *states* whose missing nodes the domains from *after* on can still give."""
        count, limits = self._goal.count, dict[int, int]()
        largest = [self._largest_of(depth, number) for depth, number in enumerate(after)]
        promising: _States = {}
        for state, entry in states.items():
            missing = count - state[0]
            limit = limits.get(missing)
            if limit is None:
                limit = limits[missing] = self._limit(missing, largest)
            if entry[0] <= limit:
                promising[state] = entry
        return promising

    def _limit(self, missing: int, largest: Sequence[Sequence[int]]) -> int:
        """Return what may be spent so far where so many nodes are *missing*, -1 where they cannot come."""
        if not missing:
            return self._most
        needed = 0
        for unit, rest, sums in zip(self._units, self._rest, largest, strict=True):
            if missing > rest:
                more = bisect_left(sums, missing - rest)
                if more == len(sums):
                    return -1
                needed += unit * (more + 1)
        if self._damages and not self._is_uniform:
            needed += self._least_damage[missing] << self._room_bits
        return self._most - needed

    def _largest_of(self, depth: int, first: int) -> Sequence[int]:
        """Return how many nodes the largest domains from number *first* on have together, at least."""
        sizes = self._sizes[depth]
        # More domains than there are is a bound as well, and saves sorting them again after each one.
        first -= first % (len(sizes) // _MOST_SORTED + 1)
        if (depth, first) not in self._largest:
            self._largest[depth, first] = list(accumulate(sorted(sizes[first:], reverse=True)))
        return self._largest[depth, first]

    def _covered(self, states: _States, leaf: _Entered) -> _States:
        """Return *states* after all nodes of *leaf* are covered as well."""
        self._leaves.append(leaf)
        number, covered = len(self._leaves) - 1, _States()
        for (taken, _), (cost, pointer) in states.items():
            state = min(taken + leaf.size, self._goal.count), 0
            if state not in covered or cost < covered[state][0]:
                covered[state] = cost, (pointer, number, leaf.size, 0)
        return covered

    def _filling(self, states: _States, leaf: _Entered) -> _States:
        """Return *states* after nodes of *leaf* are filled as well, those of the least damage first."""
        number, count, width = len(self._leaves), self._goal.count, leaf.groups[0].most
        self._leaves.append(leaf)
        damages = sorted(group.offers[0].damage for group in leaf.groups for _ in group.nodes)
        costs = [total << self._room_bits for total in accumulate(damages)]
        largest = [self._largest_of(depth, first) for depth, first in enumerate(leaf.after)]
        limits = Memo[int, int](lambda missing: self._limit(missing, largest), limit=count + 1)
        filled: _States = {}
        steps = 0
        for (taken, placed), (cost, pointer) in states.items():
            for more in range(min(leaf.size, count - taken), 0, -1):
                limit = limits[count - taken - more]
                steps += 1
                if limit < cost:
                    # Even fewer nodes of this domain need even more of the others.
                    break
                total = cost + costs[more - 1]
                if total <= limit:
                    state = taken + more, placed + more * width
                    before = filled.get(state)
                    if before is None or total < before[0]:
                        filled[state] = total, (pointer, number, more, 0)
        if not self._effort.spend(steps):
            raise _OutOfEffort
        return filled

    def _taken(self, pointer: _BackPointer) -> Chosen:
        """Return the choice that *pointer* leads back through: the nodes of least damage of each domain."""
        chosen: Chosen = []
        while pointer is not None:
            pointer, number, more, _ = pointer
            nodes = [(at, group.offers[0]) for group in self._leaves[number].groups for at in group.nodes]
            chosen += sorted(nodes, key=lambda entry: (entry[1].damage, entry[0]))[:more]
        return chosen

    def _filled(self, pointer: _BackPointer) -> Chosen:
        """Return the choice of least damage on the domains that *pointer* leads back through."""
        groups: list[NodeGroup] = []
        while pointer is not None:
            pointer, number, _, _ = pointer
            groups += self._leaves[number].groups
        # The first nodes in fabric order reach the last domain: without it fewer would do.
        nodes = {position for group in groups for position in group.nodes}
        taken = set(sorted(nodes)[: self._goal.count])
        pool = [
            group._replace(nodes=own)
            for group in groups
            if (own := tuple(position for position in group.nodes if position in taken))
        ]
        return spread(pool, self._goal, self._slack)


def _is_even(pool: Sequence[NodeGroup]) -> bool:
    """Whether all nodes of *pool* may take as many workers, and any number of them up to that."""
    return len({group.most for group in pool}) == 1 and all(
        group.is_whole and not group.kept for group in pool
    )


# Which nodes of a domain take how many workers of a gang: the fewest nodes, and of those the best.
#
# With the fewest nodes, the places left unused on the chosen nodes are fewer than one node's: every node
# takes nearly all it can, and the exact search (``search``) stays short. Where it would still be long, a
# greedy choice takes its place and says so.


@dataclass(frozen=True, slots=True)
class Problem:
    """A gang of ``workers`` with ``gpus`` GPUs each, and the fleet with its capacity for them.

    ``bandwidth_sensitive`` is False where only the damage to what stays free is to be compared; else
    ``objective`` says what goes first. All levels up to ``closest`` count as one. ``several``: the gang has
    workers on other nodes, too.
    """

    fleet: Fleet
    capacity: Capacity
    workers: int
    gpus: int
    bandwidth_sensitive: bool = True
    objective: Objective = Objective.BANDWIDTH
    closest: int = 0
    several: bool = False

    def goal(self, nodes: int, domain: Domain) -> Goal:
        """Return what the gang needs of so many *nodes* of *domain*, and how choices of them are compared."""
        closer = closer_levels(self.fleet, self.capacity, domain, self.closest) if nodes > 1 else ()
        return Goal(nodes, self.workers, self.objective, closer)

    def use(self, nodes: int) -> Use:
        """Return what the GPUs of a node are chosen for when the gang gets so many *nodes*."""
        if not self.bandwidth_sensitive:
            return Use.DAMAGE_ONLY
        return Use.SEVERAL_NODES if self.several or nodes > 1 else Use.ONE_NODE


def closer_tiers(fleet: Fleet, domain: Domain, closest: int) -> range:
    """Return the tiers, 1 the coarsest, within *domain* that do not count as one level."""
    return range(len(domain.path) + 1, len(fleet.tiers) + 2 - max(closest, 1))


def closer_levels(fleet: Fleet, capacity: Capacity, domain: Domain, closest: int) -> tuple[CloserLevel, ...]:
    """Return the levels within *domain* whose domains count, coarsest first; all up to *closest* are one."""
    return tuple(CloserLevel(*fleet.nested[tier], capacity) for tier in closer_tiers(fleet, domain, closest))


@dataclass(frozen=True, slots=True)
class Pick(ChosenNodes):
    """The nodes of one domain that take the gang.

    ``complete`` is False where the search ended early, so that a better choice of nodes cannot be ruled out;
    ``sets_exact`` is False where a set of GPUs that was compared may not be the best of its node.
    """

    domain: Domain
    complete: bool = True
    sets_exact: bool = True


def picked(
    domain: Domain, chosen: Chosen, goal: Goal, *, complete: bool = True, sets_exact: bool = True
) -> Pick:
    """Return *chosen*, nodes of *domain* that take a gang, in fabric order and with its score."""
    nodes, offers = in_order(chosen)
    return Pick(nodes, offers, goal.score_of(nodes, offers), domain, complete, sets_exact)


def in_order(chosen: Iterable[tuple[int, Offer]]) -> tuple[tuple[int, ...], tuple[Offer, ...]]:
    """Return the nodes *chosen*, in fabric order, and their offers."""
    nodes, offers = zip(*sorted(chosen, key=itemgetter(0)), strict=True)
    return nodes, offers


def fewest(capacity: Capacity, domain: Domain, workers: int) -> int:
    """Return the least number of nodes of *domain* that have *workers* places together; it has as many."""
    # Workers are alike, so no other nodes hold as many in the same number as the widest.
    nodes, left = 0, workers
    for width, times in capacity.widths[domain.start, domain.end]:
        if width and width * times >= left:
            return nodes + max(-(-left // width), 1)
        nodes, left = nodes + times, left - width * times
    return nodes + 1


def _widest_in(capacity: Capacity, domain: Domain, count: int) -> list[tuple[int, int]]:
    """Return the widths of the *count* widest nodes of *domain*, each with how many of them have it."""
    widest = []
    for width, times in capacity.widths[domain.start, domain.end]:
        taken = min(times, count)
        count -= taken
        widest.append((width, taken))
        if not count:
            break
    return widest


def pick(problem: Problem, domain: Domain, count: int, effort: Effort) -> Pick:
    """Return the best choice of *count* nodes, the fewest possible, in *domain*."""
    goal = problem.goal(count, domain)
    groups, sets_exact = _groups(problem, domain, count, most=domain.end if goal.closer else count)
    chosen, complete = search(groups, goal, effort)
    return picked(domain, chosen or greedy(groups, goal), goal, complete=complete, sets_exact=sets_exact)


def _unbeaten(
    problem: Problem,
    domain: Domain,
    count: int,
    effort: Effort,
    is_beaten: Callable[[tuple[int, ...]], bool],
) -> Pick | None:
    """Return what ``pick`` does, None where that touches so many domains that it *is_beaten*."""
    goal = problem.goal(count, domain)
    groups, sets_exact = _groups(problem, domain, count, most=domain.end if goal.closer else count)
    chosen, complete = search(groups, goal, effort, is_beaten)
    return picked(domain, chosen, goal, complete=complete, sets_exact=sets_exact) if chosen else None


def _groups(problem: Problem, domain: Domain, count: int, *, most: int) -> tuple[list[NodeGroup], bool]:
    """Return the nodes that can be among the fewest, equal ones in one group, with all that each may take.

    A group has *most* nodes: more than are needed, where it counts which domains these are in.

    The second value says whether all their offers are exact. With nine workers on nodes that take 8, 4, 2 and
    1 the two widest have 12 places, so 3 stay unused: a node that takes less than 4 - 3 = 1 is never chosen,
    one that takes 8 gets 8 to 5 of the workers, and one that takes 4 gets 4 to 1.
    """
    widest = _widest_in(problem.capacity, domain, count)
    slack = sum([width * nodes for width, nodes in widest]) - problem.workers
    least = max(widest[-1][0] - slack, 1)
    rows, gpus, use = problem.fleet.tables.rows, problem.gpus, problem.use(count)
    groups, sets_exact = [], True
    for width, state_id, nodes in alike(problem, domain, least, most):
        row = rows[gpus, use, state_id, width, max(width - slack, 1)]
        groups.append(NodeGroup(tuple(nodes), row.offers))
        sets_exact = sets_exact and row.exact
    return groups, sets_exact


def alike(problem: Problem, domain: Domain, least: int, count: int) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the nodes of *domain* that take *least* or more, by workers and state, up to *count* of each."""
    places, by_state = problem.capacity.places, problem.capacity.by_state
    state_ids, start, end = problem.fleet.state_ids, domain.start, domain.end
    # A large domain has few states: look for each state's nodes in it rather than at every node.
    if by_state is not None and 4 * len(by_state) < end - start:
        nodes_by_state = problem.fleet.nodes_by_state
        for state_id, most in enumerate(by_state):
            if most >= least:
                nodes = nodes_by_state[state_id]
                first = bisect_left(nodes, start)
                same = nodes[first : min(first + count, bisect_left(nodes, end, first))]
                if same:
                    yield most, state_id, same
        return
    able = compress(range(start, end), map(least.__le__, places[start:end]))
    if by_state is not None:
        by_id: dict[int, list[int]] = {}
        for position in able:
            by_id.setdefault(state_ids[position], []).append(position)
        for state_id, same in by_id.items():
            yield by_state[state_id], state_id, same[:count]
        return
    by_places: dict[tuple[int, int], list[int]] = {}
    for position in able:
        by_places.setdefault((places[position], state_ids[position]), []).append(position)
    for (most, state_id), same in by_places.items():
        yield most, state_id, same[:count]


# Upper bounds on the best choice within a domain, from its nodes' states alone, so that few domains are
# searched.
#
# A gang of w workers on c nodes is one of few *splits* of w into c parts, because with the fewest nodes
# hardly any place is left unused. For each part the best nodes of the domain are taken, even those that are
# taken for another part as well; a real choice takes every node once, so it is never better. All bounds are
# scores: no entry of a bound is above the real one.
#
# Nine workers on two nodes with eight places each split into 8 + 1, 7 + 2, 6 + 3 or 5 + 4. Say the nodes of a
# domain would suffer these damages:
#
# ====  ===  ===  ===  ===  ===  ===  ===  ===
# node   1    2    3    4    5    6    7    8
# ====  ===  ===  ===  ===  ===  ===  ===  ===
# a      9    7    6    6    3    4    2    0
# b      5    8    7    4    5    6    3    1
# ====  ===  ===  ===  ===  ===  ===  ===  ===
#
# The least damage of 8 + 1 is 0 (a) + 5 (b) = 5, of 7 + 2 it is 2 (a) + 7 (a) = 9 although a cannot take
# both, of 6 + 3 it is 4 + 6 = 10, of 5 + 4 it is 3 + 4 = 7: the bound is 5. A domain that has already given 4
# is not beaten.

# A slack of 8 has 22 partitions, and their number grows fast: a gang with more slack gets no bound.
_MOST_SLACK = 8
_MOST_SORTED = 64
_MOST_BOUNDS = 50_000
Rates = tuple[float, float]
"""Busbw with NICs counted, and inside the nodes."""

Split = tuple[tuple[int, int], ...]
"""Parts with their multiplicities: so many workers on each of so many nodes."""


class DomainBounds:
    """Bounds on the scores of a gang on *count* nodes, in each domain of a tier that competes for it.

    Nothing is computed before a bound is asked for: a single domain mostly needs none.
    """

    def __init__(
        self, problem: Problem, domains: Sequence[Domain], numbers: Sequence[int], count: int
    ) -> None:
        """Take the gang, the domains of a tier, the *numbers* of those that compete, and how many nodes."""
        self._problem = problem
        self._domains = domains
        self._numbers = numbers
        self._count = count
        self._goal = Goal(count, problem.workers, problem.objective)

    def best_first(self, room_of: Sequence[Room]) -> Iterator[tuple[Score, Room, int]]:
        """Yield the domains with a bound on their scores: the best first, then the tightest, by name."""
        # Bandwidth goes first, and the hardware bounds it. What is left over depends on what is in use: it is
        # at least that on the best nodes of the fleet.
        if self._problem.objective is Objective.BANDWIDTH:
            numbers = {self._hardware[number]: number for number in self._numbers}
            rates = {hardware: self._rates_of(number) for hardware, number in numbers.items()}
            damages = {hardware: self._parts.least_damage_with(hardware) for hardware in numbers}
            scores = Memo[tuple[frozenset[int], tuple[int, ...]], Score](
                lambda kind: self._goal.score(*rates[kind[0]], damages[kind[0]], kind[1]), limit=_MOST_BOUNDS
            )
            hardware_of, least_of = self._hardware, self._least_domains
            best_cases = [scores[hardware_of[number], least_of[number]] for number in self._numbers]
        else:
            best_cases = list(map(self.bound, self._numbers))
        alike: defaultdict[Score, list[tuple[Room, int]]] = defaultdict(list)
        for best_case, number in zip(best_cases, self._numbers, strict=True):
            alike[best_case].append((room_of[number], number))
        # Mostly no more than the best are looked at.
        for best_case in sorted(alike):
            for room, number in sorted(alike[best_case]):
                yield best_case, room, number

    def bound(self, number: int, touched: tuple[int, ...] = ()) -> Score:
        """Return a score that no choice in domain *number* is better than, nor one that *touched* so many."""
        least = touched or self._least_domains[number]
        if not self._parts.splits:
            return self._goal.score(inf, inf, 0, least)
        domain = self._domains[number]
        damage = self._least_damage[self._problem.fleet.state_ids[domain.start : domain.end]]
        return self._goal.score(*self._rates_of(number), damage, least)

    def has_closer(self, number: int) -> bool:
        """Whether domains of closer levels count in the domain *number*."""
        return bool(self._least_domains[number])

    def score_of(self, choice: ChosenNodes, number: int) -> Score:
        """Return the score of *choice* in domain *number* if it touched the fewest domains that it may."""
        return self._goal.score_with(choice.offers, self._least_domains[number])

    def is_exact(self, numbers: Iterable[int]) -> bool:
        """Whether the bounds of the domains *numbers* rest on sets of GPUs that are proven to be the best."""
        inexact = self._inexact
        if not inexact:
            return True
        domains = [self._domains[number] for number in numbers]
        state_ids = self._problem.fleet.state_ids
        return all(inexact.isdisjoint(state_ids[domain.start : domain.end]) for domain in domains)

    def _rates_of(self, number: int) -> Rates:
        return self._rates[self._hardware[number]] if self._parts.splits else (inf, inf)

    @cached_property
    def _least_domains(self) -> Memo[int, tuple[int, ...]]:
        """By the number of a domain, how many domains of each closer level hold the gang at least.

        By their room, and by their widest nodes: of those that hold the gang no more than the slack are
        narrower than the narrowest of the widest.
        """
        fleet, capacity, domains = self._problem.fleet, self._problem.capacity, self._domains
        workers, count, closest = self._problem.workers, self._count, self._problem.closest
        starts = Memo[int, Sequence[int]](
            lambda tier: list(map(_START, fleet.nested[tier][1])), limit=_MOST_BOUNDS
        )
        room = Memo[int, Sequence[int]](
            lambda tier: capacity_by_domain(capacity, fleet.nested[tier][1]), limit=_MOST_BOUNDS
        )

        nodes = Memo[tuple[int, int], Sequence[int]](
            lambda key: capacity.wide_in(fleet.nested[key[0]][1], key[1]), limit=_MOST_BOUNDS
        )

        # All domains are of one tier.
        tiers = closer_tiers(fleet, domains[0], closest) if count > 1 else ()

        def least(number: int) -> tuple[int, ...]:
            domain = domains[number]
            widths = _widest_in(capacity, domain, count)
            slack = sum([width * nodes for width, nodes in widths]) - workers
            (widest, nodes_of_widest), narrowest = widths[0], widths[-1][0]
            needed = {(narrowest, count - slack), (widest, nodes_of_widest - slack)}
            if slack:
                needed.add((max(narrowest - slack, 1), count))
            fewest = []
            for tier in tiers:
                first = bisect_left(starts[tier], domain.start)
                inner = slice(first, bisect_left(starts[tier], domain.end, first))
                most = max([how_many(nodes[tier, width][inner], number) for width, number in needed])
                if slack or widest > narrowest:
                    most = max(most, how_many(room[tier][inner], workers))
                fewest.append(most)
            return tuple(fewest)

        return Memo(least if tiers else lambda _number: (), limit=_MOST_BOUNDS)

    @cached_property
    def _parts(self) -> "_Parts":
        places, most = self._problem.capacity.places, 0
        for number in self._numbers:
            most = max(most, *places[self._domains[number].start : self._domains[number].end])
            # Mostly the first domain has one of the widest nodes of all.
            if most == self._problem.capacity.most:
                break
        return _Parts.of(self._problem, self._count, most)

    @cached_property
    def _hardware(self) -> Sequence[frozenset[int]]:
        return self._problem.fleet.hardware_by_domain[len(self._domains[0].path)]

    @cached_property
    def _rates(self) -> Memo[frozenset[int], Rates]:
        return Memo(self._parts.rates_of, limit=_MOST_BOUNDS)

    @cached_property
    def _least_damage(self) -> Memo[tuple[int, ...], int]:
        return Memo(self._parts.least_damage_of, limit=_MOST_BOUNDS)

    @cached_property
    def _inexact(self) -> frozenset[int]:
        return frozenset[int]().union(*(table.inexact for table in self._parts.tables.values()))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The splits of a gang, their different parts, and the damage of each part by state."""

    problem: Problem
    on_one_node: bool
    splits: Sequence[Split]
    parts: Sequence[tuple[int, int]]
    tables: Mapping[int, DamageTable]

    @classmethod
    def of(cls, problem: Problem, count: int, most: int) -> "_Parts":
        # Without GPUs a node's damage depends on its room, which a table by state does not know.
        gang_splits = _splits(problem.workers, count, most) if problem.gpus else []
        parts = sorted({part for split in gang_splits for part in split})
        damages = problem.fleet.tables.damages
        tables = {part: damages[problem.gpus, part] for part, _ in parts}
        return cls(problem, count == 1, gang_splits, parts, tables)

    def least_damage_of(self, state_ids: tuple[int, ...]) -> int:
        """Return the least damage of all splits, each part on the best nodes for it."""
        least: dict[tuple[int, int], float] = {}
        # A large domain has each state many times: its states are counted once and not sorted for every part.
        counted: Mapping[int, int] | None = None
        if len(state_ids) == len(self.problem.fleet.nodes):
            counted = dict(enumerate(map(len, self.problem.fleet.nodes_by_state)))
        elif len(state_ids) > _MOST_SORTED:
            counted = Counter(state_ids)
        for part, times in self.parts:
            damages = self.tables[part].damages
            if times == 1:
                least[part, times] = min(map(damages.__getitem__, counted or state_ids))
            elif counted is None:
                least[part, times] = sum(sorted(map(damages.__getitem__, state_ids))[:times])
            else:
                least[part, times] = _cheapest_set(damages, counted, times)
        damage = min(sum(map(least.__getitem__, split)) for split in self.splits)
        # Infinite where no split fits the states: no damage at all is a bound in any case.
        return int(damage) if damage < inf else 0

    def least_damage_with(self, hardware: frozenset[int]) -> int:
        """Return the least damage of all splits, each part on any node of the fleet with such *hardware*."""
        least: dict[tuple[int, int], float] = {}
        for part, times in self.parts:
            by_kind = self.problem.fleet.least_damages[self.problem.gpus, part]
            least[part, times] = times * min([by_kind[kind] for kind in hardware])
        damage = min((sum(map(least.__getitem__, split)) for split in self.splits), default=0)
        return int(damage) if damage < inf else 0

    def rates_of(self, hardware: frozenset[int]) -> Rates:
        """Return what the best split gives when its parts get empty nodes of the best kind of *hardware*."""
        states = [self.problem.fleet.hardware[number] for number in hardware]
        gpus, sensitive = self.problem.gpus, self.problem.bandwidth_sensitive

        def best(measure: Callable[[NodeState, int], float]) -> float:
            by_part = {part: max(measure(state, part * gpus) for state in states) for part in self.tables}
            return max(min(by_part[part] for part, _ in split) for split in self.splits)

        inside = best(_inside_when_empty if sensitive else _unbounded)
        across = best(nic_rate if sensitive else _unbounded)
        return inside if self.on_one_node else min(inside, across), inside


def _splits(workers: int, count: int, most: int) -> list[Split]:
    """Return the ways to write *workers* as a sum of *count* parts from 1 to *most*; none if they are many.

    What the parts lack of *most* adds up to the slack, so the splits are the partitions of the slack:

    >>> _splits(9, 2, 8)[:2]
    [((8, 1), (1, 1)), ((2, 1), (7, 1))]
    >>> _splits(7, 3, 3)
    [((3, 2), (1, 1)), ((3, 1), (2, 2))]
    """
    slack = count * most - workers
    if slack > _MOST_SLACK:
        return []
    return [
        tuple((Counter({most: count - len(lacking)}) + Counter(most - lack for lack in lacking)).items())
        for lacking in _partitions(slack, most - 1)
        if len(lacking) <= count
    ]


def _partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write *total* as a sum of positive parts up to *largest*, whatever their order.

    >>> list(_partitions(3, 2))
    [(2, 1), (1, 1, 1)]
    """
    if not total:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in _partitions(total - part, part):
            yield (part, *rest)


def _cheapest_set(damages: Sequence[float], counted: Mapping[int, int], times: int) -> float:
    """Return the sum of the *times* lowest *damages* of nodes, *counted* by state."""
    total: float = 0
    for state_id in sorted(counted, key=damages.__getitem__):
        taken = min(counted[state_id], times)
        total += taken * damages[state_id]
        times -= taken
        if not times:
            return total
    return inf


def _inside_when_empty(state: NodeState, count: int) -> float:
    if count == 1:
        return inf
    machine = state.machine
    # Unknown links count as 0 GB/s here because they do in an offer, and a bound must not be below that.
    if machine is None or count > machine.size:
        return 0.0
    choice = machine.best((1 << machine.size) - 1, count)
    return choice.busbw if choice else 0.0


def _unbounded(_state: NodeState, _count: int) -> float:
    return inf


_LITTLE = 1_000
"""Steps of search among the nodes of few domains, where it would take too many to compare all domains."""
EFFORT = 6_000
"""Steps of search that one decision may take before it settles for the best so far: some milliseconds."""
NODES_PER_STEP = 2
"""In larger fleets there is one step more for every so many nodes."""
_LEAST_SEARCHED = 2
"""Domains that are searched, where several may be the best, even if no effort is left."""
_NOWHERE = 1 << 62
"""More room than any domain has."""


@dataclass(frozen=True, slots=True)
class DomainChoice:
    """The pick for a gang, and what it was chosen from.

    ``level`` is where it was searched, ``rivals`` how many domains there hold the gang. ``next_count`` is the
    number of nodes that the best of those with more nodes needs, 0 if there is none. ``exact`` is False where
    something better cannot be ruled out: it depends on what this decision compared, and on no other decision.
    """

    pick: Pick
    level: int
    rivals: int
    next_count: int
    exact: bool


def choose_domain(problem: Problem, level: int) -> DomainChoice:
    """Return the best pick at *level*, which has a domain that holds all workers of *problem*."""
    if level == 0:
        return _choose_node(problem)
    domains = domains_at(problem.fleet, level)
    holding, counts = _counts(problem, domains)
    least = min(counts)
    competing = [number for number, count in zip(holding, counts, strict=True) if count == least]
    picks, exact = _DomainSearch(problem, domains, competing, least, 1).picks()
    return DomainChoice(
        pick=picks[0],
        level=level,
        rivals=len(holding),
        next_count=min((count for count in counts if count > least), default=0),
        exact=exact,
    )


def runner_up(problem: Problem, chosen: DomainChoice) -> Pick | None:
    """Return the best pick of another domain, or node, than that of *chosen* with as few nodes, if any.

    It may be as good, and later by name. To find it takes longer than the decision.
    """
    if chosen.level == 0:
        ranked = (nodes for alike in _ranked_states(problem) if (nodes := _holding_nodes(problem, alike)))
        second = list(islice(ranked, 1, 2))
        return _on_one_node(problem, min(second[0])) if second else None
    domains = domains_at(problem.fleet, chosen.level)
    holding, counts = _counts(problem, domains)
    count = len(chosen.pick.nodes)
    competing = [number for number, needed in zip(holding, counts, strict=True) if needed == count]
    if len(competing) < 2:
        return None
    picks, _ = _DomainSearch(problem, domains, competing, count, 2).picks()
    return next(pick for pick in picks if pick.domain != chosen.pick.domain)


def _counts(problem: Problem, domains: Sequence[Domain]) -> tuple[list[int], list[int]]:
    """Return the numbers of the *domains* that hold the gang, and the fewest nodes that do in each."""
    capacity, workers = problem.capacity, problem.workers
    holding = [
        number for number, places in enumerate(capacity_by_domain(capacity, domains)) if places >= workers
    ]
    if len(holding) <= _MOST_SORTED:
        return holding, [fewest(capacity, domains[number], workers) for number in holding]
    # Many domains are small, and few of them are looked at again: to sort one takes less time than to count.
    places, ends = capacity.places, [(domains[number].start, domains[number].end) for number in holding]
    widest = [accumulate(sorted(places[start:end], reverse=True)) for start, end in ends]
    return holding, [bisect_left(list(sums), workers) + 1 for sums in widest]


class _DomainSearch:
    """The search of the *most* best picks of the domains that compete, and whether none can be better.

    The domain with the best bound is next: its bound is made closer, then it is searched. Domains whose bound
    is no better than the picks so far are left. The result is exact only if every pick and every bound that
    was used is.
    """

    def __init__(
        self, problem: Problem, domains: Sequence[Domain], competing: Sequence[int], count: int, most: int
    ) -> None:
        self._problem = problem
        self._domains = domains
        self._count = count
        self._most = most
        self._bounds = DomainBounds(problem, domains, competing, count)
        # One budget for all domains: the most promising ones are searched first and may use it up.
        self._effort = Effort(EFFORT + len(problem.fleet.nodes) // NODES_PER_STEP)
        room_of = rooms(problem.fleet, problem.capacity, len(domains[0].path))
        only = [((), room_of[competing[0]], competing[0])] if len(competing) == 1 else None
        # With a bound by the hardware alone; what is looked at again has one by its states, or its nodes.
        self._candidates: Iterator[tuple[Score, Room, int]] = iter(only or self._bounds.best_first(room_of))
        self._again: list[tuple[Score, Room, int, bool]] = []
        self._best: list[tuple[Rank, Pick]] = []
        self._exact = True
        self._searched = 0
        self._left: list[int] = []
        self._inexact: set[int] = set()

    def picks(self) -> tuple[list[Pick], bool]:
        """Return the best picks, the best first, and whether no others can be better."""
        following = next(self._candidates, None)
        while following or self._again:
            if following and (not self._again or following <= self._again[0][:3]):
                bound, room, number = following
                following = next(self._candidates, None)
                is_over = self._is_beaten(bound, room, number)
                if not is_over:
                    self._look_at(bound, room, number)
            else:
                bound, room, number, is_close = heappop(self._again)
                is_over = self._is_beaten(bound, room, number) or not self._look_again(
                    bound, room, number, is_close=is_close
                )
            if is_over:
                self._left.append(number)
                break
        left = chain(self._left, map(itemgetter(2), self._again), [following[2]] if following else ())
        return [choice for _, choice in self._best], self._exact and self._is_exact_without(left)

    def _is_exact_without(self, left: Iterable[int]) -> bool:
        """Whether the bounds of the domains that are *left*, and of those that were not looked at, are."""
        numbers = [*left]
        if not self._inexact.isdisjoint(numbers):
            return False
        rest = next(self._candidates, None)
        if not numbers and rest is None:
            return True
        first = () if rest is None else (rest[2],)
        return self._bounds.is_exact(chain(numbers, first, map(itemgetter(2), self._candidates)))

    def _is_beaten(self, bound: Score, room: Room, number: int) -> bool:
        """Whether a domain with such a *bound* is no better than the picks so far."""
        if len(self._best) < self._most:
            return False
        return (bound, room, self._domains[number].start) > self._best[-1][0]

    def _look_at(self, bound: Score, room: Room, number: int) -> None:
        """Search the domain *number* if few picks are known, else bound it by its states."""
        if len(self._best) < self._most:
            self._pick(room, number)
            return
        bound = self._bounds.bound(number)
        if self._is_beaten(bound, room, number):
            self._left.append(number)
        else:
            heappush(self._again, (bound, room, number, False))

    def _look_again(self, bound: Score, room: Room, number: int, *, is_close: bool) -> bool:
        """Search the domain *number*, or bound it by its nodes first; whether there is effort for that."""
        if self._bounds.has_closer(number):
            if not is_close and self._problem.objective is not Objective.BANDWIDTH:
                # What the nodes give if they may be anywhere in the domain takes less time to find.
                anywhere = replace(self._problem, closest=len(self._problem.fleet.tiers) + 1)
                relaxed = pick(anywhere, self._domains[number], self._count, self._effort)
                if not (relaxed.complete and relaxed.sets_exact):
                    self._inexact.add(number)
                closer = max(self._bounds.score_of(relaxed, number), bound)
                heappush(self._again, (closer, room, number, True))
                return True
            if not self._effort.steps:
                self._exact = False
                if self._searched >= _LEAST_SEARCHED:
                    return False
        self._pick(room, number)
        return True

    def _pick(self, room: Room, number: int) -> None:
        """Search the domain *number*."""
        domain = self._domains[number]
        self._searched += 1

        def is_beaten(touched: tuple[int, ...]) -> bool:
            # The bound of a large domain takes long, and without a pick nothing is beaten.
            return len(self._best) >= self._most and self._is_beaten(
                self._bounds.bound(number, touched), room, number
            )

        choice = _unbeaten(self._problem, domain, self._count, self._effort, is_beaten)
        if choice is None:
            self._left.append(number)
            return
        self._exact = self._exact and choice.sets_exact
        # An incomplete search is still exact where its pick meets the bound, or where the best pick beats it.
        if not choice.complete and choice.score > (bound := self._bounds.bound(number)):
            beats = bool(self._best) and (bound, room, domain.start) > self._best[0][0]
            self._exact = self._exact and beats
        ranked = (*self._best, ((choice.score, room, domain.start), choice))
        self._best = sorted(ranked, key=itemgetter(0))[: self._most]


def _choose_node(problem: Problem) -> DomainChoice:
    """Return the best single node: of the best states, the node in the tightest domain."""
    best = next(nodes for states in _ranked_states(problem) if (nodes := _holding_nodes(problem, states)))
    best = _least_unused(problem.fleet, best)
    _, node = next(tightest_first(problem.fleet, problem.capacity, sorted(best)))
    workers, capacity = problem.workers, problem.capacity
    if capacity.by_state is None:
        rivals = sum(map(workers.__le__, capacity.places))
    else:
        by_state = zip(problem.fleet.nodes_by_state, capacity.by_state, strict=True)
        rivals = sum([len(alike) for alike, places in by_state if places >= workers])
    offers = problem.fleet.tables.alike[problem.gpus, problem.use(1), workers]
    return DomainChoice(
        pick=_on_one_node(problem, node),
        level=0,
        rivals=rivals,
        next_count=0,
        exact=all(offer.exact or not _holding_nodes(problem, states) for offer, states in offers),
    )


def _least_unused(fleet: Fleet, nodes: list[int]) -> list[int]:
    """Return those of *nodes* with the least cpu and memory free: others are kept for those who need more."""
    unused = list(map(fleet.unused.__getitem__, nodes))
    return list(compress(nodes, map(min(unused).__eq__, unused)))


def _ranked_states(problem: Problem) -> list[list[int]]:
    """Return the states whose nodes are equally good for the whole gang, the best ones first."""
    goal = Goal(1, problem.workers, problem.objective)
    by_score: defaultdict[Score, list[int]] = defaultdict(list)
    for offer, states in problem.fleet.tables.alike[problem.gpus, problem.use(1), problem.workers]:
        # One node needs no NIC, and the tightest domain is looked for among equally good nodes only.
        by_score[goal.score(offer.inside, offer.inside, offer.damage)] += states
    return [by_score[score] for score in sorted(by_score)]


def _holding_nodes(problem: Problem, states: Iterable[int]) -> list[int]:
    """Return the nodes of some *states* that take the whole gang."""
    workers, capacity, nodes = problem.workers, problem.capacity, problem.fleet.nodes_by_state
    if capacity.by_state is None:
        places = capacity.places
        return [position for state in states for position in nodes[state] if places[position] >= workers]
    by_state = capacity.by_state
    return list(chain.from_iterable(nodes[state] for state in states if by_state[state] >= workers))


def _offer_of_one_node(problem: Problem, state_id: int, places: int) -> Offer:
    return problem.fleet.tables.offer(problem.gpus, problem.use(1), state_id, problem.workers, places)


def _on_one_node(problem: Problem, position: int) -> Pick:
    fleet = problem.fleet
    offer = _offer_of_one_node(problem, fleet.state_ids[position], problem.capacity.places[position])
    domain = _finest_domain(fleet, position)
    return picked(domain, [(position, offer)], problem.goal(1, domain))


def tightest_first(fleet: Fleet, capacity: Capacity, nodes: Sequence[int]) -> Iterator[tuple[Room, int]]:
    """Yield *nodes*, in fabric order, with the room of their finest domain: tightest first, in none last."""
    left, nowhere = list(nodes), Room()
    # A node in no domain of a tier is taken after those in one: the next coarser tier compares such nodes.
    for depth in range(len(fleet.tiers), 0, -1):
        domains = fleet.domains[depth - 1]
        for room, number in sorted(zip(rooms(fleet, capacity, depth), range(len(domains)), strict=True)):
            first = bisect_left(left, domains[number].start)
            last = bisect_left(left, domains[number].end, first)
            yield from (((*nowhere, *room), position) for position in left[first:last])
            del left[first:last]
        if not left:
            return
        nowhere = (*nowhere, _NOWHERE)
    yield from ((nowhere, position) for position in left)


def _finest_domain(fleet: Fleet, position: int) -> Domain:
    """Return the finest domain that the node at *position* is in, the node itself where it is in none."""
    domain = domain_at(fleet.domains[-1], position) if fleet.tiers else None
    return domain or Domain((fleet.nodes[position].name,), position, position + 1)
