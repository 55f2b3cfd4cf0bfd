"""What would give a gang a place that has none now: a smaller gang, another shape or level, the end of other jobs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.nodes.fit import capacity_for, reshaped, serves_resource
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import (
    Capacity,
    LevelLimits,
    capacity_of,
    closest_level,
    domains_at,
    level_words,
)

# For each job that is tried, the places of the whole fleet are added up once more.
_MOST_JOBS = 200
_MOST_NAMED = 3


def remedies(demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits) -> tuple[str, ...]:
    """Return what would make *demand* fit, the least change first; each was tried on the snapshot."""
    return (
        *_other_resource(demand, fleet),
        *_other_level(demand, fleet, capacity, limits),
        *_fewer(demand, fleet, capacity, limits),
        *_other_shape(demand, fleet, limits),
        *_ends(demand, fleet, limits),
    )


def best_of_level(fleet: Fleet, capacity: Capacity, level: int) -> tuple[int, str]:
    """Return the most places that one domain of *level* has, and that domain's name."""
    if level == 0:
        most = max(capacity.places, default=0)
        return most, fleet.nodes[list(capacity.places).index(most)].name if most else ""
    best = max(domains_at(fleet, level), key=capacity.within, default=None)
    return (capacity.within(best), best.name) if best else (0, "")


def _other_resource(demand: Demand, fleet: Fleet) -> Iterator[str]:
    """Yield that the vendor's GPUs are requested by --gputopology, where the nodes offer no others."""
    offered = {state.resource for state in fleet.states if state.total}
    if demand.gpus and demand.gpu_resource == NVIDIA_GPU and offered == {ACK_GPU}:
        yield f"--gputopology requests the GPUs as {ACK_GPU}, which is how the nodes offer them"


def _other_level(demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits) -> Iterator[str]:
    # The allowed levels have no place, so only wider ones are tried.
    level = closest_level(
        fleet, capacity, demand.workers, LevelLimits(limits.widest + 1, len(fleet.tiers) + 1)
    )
    if demand.required_level and level is not None:
        words = level_words(fleet)
        flag = f"--require-topology={words[level]}" if level <= len(fleet.tiers) else "no --require-topology"
        # There are several of each tier, but one cluster.
        one = "one" if level <= len(fleet.tiers) else "the"
        yield f"{flag}: all {demand.workers} workers fit within {one} {words[level]}"


def _fewer(demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits) -> Iterator[str]:
    most, name = best_of_level(fleet, capacity, limits.widest)
    if 0 < most < demand.workers:
        where = "" if limits.widest > len(fleet.tiers) else f" in {level_words(fleet)[limits.widest]} {name}"
        yield f"--workers={most} fits{where}"


def _other_shape(demand: Demand, fleet: Fleet, limits: LevelLimits) -> Iterator[str]:
    """Yield the shape nearest to the one asked that has as many GPUs and fits; its pods ask in proportion."""
    if not demand.gpus:
        return
    ranks = demand.workers * demand.gpus
    sizes = sorted(
        (gpus for gpus in range(1, min(ranks, demand.gpus) + 1) if ranks % gpus == 0 and gpus != demand.gpus),
        key=lambda gpus: -gpus,
    )
    for gpus in sizes:
        other = reshaped(demand, gpus)
        capacity = capacity_for(other, fleet)
        if closest_level(fleet, capacity, other.workers, limits) is not None:
            yield f"--workers={other.workers} --gpus={gpus} fits: as many GPUs, in smaller workers"
            return


@dataclass(frozen=True, slots=True)
class Ending:
    """The jobs whose end would give a gang its place.

    Each of ``alone`` is enough by itself, the smallest first; where none is, all of ``together`` are.
    """

    alone: tuple[str, ...] = ()
    together: tuple[str, ...] = ()


def ending_jobs(demand: Demand, fleet: Fleet, limits: LevelLimits) -> Ending:
    """Return the jobs whose end would free the GPUs that *demand* lacks within *limits*."""
    if not demand.gpus:
        return Ending()
    besides_gpus = capacity_for(replace(demand, gpus=0), fleet).places
    now = capacity_for(demand, fleet).places

    def fits(freed: Mapping[int, int]) -> bool:
        after = capacity_of(_places_after(demand, fleet, now, besides_gpus, freed))
        return closest_level(fleet, after, demand.workers, limits) is not None

    jobs = _jobs(fleet)[:_MOST_JOBS]
    alone = tuple(name for name, gpus_by_node in jobs if fits(gpus_by_node))
    if alone:
        return Ending(alone=alone)
    # The largest first, so that few jobs have to end.
    return Ending(together=_together(sorted(jobs, key=lambda job: -sum(job[1].values())), fits))


def _ends(demand: Demand, fleet: Fleet, limits: LevelLimits) -> Iterator[str]:
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
    for ended, (_, gpus_by_node) in enumerate(jobs, 1):
        for position, gpus in gpus_by_node.items():
            freed[position] = freed.get(position, 0) + gpus
        if fits(freed):
            return tuple(name for name, _ in jobs[:ended])
    return ()


def _jobs(fleet: Fleet) -> list[tuple[str, dict[int, int]]]:
    """Return the holders of GPUs by name, the smallest first, each with the GPUs that it holds node by node."""
    by_name: dict[str, dict[int, int]] = {}
    for position, node in enumerate(fleet.nodes):
        for holder in node.holders:
            kind = "job" if holder.job else "pod"
            gpus_by_node = by_name.setdefault(f"{kind} {holder.namespace}/{holder.job or holder.pod}", {})
            gpus_by_node[position] = gpus_by_node.get(position, 0) + holder.gpus
    return sorted(by_name.items(), key=lambda job: (sum(job[1].values()), job[0]))


def _places_after(
    demand: Demand, fleet: Fleet, now: Sequence[int], besides_gpus: Sequence[int], freed: Mapping[int, int]
) -> list[int]:
    """Return the places of every node once *freed* GPUs are given back; *now* are those that it has.

    *besides_gpus* are the places that all other resources leave.
    """
    after = list(now)
    for position, gpus in freed.items():
        state = fleet.state(position)
        # GPUs that the node hands out by another resource do not help, even when they are free. Neither is it known whether
        # those are on NUMA nodes where the kubelet would admit a worker.
        if serves_resource(demand, state) and not state.alignment:
            with_gpus = min(state.free + gpus, state.total) // demand.gpus
            after[position] = max(now[position], min(with_gpus, besides_gpus[position]))
    return after
