"""A gang whose ranks form communication groups: the groups decide where its workers go, and in which order.

Placements are compared by, in this order:

1. the level that holds each tensor-parallel group, then each of ``cp`` and ``ep``: units of workers (``units``);
2. the level that holds the gang in such units;
3. the spread of pipelines and of data-parallel groups over the domains of the next closer level (``partition``);
4. the same over the levels below, each within what the level above decided;
5. the order of choice that holds without groups: fewest nodes, bandwidth, damage, the tightest domain.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.parallelism import Closer, Parallelism
from arena_topo.model.plan.placement import Placement
from arena_topo.planner.assign import placement
from arena_topo.planner.groups.partition import Cell, Partition, Spread, partition, spread_of
from arena_topo.planner.groups.rules import Answer, first_fit, kueue_best_fit, kueue_slices
from arena_topo.planner.groups.spreads import Levels, group_places
from arena_topo.planner.groups.steps import with_group_steps
from arena_topo.planner.groups.units import Parts, Stage, grid_of, parts_of, stages_of, unit_sizes
from arena_topo.planner.nodes.domain_choice import EFFORT, DomainChoice
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import Capacity, LevelLimits, level_names
from arena_topo.planner.nodes.node_choice import Pick, Problem, fewest, pick, picked
from arena_topo.planner.nodes.objective import Merit
from arena_topo.planner.nodes.search import Effort

_MOST_CANDIDATES = 16
"""Domains that hold the whole gang, of which each is tried."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit: the number of its first worker, and its place in the grid."""

    first: int
    cell: Cell


@dataclass(frozen=True, slots=True)
class _Arranged:
    """The node of each worker, and the first partition of the grid, None where no level below the gang's is left."""

    nodes: tuple[int, ...]
    partition: Partition | None


def place_groups(
    demand: Demand, parallel: Parallelism, fleet: Fleet, capacity: Capacity, limits: LevelLimits
) -> Placement:
    """Return the placement of *demand*, which has a domain within *limits* that holds it, by its groups."""
    each = parallel.ranks // demand.workers
    parts = parts_of(fleet)
    sizes = unit_sizes(parallel, demand.workers, each)
    stages = stages_of(sizes, parts, capacity.places, demand.workers, limits.widest)
    problem = Problem(fleet, capacity, demand.workers, demand.gpus, objective=demand.objective)
    layout = _Layout(problem, parallel, parts, tuple(stages))
    units = layout.units(each)
    level, candidates = _candidates(layout, len(units), limits)
    tried = [(layout.arranged(units, level, domain), domain) for domain in candidates[:_MOST_CANDIDATES]]
    merits = [layout.merit(units, level, arranged, domain) for arranged, domain in tried]
    best = min(range(len(tried)), key=merits.__getitem__)
    arranged, domain = tried[best]
    exact = len(candidates) == len(tried) and all(
        other.partition is None or other.partition.exact for other, _ in tried
    )
    chosen = DomainChoice(
        pick=layout.pick_of(arranged.nodes, domain),
        level=level,
        rivals=len(candidates),
        next_count=0,
        runner_up=None,
        exact=False,
    )
    answer = placement(demand, fleet, capacity, chosen, _workers_of(arranged.nodes))
    others = map(_by_rule, _rules(layout))
    levels = Levels(level_names(fleet), parts)
    groups = group_places(parallel, levels, arranged.nodes, *others)
    least = fewest(capacity, domain, demand.workers)
    return with_group_steps(answer, fleet, groups, exact=exact, fewest=len(answer.shares) == least)


def _candidates(layout: "_Layout", units: int, limits: LevelLimits) -> tuple[int, list[Domain]]:
    """Return the closest level with domains that hold all *units*, and these, the tightest first."""
    stage = layout.stages[-1]
    for level in range(max(stage.level, limits.closest), limits.widest + 1):
        room = [(stage.within(part.start, part.end), part) for part in layout.parts[level]]
        holding = sorted((count, part.start, part) for count, part in room if count >= units)
        if holding:
            return level, [part for _, _, part in holding]
    raise AssertionError("the level that holds the workers holds their units")


@dataclass(frozen=True, slots=True)
class _Layout:
    """A gang, the levels of its fleet, and the stages of its units, the smallest unit first."""

    problem: Problem
    parallel: Parallelism
    parts: Parts
    stages: tuple[Stage, ...]

    def units(self, each: int) -> list[_Unit]:
        """Return the largest units, whose workers have *each* so many ranks, in the order of their ranks."""
        size = self.stages[-1].workers
        cells = grid_of(self.parallel, self.problem.workers // size, size * each)
        return [_Unit(number * size, cell) for number, cell in enumerate(cells)]

    def arranged(self, units: Sequence[_Unit], level: int, domain: Domain) -> _Arranged:
        """Return the nodes of *units* in *domain* of *level*, which holds them."""
        first: list[Partition] = []
        placed = dict(self._descend(len(self.stages) - 1, units, level, domain, first))
        nodes = tuple(placed[worker] for worker in range(self.problem.workers))
        return _Arranged(nodes, first[0] if first else None)

    def merit(self, units: Sequence[_Unit], level: int, arranged: _Arranged, domain: Domain) -> "_Merit":
        """Return the rank of *arranged*: the spreads from the coarsest level, then what counts without groups."""
        cells = [unit.cell for unit in units]
        spreads = []
        for finer in range(level - 1, -1, -1):
            numbers = _domain_numbers(self.parts[finer])
            spreads.append(spread_of(cells, [numbers[arranged.nodes[unit.first]] for unit in units]))
        found = self.pick_of(arranged.nodes, domain)
        room = self.problem.capacity.within(domain)
        return spreads, len(found.nodes), found.merit, room, domain.start

    def pick_of(self, nodes: Sequence[int], domain: Domain) -> Pick:
        """Return *nodes*, one for each worker, with what each of them gives its workers."""
        counts = {position: len(workers) for position, workers in _workers_of(nodes).items()}
        problem, places = self.problem, self.problem.capacity.places
        tables, use = problem.fleet.tables, problem.use(len(counts))
        offers = [
            (
                position,
                tables.offer(problem.gpus, use, problem.fleet.state_ids[position], count, places[position]),
            )
            for position, count in counts.items()
        ]
        return picked(domain, offers, problem.goal(len(counts)), complete=False)

    def _descend(
        self, stage: int, units: Sequence[_Unit], level: int, domain: Domain, first: list[Partition]
    ) -> Iterator[tuple[int, int]]:
        """Yield each worker of *units* with its node in *domain* of *level*; *first* gets the first partition."""
        if level == self.stages[stage].level:
            if stage:
                yield from self._descend(stage - 1, self._parted(stage, units), level, domain, first)
            else:
                yield from ((unit.first, domain.start) for unit in units)
            return
        if level == 1 and stage == 0 and (nodes := self._alike(units, domain)):
            yield from ((unit.first, node) for unit, node in zip(units, nodes, strict=True))
            return
        below = self._below(level, domain)
        room = [self.stages[stage].within(part.start, part.end) for part in below]
        size, capacity = self.stages[stage].workers, self.problem.capacity

        def node_count(counts: Mapping[int, int]) -> int:
            return sum(fewest(capacity, below[number], count * size) for number, count in counts.items())

        found = partition([unit.cell for unit in units], room, node_count, weights=self._weights)
        # Only the grid of the largest units has rows and columns that cross.
        if not first and stage == len(self.stages) - 1:
            first.append(found)
        inside: dict[int, list[_Unit]] = {}
        for unit, number in zip(units, found.bins, strict=True):
            inside.setdefault(number, []).append(unit)
        for number, held in inside.items():
            yield from self._descend(stage, held, level - 1, below[number], first)

    @property
    def _weights(self) -> tuple[int, int] | None:
        """What a domain that a pipeline touches counts, and one that a data-parallel group does; None where one goes first."""
        return self.parallel.traffic if self.parallel.closer is Closer.BOTH else None

    def _below(self, level: int, domain: Domain) -> list[Domain]:
        """Return the domains of the next closer level within *domain*: of those with equal room the better one first."""
        below = [
            part for part in self.parts[level - 1] if domain.start <= part.start and part.end <= domain.end
        ]
        if level > 1:
            # The fewest nodes for all that it has room for.
            capacity = self.problem.capacity
            return sorted(below, key=lambda part: fewest(capacity, part, capacity.within(part)))
        return sorted(below, key=lambda part: (self._rank(part.start), part.start))

    def _rank(self, position: int) -> tuple[float, float, int]:
        """Return the rank of a full node: bandwidth, and then the damage."""
        problem = self.problem
        places = problem.capacity.places[position]
        if not places:
            return 0.0, 0.0, 0
        tables, state = problem.fleet.tables, problem.fleet.state_ids[position]
        offer = tables.offer(problem.gpus, problem.use(2), state, places, places)
        return -offer.busbw, -offer.inside, offer.damage

    def _parted(self, stage: int, units: Sequence[_Unit]) -> list[_Unit]:
        """Return the smaller units of *units*: those of one are a row, to be kept together."""
        size = self.stages[stage - 1].workers
        ratio = self.stages[stage].workers // size
        return [
            _Unit(unit.first + number * size, (unit.first, number))
            for unit in units
            for number in range(ratio)
        ]

    def _alike(self, units: Sequence[_Unit], domain: Domain) -> tuple[int, ...]:
        """Return the nodes for *units* of one worker where each takes one at most, so that any order is as good.

        Empty where nodes take more.
        """
        places = self.problem.capacity.places[domain.start : domain.end]
        if max(places) > 1:
            return ()
        problem = replace(self.problem, workers=len(units))
        count = fewest(problem.capacity, domain, len(units))
        return pick(problem, domain, count, Effort(EFFORT)).nodes


_Merit = tuple[list[Spread], int, Merit, int, int]


def _domain_numbers(parts: Sequence[Domain]) -> list[int]:
    return [number for number, part in enumerate(parts) for _ in range(part.start, part.end)]


def _workers_of(nodes: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return the workers of each node."""
    workers: dict[int, list[int]] = {}
    for worker, node in enumerate(nodes):
        workers.setdefault(node, []).append(worker)
    return {node: tuple(held) for node, held in workers.items()}


def _rules(layout: _Layout) -> tuple[Answer, Answer]:
    """Return where first fit and Kueue's rule put as many workers, Kueue's in slices that are the units."""
    capacity, workers, stage = layout.problem.capacity, layout.problem.workers, layout.stages[-1]
    kueue = (
        kueue_best_fit(layout.parts, capacity.places, workers)
        if stage.workers == 1
        else kueue_slices(layout.parts, capacity.places, workers // stage.workers, stage)
    )
    return first_fit(capacity.places, workers), kueue


def _by_rule(answer: Answer) -> list[int] | None:
    """Return the node of each worker: their numbers follow the nodes in fabric order."""
    if answer is None:
        return None
    return [position for position, count in sorted(answer.items()) for _ in range(count)]
