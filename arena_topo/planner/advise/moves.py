"""Moves of whole jobs that would make free GPUs usable for larger ones: advice, each tried on the snapshot.

Greedy: of the smallest jobs the one is moved whose move gives most, then the next on what that leaves. What counts is
the number of GPUs that workers of every usual shape could take, and those that a gang of whole nodes could take in one
domain of each level. A job is moved only where it loses neither level nor nodes nor predicted busbw. The cpu and memory
of single pods are not in a snapshot, so that only GPUs and pod places are checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from arena_topo.model.cluster.snapshot import GpuNode, Holder
from arena_topo.model.plan.fragmentation import Gain, Move, Part
from arena_topo.planner.advise.free_room import free_by_node, largest, shapes, usual
from arena_topo.planner.gpus.node_machine import indices_of
from arena_topo.planner.nodes.domain_choice import choose
from arena_topo.planner.nodes.fit import places
from arena_topo.planner.nodes.fleet import Fleet, changed
from arena_topo.planner.nodes.levels import Bounds, closest_level, names, room, spanned
from arena_topo.planner.nodes.node_choice import Pick, Problem
from arena_topo.planner.nodes.offers import Offers, nics

_MOST_MOVES = 3
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
    def nodes(self) -> dict[int, list[Holder]]:
        found: dict[int, list[Holder]] = {}
        for at, holder in self.pods:
            found.setdefault(at, []).append(holder)
        return found


@dataclass(frozen=True, slots=True)
class _Room:
    """What a fleet has room for: the largest gangs of each shape by level, and places in all."""

    shapes: tuple[int, ...]
    total: tuple[int, ...]
    in_one: tuple[tuple[int, ...], ...]

    @property
    def score(self) -> int:
        """GPUs that can be used, summed over the shapes; the largest shape counts at every level."""
        usable = sum(gpus * count for gpus, count in zip(self.shapes, self.total, strict=True))
        return usable + sum(self.shapes[-1] * count for count in self.in_one[-1])


def moves(fleet: Fleet) -> tuple[Move, ...]:
    """Return the moves that help most, one after the other, none where no move helps."""
    found: list[Move] = []
    moved: set[str] = set()
    sizes = shapes(fleet)
    while sizes and len(found) < _MOST_MOVES:
        before = _room(fleet, sizes)
        tried = [
            (_room(after, sizes), job, pick, after)
            for job in _movable(fleet, moved)
            for pick, after in _targets(fleet, job)
        ]
        best = max(tried, key=lambda each: each[0].score, default=None)
        if best is None or best[0].score <= before.score:
            break
        found.append(_move(fleet, best[1], best[2], _gains(fleet, before, best[0])))
        moved.add(best[1].name)
        fleet = best[3]
    return tuple(found)


def _movable(fleet: Fleet, moved: set[str]) -> list[_Job]:
    """Return the smallest jobs that can be moved exactly: alike workers, and it is told which GPUs they hold."""
    pods: dict[str, list[tuple[int, Holder]]] = {}
    for at, node in enumerate(fleet.nodes):
        for holder in node.holders:
            if holder.job and holder.gpus:
                pods.setdefault(f"{holder.namespace}/{holder.job}", []).append((at, holder))
    jobs = [_Job(name, tuple(each)) for name, each in pods.items() if name not in moved]
    able = [job for job in jobs if _is_exact(fleet, job)]
    able.sort(key=lambda job: (len(job.pods) * job.gpus, job.name))
    return able[: max(3, min(_MOST_JOBS, _MOST_LOOKS // max(len(fleet.nodes), 1)))]


def _is_exact(fleet: Fleet, job: _Job) -> bool:
    alike = len({holder.gpus for _, holder in job.pods}) == 1
    return alike and all(
        fleet.nodes[at].used is None or (holder.indices is not None and len(holder.indices) == holder.gpus)
        for at, holder in job.pods
    )


def _targets(fleet: Fleet, job: _Job) -> Iterator[tuple[Pick, Fleet]]:
    """Yield the places that *job* could go to without loss, each with the fleet after the move.

    Holes are filled before whole nodes are opened, and both ways of choosing GPUs are tried: the best for the job,
    and those whose leaving hurts least.
    """
    without = changed(fleet, {at: _without(fleet.nodes[at], held) for at, held in job.nodes.items()})
    had_level, _ = spanned(fleet, job.pods[0][0], job.pods[-1][0])
    demand = replace(usual(fleet, job.gpus), workers=len(job.pods))
    counted = places(demand, without)
    whole = [without.state(at).free == without.state(at).total for at in range(len(counted))]
    holes = [0 if opened else count for count, opened in zip(counted, whole, strict=True)]
    seen: set[tuple[tuple[int, int], ...]] = set()
    for space in (room(holes), room(counted)):
        level = closest_level(without, space, demand.workers, Bounds(0, had_level))
        if level is None:
            continue
        for matters in (True, False):
            problem = Problem(demand.workers, space, Offers(without, job.gpus, matters=matters))
            pick = choose(problem, level).pick
            key = tuple((at, offer.workers) for at, offer in zip(pick.nodes, pick.offers, strict=True))
            if key not in seen and _is_no_loss(fleet, job, pick):
                seen.add(key)
                yield pick, _with(without, job, pick)


def _is_no_loss(fleet: Fleet, job: _Job, pick: Pick) -> bool:
    if len(pick.nodes) > len(job.nodes):
        return False
    had = [(at, len(held), _held_busbw(fleet, at, held)) for at, held in job.nodes.items()]
    gets = [
        (at, offer.workers, offer.choice.busbw if offer.choice and offer.workers * job.gpus > 1 else None)
        for at, offer in zip(pick.nodes, pick.offers, strict=True)
    ]
    return _slowest(fleet, job, gets) >= _slowest(fleet, job, had)


def _slowest(fleet: Fleet, job: _Job, parts: Sequence[tuple[int, int, float | None]]) -> float:
    """Return the lowest rate of *parts* (node, workers, busbw inside), NICs counted where there are several."""
    inside = [rate for _, _, rate in parts if rate is not None]
    across = [nics(fleet.state(at), workers * job.gpus) for at, workers, _ in parts] if len(parts) > 1 else []
    return min([*inside, *across], default=inf)


def _held_busbw(fleet: Fleet, at: int, held: Sequence[Holder]) -> float | None:
    """Return the busbw of what *held* has on the node, None for one GPU or where it is not known."""
    machine, node = fleet.state(at).machine, fleet.nodes[at]
    indices = {index for holder in held for index in holder.indices or ()}
    if machine is None or len(indices) < 2:
        return None
    return machine.busbw(sum(1 << at for at, gpu in enumerate(node.gpus) if gpu.index in indices))


def _without(node: GpuNode, held: Sequence[Holder]) -> GpuNode:
    count = sum(holder.gpus for holder in held)
    freed = {index for holder in held for index in holder.indices or ()}
    return replace(
        node,
        requested=_requested(node, -count, -len(held)),
        used=None if node.used is None else node.used - freed,
        holders=tuple(each for each in node.holders if each not in held),
    )


def _with(fleet: Fleet, job: _Job, pick: Pick) -> Fleet:
    pods = iter(job.pods)
    nodes = {}
    for at, offer in zip(pick.nodes, pick.offers, strict=True):
        node = fleet.nodes[at]
        gpus = indices_of(node, offer.choice.order) if offer.choice else None
        holders = tuple(
            replace(
                next(pods)[1],
                indices=None if gpus is None else gpus[number * job.gpus : (number + 1) * job.gpus],
            )
            for number in range(offer.workers)
        )
        nodes[at] = replace(
            node,
            requested=_requested(node, offer.workers * job.gpus, offer.workers),
            used=node.used | set(gpus) if node.used is not None and gpus is not None else None,
            holders=(*node.holders, *holders),
        )
    return changed(fleet, nodes)


def _requested(node: GpuNode, gpus: int, pods: int) -> Mapping[str, int]:
    changes = {node.gpu_resource: gpus, "pods": pods}
    return {
        **node.requested,
        **{name: max(node.requested.get(name, 0) + more, 0) for name, more in changes.items()},
    }


def _room(fleet: Fleet, sizes: tuple[int, ...]) -> _Room:
    free = free_by_node(fleet)
    counted = [[count // gpus for count in free] for gpus in sizes]
    return _Room(sizes, tuple(map(sum, counted)), tuple(largest(fleet, each) for each in counted))


def _gains(fleet: Fleet, before: _Room, after: _Room) -> tuple[Gain, ...]:
    """Return what more fits, the largest shape first: in all, and at each level in one domain."""
    found = []
    for at in reversed(range(len(before.shapes))):
        levels = zip(
            ("", *names(fleet)[:-1]),
            (before.total[at], *before.in_one[at]),
            (after.total[at], *after.in_one[at]),
            strict=False,
        )
        found += [Gain(before.shapes[at], level, old, new) for level, old, new in levels if new > old]
    return tuple(found)


def _move(fleet: Fleet, job: _Job, pick: Pick, gains: tuple[Gain, ...]) -> Move:
    source = tuple(
        Part(fleet.nodes[at].name, sum(holder.gpus for holder in held), _indices(held))
        for at, held in sorted(job.nodes.items())
    )
    target = tuple(
        Part(
            fleet.nodes[at].name,
            offer.workers * job.gpus,
            tuple(sorted(indices_of(fleet.nodes[at], offer.choice.order))) if offer.choice else None,
        )
        for at, offer in zip(pick.nodes, pick.offers, strict=True)
    )
    return Move(job.name, len(job.pods), job.gpus, source, target, gains)


def _indices(held: Sequence[Holder]) -> tuple[int, ...] | None:
    if any(holder.indices is None for holder in held):
        return None
    return tuple(sorted(index for holder in held for index in holder.indices or ()))
