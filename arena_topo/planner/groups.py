"""A gang whose ranks form communication groups: the groups decide where its workers go, and in which order.

Placements are compared by, in this order:

1. the level that holds each tensor-parallel group, then each of ``cp`` and ``ep``: units of workers
   (``units``);
2. the level that holds the gang in such units;
3. the spread of pipelines and of data-parallel groups over the domains of the next closer level
   (``partition``);
4. the same over the levels below, each within what the level above decided;
5. the order of choice that holds without groups: fewest nodes, bandwidth, damage, the tightest domain.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import lcm
from operator import attrgetter

from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import CLIQUE
from arena_topo.model.placement_options import Axis, Closer, Groups, Parallelism
from arena_topo.model.plan import Demand, GroupPlaces, GroupSpread, Placement, Step, Steps
from arena_topo.model.text.words import natural_sort_key, plural
from arena_topo.planner.answer import placement
from arena_topo.planner.choice import EFFORT, DomainChoice, Effort, Pick, Problem, Score, fewest, pick, picked
from arena_topo.planner.fleet import (
    Capacity,
    Domain,
    Fleet,
    LevelLimits,
    capacity_of,
    domains_at,
    level_names,
    level_words,
)
from arena_topo.planner.partition import Cell, Partition, Spread, partition, spread_of

# NVLink over several nodes: the cliques of NVL72 racks, and jobs that share one.
#
# NVIDIA's driver labels the nodes of a clique alike (``nvidia.com/gpu.clique``, cluster UUID and number of
# the clique): their GPUs reach each other over NVLink. Two ComputeDomains on different nodes of one clique
# can break each other's fabric memory (NVIDIA/k8s-dra-driver-gpu, issue 892).

_MOST_NAMED = 3


def shared_clique_notes(answer: Placement, snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning for each clique in which *answer* takes nodes and other jobs have GPUs elsewhere."""
    taken = {share.node for share in answer.shares}
    # A gang on one node needs no NVLink beyond it.
    if len(taken) < 2:
        return
    cliques: dict[str, int] = {}
    for node in snapshot.nodes:
        if node.name in taken and (clique := node.labels.get(CLIQUE)):
            cliques[clique] = cliques.get(clique, 0) + 1
    others = _other_jobs(taken, snapshot)
    for clique in sorted(cliques, key=natural_sort_key):
        if jobs := sorted(others.get(clique, ()), key=natural_sort_key):
            more = len(jobs) - _MOST_NAMED
            named = ", ".join(jobs[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            yield (
                f"{plural(cliques[clique], 'node')} of the NVLink clique {clique}, which {named} also "
                f"{'uses' if len(jobs) == 1 else 'use'}: two jobs with ComputeDomains "
                f"in one clique can break each other's memory"
            )


def _other_jobs(taken: set[str], snapshot: Snapshot) -> Mapping[str, set[str]]:
    """Return the jobs with GPUs on the nodes of each clique that are not *taken*."""
    jobs: dict[str, set[str]] = {}
    for node in snapshot.nodes:
        clique = node.labels.get(CLIQUE)
        if clique and node.name not in taken:
            for holder in node.holders:
                if holder.job and holder.gpus:
                    jobs.setdefault(clique, set()).add(f"{holder.namespace}/{holder.job}")
    return jobs


# Which workers belong together, and how many of such units the domains of a fleet hold.
#
# The groups of ``tp``, ``cp`` and ``ep`` are consecutive ranks, and exchange by far the most data. So
# consecutive workers make a *unit*, which is to lie in one domain of the closest level that can hold all
# units. What remains are the crossing groups of ``pp`` and ``dp``: the rows and the columns of a grid of
# units.
#
# With tp=16, dp=4, pp=2 and workers of 8 GPUs, two workers are a unit, and the eight units a grid of 4 x 2.
# No node holds two such workers, so each unit lies in one rack: a rack of five such nodes has room for two
# units.


@dataclass(frozen=True, slots=True)
class Stage:
    """A unit of ``workers`` consecutive ones that belong together because of ``axis``, and where it fits.

    Each is to lie in one domain of ``level``. ``before`` adds up, by position in fabric order, the units that
    the domains of that level hold: each counts at its first node.
    """

    workers: int
    axis: Axis | None
    level: int
    before: Sequence[int]

    def within(self, start: int, end: int) -> int:
        """Return how many units the nodes from *start* up to *end*, whole domains of the level, hold."""
        return self.before[end] - self.before[start]


def _unit_sizes(parallel: Parallelism, workers: int, each: int) -> list[tuple[int, Axis | None]]:
    """Return the workers of each kind of unit, the smallest first, where a worker has *each* so many ranks.

    >>> _unit_sizes(Parallelism(tp=4, cp=4, dp=2), 4, 8)
    [(1, None), (2, <Axis.CP: 'cp'>)]
    """
    sizes: list[tuple[int, Axis | None]] = [(1, None)]
    for axis, span in (
        (Axis.TP, parallel.tp),
        (Axis.CP, parallel.tp * parallel.cp),
        (Axis.EP, parallel.tp * parallel.ep),
    ):
        # Groups that do not end where a worker ends are taken together until one does.
        size = lcm(sizes[-1][0] * each, span) // each
        if size > sizes[-1][0] and workers % size == 0:
            sizes.append((size, axis))
    return sizes


def _grid_of(parallel: Parallelism, units: int, ranks: int) -> list[Cell]:
    """Return the row and column of each of *units* of *ranks* ranks; rows are the groups to keep closer.

    Where a unit's ranks do not divide a pipeline stage, units are one row in their order.

    >>> _grid_of(Parallelism(tp=8, pp=2, dp=2), 4, 8)
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    stage = parallel.tp * parallel.cp * parallel.dp
    if stage % ranks:
        return [(0, unit) for unit in range(units)]
    width = stage // ranks
    places = [divmod(unit, width) for unit in range(units)]
    # A pipeline is the units of one column of stages, a data-parallel group those of one stage.
    if parallel.closer is Closer.DP:
        return places
    return [(data, stage_number) for stage_number, data in places]


Parts = Sequence[Sequence[Domain]]
"""The domains of each level, nodes to cluster; nodes in none of a level are in those of the level below."""


def parts_of(fleet: Fleet) -> Parts:
    """Return the domains of each level of *fleet* in fabric order, so that every node is in one of each."""
    parts: list[Sequence[Domain]] = [domains_at(fleet, 0)]
    for level in range(1, len(fleet.tiers) + 2):
        domains = domains_at(fleet, level)
        covered = sum(domain.end - domain.start for domain in domains)
        if covered < len(fleet.nodes):
            inside = {position for domain in domains for position in range(domain.start, domain.end)}
            outside = [part for part in parts[-1] if part.start not in inside]
            domains = sorted([*domains, *outside], key=lambda domain: domain.start)
        parts.append(domains)
    return parts


def stages_of(
    sizes: Sequence[tuple[int, Axis | None]], parts: Parts, places: Sequence[int], workers: int, widest: int
) -> list[Stage]:
    """Return the units of each of *sizes* with the closest level that holds all *workers* in such units.

    They have to be within one domain of the level *widest*, which has *places* for them.
    """
    stages = [Stage(1, None, 0, list(accumulate(places, initial=0)))]
    for size, axis in sizes[1:]:
        last = stages[-1]
        ratio, needed = size // last.workers, workers // size
        for level in range(last.level, widest + 1):
            counts = [0] * len(places)
            for part in parts[level]:
                counts[part.start] = last.within(part.start, part.end) // ratio
            stage = Stage(size, axis, level, list(accumulate(counts, initial=0)))
            if any(stage.within(part.start, part.end) >= needed for part in parts[widest]):
                stages.append(stage)
                break
    return stages


# Where others put a gang, given how many workers each node takes: first fit, and Kueue's topology-aware
# scheduling.
#
# They are our own implementations of what their projects publish. Each answers with the workers of every node
# that it uses, by position in fabric order, or None where it finds no place.

_START: Callable[[Domain], int] = attrgetter("start")
Answer = dict[int, int] | None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A domain or a node with its places."""

    level: int
    domain: Domain
    places: int


def _negative_places(candidate: _Candidate) -> int:
    return -candidate.places


def kueue_best_fit(parts: Parts, places: Sequence[int], workers: int) -> Answer:
    """Kueue's topology-aware scheduling, profile BestFit, with the node as its preferred level.

    From the closest level up, the smallest domain that holds the gang; where none does, the largest ones of
    the top level. Then downwards, level by level: the largest domains, and the smallest that takes what is
    left. Source: Kueue's documentation, "Topology Aware Scheduling", and KEP-2724.
    """
    tiers = parts[::-1]
    before = capacity_of(places).before
    found = _best_fit(tiers, before, workers, len(tiers) - 1)
    return None if found is None else {domain.start: count for domain, count in found}


def kueue_slices(parts: Parts, places: Sequence[int], slices: int, stage: Stage) -> Answer:
    """Kueue's rule for pods in *slices*, each within one domain (``podset-slice-required-topology``).

    *stage* says how many pods a slice has, at which level, and how many slices the domains of that level
    hold.
    """
    tiers = parts[::-1]
    finest = len(tiers) - 1 - stage.level
    found = _best_fit(tiers, stage.before, slices, finest)
    if found is None:
        return None
    before = capacity_of(places).before
    return {
        node.start: count
        for domain, held in found
        for node, count in _descend(
            tiers, before, _Candidate(finest, domain, 0), held * stage.workers, len(tiers) - 1
        )
    }


def _best_fit(
    tiers: Parts, before: Sequence[int], count: int, finest: int
) -> list[tuple[Domain, int]] | None:
    """Return the domains of the level *finest* that take *count* places, with the places taken in each."""
    for level in range(finest, -1, -1):
        fitting = [
            (held, number)
            for number, domain in enumerate(tiers[level])
            if (held := before[domain.end] - before[domain.start]) >= count
        ]
        if fitting:
            held, number = min(fitting)
            return list(_descend(tiers, before, _Candidate(level, tiers[level][number], held), count, finest))
    return None


def _descend(
    tiers: Parts,
    before: Sequence[int],
    candidate: _Candidate,
    count: int,
    finest: int,
) -> Iterator[tuple[Domain, int]]:
    if candidate.level == finest:
        yield candidate.domain, count
        return
    below = tiers[candidate.level + 1]
    first = bisect_left(below, candidate.domain.start, key=_START)
    last = bisect_left(below, candidate.domain.end, lo=first, key=_START)
    within = [
        _Candidate(candidate.level + 1, domain, before[domain.end] - before[domain.start])
        for domain in below[first:last]
    ]
    children = sorted(within, key=lambda child: (-child.places, child.domain.start))
    for index, child in enumerate(children):
        rest = children[index:]
        # The smallest that takes what is left, and of equals the first.
        if child.places >= count:
            smallest = rest[bisect_right(rest, -count, key=_negative_places) - 1]
            first_of_them = rest[bisect_left(rest, -smallest.places, key=_negative_places)]
            yield from _descend(tiers, before, first_of_them, count, finest)
            return
        if child.places:
            yield from _descend(tiers, before, child, child.places, finest)
        count -= child.places


def first_fit(places: Sequence[int], workers: int) -> Answer:
    """Fill the nodes in their order."""
    taken: dict[int, int] = {}
    for position, count in enumerate(places):
        if count:
            taken[position] = min(count, workers)
            workers -= taken[position]
            if not workers:
                return taken
    return None


# How far the groups of ranks of a placement are spread over the levels of the fabric.

Nodes = Sequence[int]
"""The position of each worker's node in fabric order."""


@dataclass(frozen=True, slots=True)
class _Members:
    """The workers of the groups along an axis: each different set of them, with how many groups have it."""

    groups: Groups
    sets: Mapping[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a fleet, the closest first: their names, and the domains of each."""

    names: Sequence[str]
    parts: Parts


def _group_places(
    parallel: Parallelism, levels: Levels, nodes: Nodes, first_fit: Nodes | None, kueue: Nodes | None
) -> tuple[GroupPlaces, ...]:
    """Return where the groups of *parallel* lie when the workers are on *nodes*.

    First fit and Kueue's rule put the workers on *first_fit* and *kueue*. Domains are counted at the coarsest
    level of which one of these placements takes several.
    """
    parts, each = levels.parts, parallel.ranks // len(nodes)
    reach = max(_reach(parts, taken) for taken in (nodes, first_fit, kueue) if taken)
    # At the level that holds everything all counts are 1; the next one tells placements apart.
    counted = max(reach - 1, 0)
    at = _Domains(parts)
    shown = []
    for groups in parallel.groups:
        members = _members(groups, each)
        others = [_spread(members, at.of(counted, taken)) if taken else None for taken in (first_fit, kueue)]
        shown.append(
            GroupPlaces(
                axis=groups.axis.value,
                size=groups.size,
                count=groups.count,
                within=levels.names[_within(members, parts, nodes)],
                level=levels.names[counted],
                spread=_spread(members, at.of(counted, nodes)),
                first_fit=others[0],
                kueue=others[1],
            )
        )
    return tuple(shown)


def spreads_at(parallel: Parallelism, parts: Parts, level: int, nodes: Nodes) -> dict[str, GroupSpread]:
    """Return the spread of the groups along each axis over the domains of *level*."""
    each, domains = parallel.ranks // len(nodes), _Domains(parts).of(level, nodes)
    return {groups.axis.value: _spread(_members(groups, each), domains) for groups in parallel.groups}


class _Domains:
    """The number of the domain that each position is in, by level."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._numbers: dict[int, list[int]] = {}

    def of(self, level: int, nodes: Nodes) -> list[int]:
        """Return the domain of each worker's node."""
        if level not in self._numbers:
            self._numbers[level] = [
                number for number, part in enumerate(self._parts[level]) for _ in range(part.start, part.end)
            ]
        return [self._numbers[level][node] for node in nodes]


def _reach(parts: Parts, nodes: Nodes) -> int:
    """Return the closest level with a domain that holds all *nodes*."""
    first, last = min(nodes), max(nodes)
    return next(
        level
        for level, domains in enumerate(parts)
        if any(part.start <= first and last < part.end for part in domains)
    )


def _within(members: _Members, parts: Parts, nodes: Nodes) -> int:
    """Return the closest level that holds every group by itself."""
    at = _Domains(parts)
    return next(level for level in range(len(parts)) if _spread(members, at.of(level, nodes)).most == 1)


def _spread(members: _Members, domains: Sequence[int]) -> GroupSpread:
    """Return the spread of groups whose workers are in *domains*."""
    counts = [
        (len({domains[worker] for worker in workers}), alike) for workers, alike in members.sets.items()
    ]
    return GroupSpread(
        max(count for count, _ in counts),
        sum(count * alike for count, alike in counts) / members.groups.count,
    )


def _members(groups: Groups, each: int) -> _Members:
    """Return the workers of *groups*, each of which runs *each* so many consecutive ranks."""
    sets: dict[tuple[int, ...], int] = {}
    if groups.stride % each == 0:
        # The ranks of a worker have the same fellow workers: one of them speaks for all.
        stride = groups.stride // each
        by_worker = Groups(groups.axis, groups.size, stride, groups.count // each)
        return _Members(groups, {tuple(by_worker.ranks(number)): each for number in range(by_worker.count)})
    for number in range(groups.count):
        ranks = groups.ranks(number)
        workers = tuple(sorted({rank // each for rank in ranks}))
        sets[workers] = sets.get(workers, 0) + 1
    return _Members(groups, sets)


# Why a gang with groups of ranks is placed as it is: a step for each axis, among those of every placement.

_CROSSING = frozenset({"pp", "dp"})


def _with_group_steps(
    answer: Placement, fleet: Fleet, groups: Sequence[GroupPlaces], *, exact: bool, fewest: bool
) -> Placement:
    """Return *answer* with its *groups*, and with their steps after the level's.

    *exact*: no spread is less; *fewest*: no fewer nodes of the domain hold the gang.
    """
    words = dict(zip(level_names(fleet), level_words(fleet), strict=True))

    def steps() -> Iterator[Step]:
        for step in answer.why:
            match step.criterion:
                case "level":
                    # The groups decide on the level, which a gang of other workers could have closer.
                    yield replace(step, bound="")
                    yield from _steps(groups, words, exact=exact)
                case "fits":
                    yield step
                case "left over" if step.bound:
                    yield replace(step, runner_up="", proven=True)
                case "nodes" if fewest:
                    yield step
                case _:
                    # Among the placements that are equally good for the groups, not all were compared.
                    yield replace(step, bound="", runner_up="", proven=False)

    return replace(answer, why=Steps(steps), groups=tuple(groups))


def _steps(groups: Sequence[GroupPlaces], words: dict[str, str], *, exact: bool) -> Iterator[Step]:
    for axis in groups:
        # A single domain is the least, and units are counted exactly.
        proven = exact or axis.axis not in _CROSSING or axis.spread.most == 1
        within = "the cluster" if axis.within == "cluster" else f"one {words[axis.within]}"
        touched = plural(axis.spread.most, words[axis.level])
        yield Step(
            criterion=axis.axis,
            chosen=f"each of {plural(axis.count, 'group')} within {within}"
            if axis.spread.most == 1
            else f"each of {plural(axis.count, 'group')} over {touched} at most",
            bound="no arrangement of the groups has less" if proven and axis.spread.most > 1 else "",
            proven=proven,
        )


_MOST_CANDIDATES = 16
"""Domains that hold the whole gang, of which each is tried."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit: the number of its first worker, and its place in the grid."""

    first: int
    cell: Cell


@dataclass(frozen=True, slots=True)
class _Arranged:
    """The node of each worker, and the first partition of the grid, None if no level is below the gang's."""

    nodes: tuple[int, ...]
    partition: Partition | None


def place_groups(
    demand: Demand, parallel: Parallelism, fleet: Fleet, capacity: Capacity, limits: LevelLimits
) -> Placement:
    """Return the placement of *demand*, which has a domain within *limits* that holds it, by its groups."""
    each = parallel.ranks // demand.workers
    parts = parts_of(fleet)
    sizes = _unit_sizes(parallel, demand.workers, each)
    stages = stages_of(sizes, parts, capacity.places, demand.workers, limits.widest)
    problem = Problem(
        fleet,
        capacity,
        demand.workers,
        demand.gpus,
        objective=demand.objective,
        closest=limits.closest,
    )
    layout = _Layout(problem, parallel, parts, tuple(stages))
    units = layout.units(each)
    level, candidates = _candidates(layout, len(units), limits)
    tried = [(layout.arranged(units, level, domain), domain) for domain in candidates[:_MOST_CANDIDATES]]
    scores = [layout.score(units, level, arranged, domain) for arranged, domain in tried]
    best = min(range(len(tried)), key=scores.__getitem__)
    arranged, domain = tried[best]
    exact = len(candidates) == len(tried) and all(
        other.partition is None or other.partition.exact for other, _ in tried
    )
    chosen = DomainChoice(
        pick=layout.pick_of(arranged.nodes, domain),
        level=level,
        rivals=len(candidates),
        next_count=0,
        exact=False,
    )
    answer = placement(demand, fleet, capacity, chosen, _workers_of(arranged.nodes))
    others = map(_by_rule, _rules(layout))
    levels = Levels(level_names(fleet), parts)
    groups = _group_places(parallel, levels, arranged.nodes, *others)
    least = fewest(capacity, domain, demand.workers)
    return _with_group_steps(answer, fleet, groups, exact=exact, fewest=len(answer.shares) == least)


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
        cells = _grid_of(self.parallel, self.problem.workers // size, size * each)
        return [_Unit(number * size, cell) for number, cell in enumerate(cells)]

    def arranged(self, units: Sequence[_Unit], level: int, domain: Domain) -> _Arranged:
        """Return the nodes of *units* in *domain* of *level*, which holds them."""
        first: list[Partition] = []
        placed = dict(self._descend(len(self.stages) - 1, units, level, domain, first))
        nodes = tuple(placed[worker] for worker in range(self.problem.workers))
        return _Arranged(nodes, first[0] if first else None)

    def score(self, units: Sequence[_Unit], level: int, arranged: _Arranged, domain: Domain) -> "_Score":
        """Return the score of *arranged*: spreads, the coarsest first, then what counts without groups."""
        cells = [unit.cell for unit in units]
        firsts, domains = [arranged.nodes[unit.first] for unit in units], _Domains(self.parts)
        spreads = [spread_of(cells, domains.of(finer, firsts)) for finer in range(level - 1, -1, -1)]
        found = self.pick_of(arranged.nodes, domain)
        room = self.problem.capacity.within(domain)
        return spreads, len(found.nodes), found.score, room, domain.start

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
        return picked(domain, offers, problem.goal(len(counts), domain), complete=False)

    def _descend(
        self, stage: int, units: Sequence[_Unit], level: int, domain: Domain, first: list[Partition]
    ) -> Iterator[tuple[int, int]]:
        """Yield each worker of *units* with its node in *domain*; *first* gets the first partition."""
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
        """What a domain that a pipeline, or a data-parallel group, touches counts; None if one goes first."""
        return self.parallel.traffic if self.parallel.closer is Closer.BOTH else None

    def _below(self, level: int, domain: Domain) -> list[Domain]:
        """Return the domains of the next closer level in *domain*: with equal room the better first."""
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
        """Return the nodes for *units* of one worker if each takes at most one, so that any order is as good.

        Empty where nodes take more.
        """
        places = self.problem.capacity.places[domain.start : domain.end]
        if max(places) > 1:
            return ()
        problem = replace(self.problem, workers=len(units))
        count = fewest(problem.capacity, domain, len(units))
        return pick(problem, domain, count, Effort(EFFORT)).nodes


_Score = tuple[list[Spread], int, Score, int, int]


def _workers_of(nodes: Sequence[int]) -> dict[int, tuple[int, ...]]:
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
