"""Upper bounds on the best choice within a domain, from its nodes' states alone, so that few domains are searched.

A gang of w workers on c nodes is one of few *splits* of w into c parts, because with the fewest nodes hardly any place
is left unused. For each part the best nodes of the domain are taken, even those that are taken for another part as well;
a real choice takes every node once, so it is never better. All bounds are merits: no entry of a bound is above the
real one.

Nine workers on two nodes with eight places each split into 8 + 1, 7 + 2, 6 + 3 or 5 + 4. Say the nodes of a domain
would suffer these damages:

====  ===  ===  ===  ===  ===  ===  ===  ===
node   1    2    3    4    5    6    7    8
====  ===  ===  ===  ===  ===  ===  ===  ===
a      9    7    6    6    3    4    2    0
b      5    8    7    4    5    6    3    1
====  ===  ===  ===  ===  ===  ===  ===  ===

The least damage of 8 + 1 is 0 (a) + 5 (b) = 5, of 7 + 2 it is 2 (a) + 7 (a) = 9 although a cannot take both, of
6 + 3 it is 4 + 6 = 10, of 5 + 4 it is 3 + 4 = 7: the bound is 5. A domain that has already given 4 is not beaten.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from arena_topo.planner.memo import Memo
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.node_choice import Problem
from arena_topo.planner.nodes.node_state import DamageTable, NodeState, nic_rate
from arena_topo.planner.nodes.objective import Merit

# A slack of 8 has 22 partitions, and their number grows fast: a gang with more slack gets no bound.
_MOST_SLACK = 8
_MOST_SORTED = 64
_MOST_BOUNDS = 50_000
Rates = tuple[float, float]
"""Busbw with NICs counted, and inside the nodes."""

Split = tuple[tuple[int, int], ...]
"""Parts with their multiplicities: so many workers on each of so many nodes."""


class DomainBounds:
    """The bounds for one gang on *count* nodes of a domain, none of which takes more than *most* workers.

    Domains are asked for by their number in the tier, whose kinds of hardware by domain are *hardware*.
    """

    def __init__(self, problem: Problem, count: int, most: int, hardware: Sequence[frozenset[int]]) -> None:
        """Take the gang, the number of nodes, the most workers of a node, and the domains' hardware."""
        self._fleet = problem.fleet
        self._hardware = hardware
        self._parts = parts = _Parts.of(problem, count, most)
        self._goal = problem.goal(count)
        self._rates = Memo(parts.rates_of, limit=_MOST_BOUNDS)
        self._least_damage = Memo(parts.least_damage_of, limit=_MOST_BOUNDS)
        self._inexact = frozenset[int]().union(*(table.inexact for table in parts.tables.values()))

    def when_empty(self, number: int) -> Merit:
        """Return a merit that no choice in domain *number* is better than, were its nodes empty; cheap to compute."""
        return self._goal.merit(*self._rates_of(number), 0)

    def bound(self, number: int, domain: Domain) -> Merit:
        """Return a merit that no choice in *domain*, which has the *number*, is better than."""
        if not self._parts.splits:
            return self.when_empty(number)
        damage = self._least_damage[self._fleet.state_ids[domain.start : domain.end]]
        return self._goal.merit(*self._rates_of(number), damage)

    def _rates_of(self, number: int) -> Rates:
        return self._rates[self._hardware[number]] if self._parts.splits else (inf, inf)

    def is_exact(self, domains: Iterable[Domain]) -> bool:
        """Whether the bounds of *domains* rest on sets of GPUs that are proven to be the best."""
        inexact = self._inexact
        if not inexact:
            return True
        state_ids = self._fleet.state_ids
        return all(inexact.isdisjoint(state_ids[domain.start : domain.end]) for domain in domains)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The splits of a gang, their different parts, and the damage of so many workers by state for each part."""

    problem: Problem
    on_one_node: bool
    splits: Sequence[Split]
    parts: Sequence[tuple[int, int]]
    tables: Mapping[int, DamageTable]

    @classmethod
    def of(cls, problem: Problem, count: int, most: int) -> "_Parts":
        # Without GPUs a node's damage depends on how many places it has, which a table by state does not know.
        gang_splits = splits(problem.workers, count, most) if problem.gpus else []
        parts = sorted({part for split in gang_splits for part in split})
        damages = problem.fleet.tables.damages
        tables = {part: damages[problem.gpus, part] for part, _ in parts}
        return cls(problem, count == 1, gang_splits, parts, tables)

    def least_damage_of(self, state_ids: tuple[int, ...]) -> int:
        """Return the least damage of all splits, each part on the best nodes for it."""
        least: dict[tuple[int, int], float] = {}
        # A large domain has each state many times: its states are counted once and not sorted for every part.
        counted = Counter(state_ids) if len(state_ids) > _MOST_SORTED else None
        for part, times in self.parts:
            damages = self.tables[part].damages
            if times == 1:
                least[part, times] = min(map(damages.__getitem__, counted or state_ids))
            elif counted is None:
                least[part, times] = sum(sorted(map(damages.__getitem__, state_ids))[:times])
            else:
                least[part, times] = _cheapest(damages, counted, times)
        damage = min(sum(map(least.__getitem__, split)) for split in self.splits)
        # Infinite where no split fits the states: no damage at all is a bound in any case.
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


def splits(workers: int, count: int, most: int) -> list[Split]:
    """Return the ways to write *workers* as a sum of *count* parts from 1 to *most*; none where they are many.

    What the parts lack of *most* adds up to the slack, so the splits are the partitions of the slack:

    >>> splits(9, 2, 8)[:2]
    [((8, 1), (1, 1)), ((2, 1), (7, 1))]
    >>> splits(7, 3, 3)
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


def _cheapest(damages: Sequence[float], counted: Mapping[int, int], times: int) -> float:
    """Return the sum of the *times* lowest *damages* of nodes, of which *counted* has so many in each state."""
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
