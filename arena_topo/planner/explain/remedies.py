"""What would give a gang a place that has none now: a smaller gang, another shape or level, the end of other jobs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fit import offers, places
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import Bounds, Room, closest_level, domains, room, words
from arena_topo.planner.nodes.shapes import reshaped

_MOST_JOBS = 200
_MOST_NAMED = 3


def remedies(demand: Demand, fleet: Fleet, space: Room, limits: Bounds) -> tuple[str, ...]:
    """Return what would make *demand* fit, the least change first; each was tried on the snapshot."""
    found = [*_other_level(demand, fleet, space, limits), *_fewer(demand, fleet, space, limits)]
    found += _other_shape(demand, fleet, limits)
    return (*found, *_ends(demand, fleet, limits))


def best_of_level(fleet: Fleet, space: Room, level: int) -> tuple[int, str]:
    """Return the most places that one domain of *level* has, and that domain's name."""
    if level == 0:
        most = max(space.places, default=0)
        return most, fleet.nodes[list(space.places).index(most)].name if most else ""
    best = max(domains(fleet, level), key=space.within, default=None)
    return (space.within(best), best.name) if best else (0, "")


def _other_level(demand: Demand, fleet: Fleet, space: Room, limits: Bounds) -> Iterator[str]:
    level = closest_level(fleet, space, demand.workers, Bounds(limits.widest + 1, len(fleet.tiers) + 1))
    if demand.required_level and level is not None:
        known = words(fleet)
        flag = f"--require-topology={known[level]}" if level <= len(fleet.tiers) else "no --require-topology"
        yield f"{flag}: all {demand.workers} workers fit within one {known[level]}"


def _fewer(demand: Demand, fleet: Fleet, space: Room, limits: Bounds) -> Iterator[str]:
    most, name = best_of_level(fleet, space, limits.widest)
    if 0 < most < demand.workers:
        where = "" if limits.widest > len(fleet.tiers) else f" in {words(fleet)[limits.widest]} {name}"
        yield f"--workers={most} fits{where}"


def _other_shape(demand: Demand, fleet: Fleet, limits: Bounds) -> Iterator[str]:
    """Yield the shape nearest to the one asked that has as many GPUs and fits; its pods ask in proportion."""
    if not demand.gpus:
        return
    ranks = demand.workers * demand.gpus
    shapes = sorted(
        (gpus for gpus in range(1, min(ranks, demand.gpus) + 1) if ranks % gpus == 0 and gpus != demand.gpus),
        key=lambda gpus: -gpus,
    )
    for gpus in shapes:
        other = reshaped(demand, gpus)
        space = room(places(other, fleet))
        if closest_level(fleet, space, other.workers, limits) is not None:
            yield f"--workers={other.workers} --gpus={gpus} fits: as many GPUs, in smaller workers"
            return


@dataclass(frozen=True, slots=True)
class Ending:
    """The jobs whose end would give a gang its place.

    Each of ``alone`` is enough by itself, the smallest first; where none is, all of ``together`` are.
    """

    alone: tuple[str, ...] = ()
    together: tuple[str, ...] = ()


def ending_jobs(demand: Demand, fleet: Fleet, limits: Bounds) -> Ending:
    """Return the jobs whose end would free the GPUs that *demand* lacks within *limits*."""
    if not demand.gpus:
        return Ending()
    others = places(replace(demand, gpus=0), fleet)
    now = places(demand, fleet)

    def fits(freed: Mapping[int, int]) -> bool:
        counted = room(_freed(demand, fleet, now, others, freed))
        return closest_level(fleet, counted, demand.workers, limits) is not None

    jobs = _jobs(fleet)[:_MOST_JOBS]
    alone = tuple(name for name, held in jobs if fits(held))
    if alone:
        return Ending(alone=alone)
    return Ending(together=_together(sorted(jobs, key=lambda job: -sum(job[1].values())), fits))


def _ends(demand: Demand, fleet: Fleet, limits: Bounds) -> Iterator[str]:
    """Yield the end of other jobs as advice."""
    jobs = ending_jobs(demand, fleet, limits)
    if jobs.alone:
        first, *others = jobs.alone[:_MOST_NAMED]
        instead = f" (or {', '.join(others)})" if others else ""
        yield f"it fits when {first} ends{instead}"
    elif jobs.together:
        more = len(jobs.together) - _MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        yield f"it fits when {', '.join(jobs.together[:_MOST_NAMED])}{rest} end"


def _together(
    jobs: Sequence[tuple[str, Mapping[int, int]]], fits: Callable[[Mapping[int, int]], bool]
) -> tuple[str, ...]:
    """Return the first of *jobs* that are enough when all of them end; none where even all are not."""
    freed: dict[int, int] = {}
    for ended, (_, held) in enumerate(jobs, 1):
        for at, gpus in held.items():
            freed[at] = freed.get(at, 0) + gpus
        if fits(freed):
            return tuple(name for name, _ in jobs[:ended])
    return ()


def _jobs(fleet: Fleet) -> list[tuple[str, dict[int, int]]]:
    """Return the holders of GPUs by name, the smallest first, each with the GPUs that it holds node by node."""
    found: dict[str, dict[int, int]] = {}
    for at, node in enumerate(fleet.nodes):
        for holder in node.holders:
            kind = "job" if holder.job else "pod"
            held = found.setdefault(f"{kind} {holder.namespace}/{holder.job or holder.pod}", {})
            held[at] = held.get(at, 0) + holder.gpus
    return sorted(found.items(), key=lambda job: (sum(job[1].values()), job[0]))


def _freed(
    demand: Demand, fleet: Fleet, now: Sequence[int], others: Sequence[int], freed: Mapping[int, int]
) -> list[int]:
    """Return the places when *freed* GPUs are given back, node by node."""
    after = list(now)
    for at, gpus in freed.items():
        state = fleet.state(at)
        if not offers(demand, state):
            continue
        after[at] = max(now[at], min((min(state.free + gpus, state.total)) // demand.gpus, others[at]))
    return after
