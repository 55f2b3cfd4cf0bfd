"""Moves of whole jobs that would make free GPUs usable for larger ones: advice, each tried on the snapshot.

Greedy: of the smallest jobs the one is moved whose move gains most, then the next on what that leaves. What counts is
the number of GPUs that workers of every usual shape could take, and those that a gang of whole nodes could take in one
domain of each level. A job is moved only where it loses neither level nor nodes nor predicted busbw. The cpu and memory
of single pods are not in a snapshot, so only GPUs and pod places are checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from arena_topo.model.cluster.snapshot import Holder
from arena_topo.model.plan.fragmentation import Gain, JobShare, Move
from arena_topo.planner.advise.free_capacity import free_by_node, largest_by_level, usual_demand, usual_sizes
from arena_topo.planner.gpus.machine import indices_of
from arena_topo.planner.nodes.domain_choice import choose_domain
from arena_topo.planner.nodes.fit import capacity_for
from arena_topo.planner.nodes.fleet import Fleet, changed, requested_after, without_holders
from arena_topo.planner.nodes.levels import LevelLimits, capacity_of, closest_level, level_names, spanned
from arena_topo.planner.nodes.node_choice import Pick, Problem
from arena_topo.planner.nodes.node_state import nic_rate

_MOST_MOVES = 3
# Each job that is tried costs a pass over all nodes, so fewer jobs are tried in larger fleets.
_MOST_JOBS = 40
_MOST_LOOKS = 400_000


@dataclass(frozen=True, slots=True)
class _Job:
    """A job whose workers are alike: its pods by the position of their node."""

    name: str
    pods: tuple[tuple[int, Holder], ...]

    @property
    def gpus(self) -> int:
        return self.pods[0][1].gpus

    @property
    def holders_by_node(self) -> dict[int, list[Holder]]:
        by_node: dict[int, list[Holder]] = {}
        for position, holder in self.pods:
            by_node.setdefault(position, []).append(holder)
        return by_node


@dataclass(frozen=True, slots=True)
class _Usable:
    """What a fleet has places for: workers of each size in all, and the largest gangs of each size by level."""

    sizes: tuple[int, ...]
    total: tuple[int, ...]
    in_one: tuple[tuple[int, ...], ...]

    @property
    def score(self) -> int:
        """GPUs that can be used, summed over the sizes; the largest size counts at every level.

        Two nodes with four free GPUs each score, for the sizes 4 and 8 and the levels node and cluster, 2 x 4 + 0
        and nothing for gangs of 8. Once one job of four GPUs has moved onto the other's node, the free node scores
        2 x 4 + 1 x 8 and 8 more for each of the two levels.
        """
        usable = sum(gpus * count for gpus, count in zip(self.sizes, self.total, strict=True))
        return usable + sum(self.sizes[-1] * count for count in self.in_one[-1])


def moves(fleet: Fleet) -> tuple[Move, ...]:
    """Return the moves that help most, one after the other, none where no move helps."""
    advised: list[Move] = []
    moved: set[str] = set()
    sizes = usual_sizes(fleet)
    while sizes and len(advised) < _MOST_MOVES:
        before = _usable(fleet, sizes)
        tried = [
            (_usable(after, sizes), job, pick, after)
            for job in _movable(fleet, moved)
            for pick, after in _targets(fleet, job)
        ]
        best = max(tried, key=lambda attempt: attempt[0].score, default=None)
        # A move that gains nothing now might prepare for one that does; greedy advice stops here.
        if best is None or best[0].score <= before.score:
            break
        usable, job, pick, after = best
        advised.append(_move(fleet, job, pick, _gains(fleet, before, usable)))
        moved.add(job.name)
        fleet = after
    return tuple(advised)


def _movable(fleet: Fleet, moved: set[str]) -> list[_Job]:
    """Return the smallest jobs that can be moved exactly: alike workers, and it is known which GPUs they hold."""
    pods: dict[str, list[tuple[int, Holder]]] = {}
    for position, node in enumerate(fleet.nodes):
        for holder in node.holders:
            if holder.job and holder.gpus:
                pods.setdefault(f"{holder.namespace}/{holder.job}", []).append((position, holder))
    jobs = [_Job(name, tuple(entries)) for name, entries in pods.items() if name not in moved]
    movable = [job for job in jobs if _is_exact(fleet, job)]
    movable.sort(key=lambda job: (len(job.pods) * job.gpus, job.name))
    return movable[: max(3, min(_MOST_JOBS, _MOST_LOOKS // max(len(fleet.nodes), 1)))]


def _is_exact(fleet: Fleet, job: _Job) -> bool:
    # Where a node says only how many of its GPUs are in use, a move needs no indices.
    alike = len({holder.gpus for _, holder in job.pods}) == 1
    return alike and all(
        fleet.nodes[position].used is None
        or (holder.indices is not None and len(holder.indices) == holder.gpus)
        for position, holder in job.pods
    )


def _targets(fleet: Fleet, job: _Job) -> Iterator[tuple[Pick, Fleet]]:
    """Yield the places that *job* could go to without loss, each with the fleet after the move.

    Holes are filled before whole nodes are opened, and both ways of choosing nodes are tried: those with the best
    bandwidth for the job, and those where it does least damage to what stays free.
    """
    without = changed(
        fleet,
        {
            position: without_holders(fleet.nodes[position], holders)
            for position, holders in job.holders_by_node.items()
        },
    )
    # Pods are listed in fabric order, so no two of them are farther apart than the first and the last.
    old_level, _ = spanned(fleet, job.pods[0][0], job.pods[-1][0])
    demand = replace(usual_demand(fleet, job.gpus), workers=len(job.pods))
    everywhere = capacity_for(demand, without)
    states = [without.states[state_id] for state_id in without.state_ids]
    holes = [
        0 if state.free == state.total else count
        for count, state in zip(everywhere.places, states, strict=True)
    ]
    seen: set[tuple[tuple[int, int], ...]] = set()
    for capacity in (capacity_of(holes), everywhere):
        level = closest_level(without, capacity, demand.workers, LevelLimits(0, old_level))
        if level is None:
            continue
        for bandwidth_sensitive in (True, False):
            problem = Problem(without, capacity, demand.workers, job.gpus, bandwidth_sensitive)
            pick = choose_domain(problem, level).pick
            key = tuple(
                (position, offer.workers) for position, offer in zip(pick.nodes, pick.offers, strict=True)
            )
            # Both capacities and both ways often lead to the same nodes.
            if key not in seen and _is_no_loss(fleet, job, pick):
                seen.add(key)
                yield pick, _with(without, job, pick)


def _is_no_loss(fleet: Fleet, job: _Job, pick: Pick) -> bool:
    holders_by_node = job.holders_by_node
    if len(pick.nodes) > len(holders_by_node):
        return False
    before = [
        (position, len(holders), _current_busbw(fleet, position, holders))
        for position, holders in holders_by_node.items()
    ]
    after = [
        (
            position,
            offer.workers,
            offer.choice.busbw if offer.choice and offer.workers * job.gpus > 1 else None,
        )
        for position, offer in zip(pick.nodes, pick.offers, strict=True)
    ]
    return _slowest(fleet, job, after) >= _slowest(fleet, job, before)


def _slowest(fleet: Fleet, job: _Job, parts: Sequence[tuple[int, int, float | None]]) -> float:
    """Return the lowest rate of *parts* (node, workers, busbw inside), NICs counted where there are several."""
    inside = [rate for _, _, rate in parts if rate is not None]
    across = [nic_rate(fleet.state(position), workers * job.gpus) for position, workers, _ in parts]
    return min([*inside, *(across if len(parts) > 1 else [])], default=inf)


def _current_busbw(fleet: Fleet, position: int, holders: Sequence[Holder]) -> float | None:
    """Return the busbw of the GPUs that *holders* have on the node, None for one GPU or where it is not known."""
    machine, node = fleet.state(position).machine, fleet.nodes[position]
    indices = {index for holder in holders for index in holder.indices or ()}
    if machine is None or len(indices) < 2:
        return None
    return machine.busbw(sum(1 << i for i, gpu in enumerate(node.gpus) if gpu.index in indices))


def _with(fleet: Fleet, job: _Job, pick: Pick) -> Fleet:
    # The pods are alike, so it does not matter which of them goes where.
    pods = iter(job.pods)
    nodes = {}
    for position, offer in zip(pick.nodes, pick.offers, strict=True):
        node = fleet.nodes[position]
        gpus = indices_of(node, offer.choice.order) if offer.choice else None
        holders = tuple(
            replace(
                next(pods)[1],
                indices=None if gpus is None else gpus[worker * job.gpus : (worker + 1) * job.gpus],
            )
            for worker in range(offer.workers)
        )
        nodes[position] = replace(
            node,
            requested=requested_after(node, offer.workers * job.gpus, offer.workers),
            used=node.used | set(gpus) if node.used is not None and gpus is not None else None,
            holders=(*node.holders, *holders),
        )
    return changed(fleet, nodes)


def _usable(fleet: Fleet, sizes: tuple[int, ...]) -> _Usable:
    free = free_by_node(fleet)
    places = [[count // gpus for count in free] for gpus in sizes]
    return _Usable(
        sizes, tuple(map(sum, places)), tuple(largest_by_level(fleet, by_node) for by_node in places)
    )


def _gains(fleet: Fleet, before: _Usable, after: _Usable) -> tuple[Gain, ...]:
    """Return what more fits, the largest size first: in all, and at each level in one domain."""
    gains = []
    for index in reversed(range(len(before.sizes))):
        levels = zip(
            ("", *level_names(fleet)[:-1]),
            (before.total[index], *before.in_one[index]),
            (after.total[index], *after.in_one[index]),
            strict=False,
        )
        gains += [Gain(before.sizes[index], level, old, new) for level, old, new in levels if new > old]
    return tuple(gains)


def _move(fleet: Fleet, job: _Job, pick: Pick, gains: tuple[Gain, ...]) -> Move:
    source = tuple(
        JobShare(fleet.nodes[position].name, sum(holder.gpus for holder in holders), _indices(holders))
        for position, holders in sorted(job.holders_by_node.items())
    )
    target = tuple(
        JobShare(
            fleet.nodes[position].name,
            offer.workers * job.gpus,
            tuple(sorted(indices_of(fleet.nodes[position], offer.choice.order))) if offer.choice else None,
        )
        for position, offer in zip(pick.nodes, pick.offers, strict=True)
    )
    return Move(job.name, len(job.pods), job.gpus, source, target, gains)


def _indices(holders: Sequence[Holder]) -> tuple[int, ...] | None:
    if any(holder.indices is None for holder in holders):
        return None
    return tuple(sorted(index for holder in holders for index in holder.indices or ()))
