"""How much of the free capacity serves which shapes of jobs, and which moves would defragment it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from arena_topo.model.cluster import Holder, Snapshot
from arena_topo.model.plan import Demand
from arena_topo.model.pods import Toleration
from arena_topo.model.reports import (
    Fragmentation,
    Gain,
    JobShare,
    Move,
    ShapeCapacity,
    WholeNodeCapacity,
)
from arena_topo.planner.choice import Pick, Problem, choose_domain
from arena_topo.planner.fleet import (
    Fleet,
    LevelLimits,
    capacity_by_domain,
    capacity_for,
    capacity_of,
    changed,
    closest_level,
    domains_at,
    emptied,
    holders_by_job,
    level_names,
    make_fleet,
    open_to,
    requested_after,
    spanned,
    without_holders,
)
from arena_topo.planner.gpus.machine import indices_of
from arena_topo.planner.offers import best_set, nic_rate

# How many workers of every usual shape the free GPUs of a fleet take, whatever they may ask for besides GPUs.


def _usual_sizes(fleet: Fleet) -> tuple[int, ...]:
    """Return the usual numbers of GPUs of a worker: powers of two, and all of the largest node."""
    largest = max((state.total for state in fleet.states), default=0)
    powers = [1 << exponent for exponent in range(largest.bit_length())]
    return tuple(sorted({*powers, largest} - {0}))


def _usual_demand(fleet: Fleet, gpus: int = 1) -> Demand:
    """Return a worker of *gpus* GPUs that tolerates the taint by which nodes are reserved for GPU jobs."""
    resources = sorted({state.resource for state in fleet.states})
    return Demand(1, gpus, tolerations=tuple(Toleration(key=name, operator="Exists") for name in resources))


def _free_by_node(fleet: Fleet) -> list[int]:
    """Return the free GPUs of every node that takes pods, 0 for the others."""
    demand = _usual_demand(fleet)
    by_state = [state.free if open_to(demand, state) else 0 for state in fleet.states]
    return [by_state[state_id] for state_id in fleet.state_ids]


def _whole_nodes(fleet: Fleet, free: Sequence[int]) -> list[int]:
    """Return 1 for every node whose GPUs are all free, 0 for the others."""
    states = fleet.states
    return [
        int(0 < count == states[state_id].total)
        for count, state_id in zip(free, fleet.state_ids, strict=True)
    ]


def _largest_by_level(fleet: Fleet, places: Sequence[int]) -> tuple[int, ...]:
    """Return the most *places* in one domain of each level, the closest level first."""
    above_nodes = (max(by_domain, default=0) for by_domain in _by_level(fleet, places))
    return (max(places, default=0), *above_nodes)


def _side_by_side(fleet: Fleet, places: Sequence[int], size: int) -> tuple[int, ...]:
    """Return for every level above the node how many gangs of *size* places fit, each within one domain."""
    return tuple(sum(count // size for count in by_domain) for by_domain in _by_level(fleet, places))


def _best_busbw(fleet: Fleet, gpus: int) -> float | None:
    """Return the best predicted busbw that *gpus* free GPUs of one node that takes pods can have."""
    return max(_busbws(fleet, gpus), default=None) if gpus > 1 else None


def _by_level(fleet: Fleet, places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places in each domain of every level above the node, the closest level first."""
    capacity = capacity_of(places)
    for level in range(1, len(level_names(fleet))):
        yield capacity_by_domain(capacity, domains_at(fleet, level))


def _busbws(fleet: Fleet, gpus: int) -> Iterator[float]:
    demand = _usual_demand(fleet, gpus)
    for state in fleet.states:
        if open_to(demand, state) and (choice := best_set(state, gpus)):
            yield choice.busbw


# Moves of whole jobs that would make free GPUs usable for larger ones: advice, each tried on the snapshot.
#
# Greedy: of the smallest jobs the one is moved whose move gains most, then the next on what that leaves. What
# counts is the number of GPUs that workers of every usual shape could take, and those that a gang of whole
# nodes could take in one domain of each level. A job is moved only where it loses neither level nor nodes nor
# predicted busbw. The cpu and memory of single pods are not in a snapshot, so only GPUs and pod places are
# checked.

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
    """What a fleet has room for: workers of each size in all, and the largest gangs of each size by level."""

    sizes: tuple[int, ...]
    total: tuple[int, ...]
    in_one: tuple[tuple[int, ...], ...]

    @property
    def score(self) -> int:
        """GPUs that can be used, summed over the sizes; the largest size counts at every level.

        Two nodes with four free GPUs each score, for the sizes 4 and 8 and the levels node and cluster, 2 x 4
        + 0 and nothing for gangs of 8. Once one job of four GPUs has moved onto the other's node, the free
        node scores 2 x 4 + 1 x 8 and 8 more for each of the two levels.
        """
        usable = sum(gpus * count for gpus, count in zip(self.sizes, self.total, strict=True))
        return usable + sum(self.sizes[-1] * count for count in self.in_one[-1])


def _moves(fleet: Fleet) -> tuple[Move, ...]:
    """Return the moves that help most, one after the other, none where no move helps."""
    advised: list[Move] = []
    moved: set[str] = set()
    sizes = _usual_sizes(fleet)
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
    """Return the smallest jobs that can be moved exactly: alike workers that hold known GPUs."""
    jobs = []
    for name, by_node in holders_by_job(fleet).items():
        kind, _, own = name.partition(" ")
        pods = tuple(
            (position, holder) for position, held in by_node.items() for holder in held if holder.gpus
        )
        if kind == "job" and pods and own not in moved:
            jobs.append(_Job(own, pods))
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

    Holes are filled before whole nodes are opened, and both ways of choosing nodes are tried: those with the
    best bandwidth for the job, and those where it does least damage to what stays free.
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
    demand = replace(_usual_demand(fleet, job.gpus), workers=len(job.pods))
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
    """Return the lowest rate of *parts* (node, workers, busbw inside), NICs counted if there are several."""
    inside = [rate for _, _, rate in parts if rate is not None]
    across = [nic_rate(fleet.state(position), workers * job.gpus) for position, workers, _ in parts]
    return min([*inside, *(across if len(parts) > 1 else [])], default=inf)


def _current_busbw(fleet: Fleet, position: int, holders: Sequence[Holder]) -> float | None:
    """Return the busbw of the GPUs that *holders* have on the node, None for one GPU or if unknown."""
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
    free = _free_by_node(fleet)
    places = [[count // gpus for count in free] for gpus in sizes]
    return _Usable(
        sizes, tuple(map(sum, places)), tuple(_largest_by_level(fleet, by_node) for by_node in places)
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


def fragmentation(snapshot: Snapshot) -> Fragmentation:
    """Return what the free GPUs of *snapshot* are good for, and the moves that would help most."""
    fleet = make_fleet(snapshot)
    empty = emptied(fleet)
    free, free_when_empty = _free_by_node(fleet), _free_by_node(empty)
    states = [fleet.states[state_id] for state_id in fleet.state_ids]
    return Fragmentation(
        free=sum(free),
        total=sum(state.total for state in states),
        closed=sum(state.free for state in states) - sum(free),
        levels=level_names(fleet),
        shapes=tuple(_shape(fleet, empty, free, free_when_empty, gpus) for gpus in _usual_sizes(empty)),
        whole=tuple(_whole(fleet, empty, free, free_when_empty)),
        moves=_moves(fleet),
    )


def _shape(
    fleet: Fleet, empty: Fleet, free: Sequence[int], free_when_empty: Sequence[int], gpus: int
) -> ShapeCapacity:
    places = [count // gpus for count in free]
    return ShapeCapacity(
        gpus=gpus,
        workers=sum(places),
        empty=sum(count // gpus for count in free_when_empty),
        in_one=_largest_by_level(fleet, places),
        busbw=_best_busbw(fleet, gpus),
        best=_best_busbw(empty, gpus),
    )


def _whole(
    fleet: Fleet, empty: Fleet, free: Sequence[int], free_when_empty: Sequence[int]
) -> list[WholeNodeCapacity]:
    now, when_empty = _whole_nodes(fleet, free), _whole_nodes(empty, free_when_empty)
    sizes = (1 << exponent for exponent in range(sum(when_empty).bit_length()))
    return [
        WholeNodeCapacity(size, _side_by_side(fleet, now, size), _side_by_side(empty, when_empty, size))
        for size in sizes
    ]
