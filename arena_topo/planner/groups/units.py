"""Which workers belong together, and how many of such units the domains of a fleet hold.

The groups of ``tp``, ``cp`` and ``ep`` are consecutive ranks, and exchange by far the most data. So consecutive workers make
a *unit*, which is to lie in one domain of the closest level that can hold all units. What remains are the crossing groups of
``pp`` and ``dp``: the rows and the columns of a grid of units.

With tp=16, dp=4, pp=2 and workers of 8 GPUs, two workers are a unit, and the eight units a grid of 4 x 2. No node holds
two such workers, so each unit lies in one rack: a rack of five such nodes has room for two units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import lcm

from arena_topo.model.plan.parallelism import Axis, Closer, Parallelism
from arena_topo.planner.groups.partition import Cell
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import domains_at


@dataclass(frozen=True, slots=True)
class Stage:
    """A unit of so many consecutive ``workers`` that belong together because of ``axis``, and where it has room.

    Each is to lie in one domain of ``level``. ``before`` adds up, by position in fabric order, the units that the domains of
    that level hold: each counts at its first node.
    """

    workers: int
    axis: Axis | None
    level: int
    before: Sequence[int]

    def within(self, start: int, end: int) -> int:
        """Return how many units the nodes from *start* up to *end* hold; they are whole domains of the level."""
        return self.before[end] - self.before[start]


def unit_sizes(parallel: Parallelism, workers: int, each: int) -> list[tuple[int, Axis | None]]:
    """Return the workers of each kind of unit, the smallest first, where a worker has *each* so many ranks.

    >>> unit_sizes(Parallelism(tp=4, cp=4, dp=2), 4, 8)
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


def grid_of(parallel: Parallelism, units: int, ranks: int) -> list[Cell]:
    """Return the row and the column of each of *units* of so many *ranks*; rows are the groups that get the closer places.

    Where a unit's ranks do not divide a pipeline stage, units are one row in their order.

    >>> grid_of(Parallelism(tp=8, pp=2, dp=2), 4, 8)
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
"""The domains of each level, from the nodes to the cluster; nodes outside of a level's are in those of the level below."""


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
