"""How far the groups of ranks of a placement are spread over the levels of the fabric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.plan.parallelism import Groups, Parallelism
from arena_topo.model.plan.placement import GroupPlaces, GroupSpread
from arena_topo.planner.groups.units import Parts

Nodes = Sequence[int]
"""The position of each worker's node in fabric order."""


@dataclass(frozen=True, slots=True)
class _Members:
    """The workers of the groups along an axis: each different set of workers, with how many groups have it."""

    groups: Groups
    sets: Mapping[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a fleet, the closest first: their names, and the domains of each."""

    names: Sequence[str]
    parts: Parts


def group_places(
    parallel: Parallelism, levels: Levels, nodes: Nodes, first_fit: Nodes | None, kueue: Nodes | None
) -> tuple[GroupPlaces, ...]:
    """Return where the groups of *parallel* lie when the workers are on *nodes*.

    First fit and Kueue's rule put the workers on *first_fit* and *kueue*. Domains are counted at the coarsest level of which
    one of these placements takes several.
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
