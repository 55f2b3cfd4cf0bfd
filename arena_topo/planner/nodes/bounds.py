"""How good a choice in a domain can be at best, from its nodes' states alone, so that few domains are searched.

A gang of w workers on c nodes is one of few *splits* of w into c parts, since with the fewest nodes hardly any place is
left unused. For each part the best nodes of the domain are taken, be they taken for another part as well; a real choice
takes every node once, so it is never better. All bounds are merits: none of a bound's entries is above the real one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf

from arena_topo.planner.nodes.fleet import Domain, Fleet, NodeState
from arena_topo.planner.nodes.node_choice import Merit, Problem
from arena_topo.planner.nodes.offers import Offers, nics

_MOST_SLACK = 8
_MOST_SORTED = 64
NO_BOUND: tuple[float, float] = (-inf, -inf)

Split = tuple[tuple[int, int], ...]
"""Parts with their multiplicities: so many workers on each of so many nodes."""


class Bounds:
    """The bounds for one gang on *count* nodes of a domain, none of which takes more than *most* workers.

    *hardware* are the kinds of hardware in each domain of the tier, by whose number domains are asked for.
    """

    def __init__(self, problem: Problem, count: int, most: int, hardware: Sequence[frozenset[int]]) -> None:
        self._problem = problem
        self._alone = count == 1
        self._splits = splits(problem.workers, count, most) if problem.offers.gpus else []
        parts = sorted({each for split in self._splits for each in split})
        self._parts = parts
        self._damages = {part: _damages(problem.offers, part) for part, _ in parts}
        self._known: dict[tuple[int, ...], int] = {}
        self._hardware = hardware
        self._rates: dict[frozenset[int], tuple[float, float]] = {}

    def rates(self, number: int) -> tuple[float, float]:
        """Return the first two entries of a merit that domain *number* could have if its nodes were empty."""
        if not self._splits:
            return NO_BOUND
        kinds = self._hardware[number]
        known = self._rates.get(kinds)
        if known is None:
            known = self._rates[kinds] = self._rates_of(kinds)
        return known

    def bound(self, number: int, domain: Domain, left: int) -> Merit:
        """Return a merit that no choice in *domain*, which has the *number*, is better than."""
        rates = self.rates(number)
        if not self._splits:
            return (*rates, 0, left)
        kinds = self._problem.fleet.kinds[domain.start : domain.end]
        damage = self._known.get(kinds)
        if damage is None:
            damage = self._known[kinds] = self._damage(kinds)
        return (*rates, damage, left)

    def _damage(self, kinds: tuple[int, ...]) -> int:
        """Return the least damage of all splits, each part on the best nodes for it."""
        least: dict[tuple[int, int], float] = {}
        counted = Counter(kinds) if len(kinds) > _MOST_SORTED else None
        for part, times in self._parts:
            table = self._damages[part]
            if times == 1:
                least[part, times] = min(map(table.__getitem__, counted or kinds))
            elif counted is None:
                least[part, times] = sum(sorted(map(table.__getitem__, kinds))[:times])
            else:
                least[part, times] = _cheapest(table, counted, times)
        damage = min(sum(map(least.__getitem__, split)) for split in self._splits)
        return int(damage) if damage < inf else 0

    def _rates_of(self, hardware: frozenset[int]) -> tuple[float, float]:
        kinds = hardware_of(self._problem.fleet)[0]
        states = [kinds[number] for number in hardware]
        gpus = self._problem.offers.gpus

        def best(measure: Callable[[NodeState, int], float]) -> float:
            by_part = {part: max(measure(state, part * gpus) for state in states) for part in self._damages}
            return max(min(by_part[part] for part, _ in split) for split in self._splits)

        inside = best(_inside if self._problem.offers.matters else _unbound)
        across = best(_across if self._problem.offers.matters else _unbound)
        return -(inside if self._alone else min(inside, across)), -inside


def splits(workers: int, count: int, most: int) -> list[Split]:
    """Return the ways to write *workers* as a sum of *count* parts from 1 to *most*; none where they are many."""
    slack = count * most - workers
    if slack > _MOST_SLACK:
        return []
    return [
        tuple((Counter({most: count - len(less)}) + Counter(most - each for each in less)).items())
        for less in _partitions(slack, most - 1)
        if len(less) <= count
    ]


def _partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write *total* as a sum of positive parts up to *largest*, whatever their order."""
    if not total:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in _partitions(total - part, part):
            yield (part, *rest)


def hardware_of(fleet: Fleet) -> tuple[list[NodeState], list[int]]:
    """Return the kinds of hardware of *fleet*, each by one of its states, and each state's number among them."""
    kept: dict[str, tuple[list[NodeState], list[int]]] = fleet.kept("hardware")
    if not kept:
        numbers: dict[object, int] = {}
        examples: list[NodeState] = []
        by_state = []
        for state in fleet.states:
            number = numbers.setdefault((state.machine, state.rate, state.fastest, state.total), len(numbers))
            if number == len(examples):
                examples.append(state)
            by_state.append(number)
        kept["all"] = examples, by_state
    return kept["all"]


def domain_hardware(fleet: Fleet, tier: Sequence[Domain]) -> list[frozenset[int]]:
    """Return the kinds of hardware in each domain of *tier*, one of the fleet's own."""
    kept: dict[int, list[frozenset[int]]] = fleet.kept("domains")
    level = len(tier[0].path)
    if level not in kept:
        of_node = list(map(hardware_of(fleet)[1].__getitem__, fleet.kinds))
        kept[level] = [frozenset(of_node[each.start : each.end]) for each in tier]
    return kept[level]


def _damages(offers: Offers, part: int) -> list[float]:
    """Return for every state the damage of *part* workers on its nodes, infinite where it has too few free GPUs."""
    kept: dict[tuple[int, int], list[float]] = offers.fleet.kept("damages")
    key = (offers.gpus, part)
    if key not in kept:
        kept[key] = [
            offers.of(kind, part, part).damage if state.free >= part * offers.gpus else inf
            for kind, state in enumerate(offers.fleet.states)
        ]
    return kept[key]


def _cheapest(table: Sequence[float], counted: Mapping[int, int], times: int) -> float:
    """Return the sum of the *times* lowest entries of *table* for kinds that there are so many of."""
    total: float = 0
    for kind in sorted(counted, key=table.__getitem__):
        taken = min(counted[kind], times)
        total += taken * table[kind]
        times -= taken
        if not times:
            return total
    return inf


def _inside(state: NodeState, count: int) -> float:
    if count == 1:
        return inf
    machine = state.machine
    if machine is None or count > machine.size:
        return 0.0
    best = machine.best((1 << machine.size) - 1, count)
    return best.busbw if best else 0.0


def _across(state: NodeState, count: int) -> float:
    return nics(state, count)


def _unbound(_state: NodeState, _count: int) -> float:
    return inf
