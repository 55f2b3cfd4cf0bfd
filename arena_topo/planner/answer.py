"""The answer for pods that are all alike: where each goes and why, or why none fits and what would help.

Workers follow the chosen nodes in fabric order, and the GPUs of a node in ring order.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, repeat
from math import isinf
from typing import NamedTuple

from arena_topo.model.cluster import AlignmentPolicy, Gpu, GpuNode, NumaZones
from arena_topo.model.keys import ACK_GPU, HOSTNAME, NVIDIA_GPU
from arena_topo.model.placement_options import Objective, TopologyPolicy
from arena_topo.model.plan import (
    Demand,
    Infeasible,
    NodeAlignment,
    NodeRoom,
    NodeShare,
    Placement,
    Reason,
    RolePlacement,
    Step,
    Steps,
    WorkerPlace,
)
from arena_topo.model.plan_record import Slot
from arena_topo.model.pods import CPU, untolerated
from arena_topo.model.text.words import natural_sort_key, plural, written_amount
from arena_topo.planner.choice import (
    ChosenNodes,
    DomainChoice,
    Effort,
    Pick,
    Problem,
    choose_domain,
    closer_tiers,
    pick,
    runner_up,
)
from arena_topo.planner.fleet import (
    CORDON,
    Capacity,
    Domain,
    Fleet,
    LevelLimits,
    capacity_for,
    capacity_of,
    closest_level,
    domains_at,
    holders_by_job,
    level_names,
    level_words,
    open_to,
    policy_limits,
    requests,
    reshaped,
    selected,
    serves_resource,
    spanned,
)
from arena_topo.planner.gpus.bandwidth import place_of, positions_of, rotated_for_workers
from arena_topo.planner.gpus.machine import indices_of
from arena_topo.planner.offers import NodeState, Offer, containers_of

# On which NUMA nodes and PCIe switches of its node each worker is, next to which NICs, and who sees to it.


def node_alignment(
    node: GpuNode, demand: Demand, by_worker: Sequence[tuple[int, ...] | None]
) -> NodeAlignment | None:
    """Return where on *node* workers of *demand* with the GPUs *by_worker* are; None if unknown."""
    if not demand.gpus or None in by_worker or all(gpu.numa is None for gpu in node.gpus):
        return None
    policy = node.zones.policy if node.zones else None
    gpus = {gpu.index: gpu for gpu in node.gpus}
    has_cores = _has_cores(node, demand, policy)
    return NodeAlignment(
        policy=policy,
        enforced=policy is not None
        and policy.refuses
        and _is_tied(node.zones, demand.gpu_resource or node.gpu_resource),
        workers=tuple(
            _place([gpus[index] for index in indices or ()], has_cores=has_cores) for indices in by_worker
        ),
    )


def _place(gpus: Sequence[Gpu], *, has_cores: bool) -> WorkerPlace:
    numa = tuple(sorted({gpu.numa for gpu in gpus if gpu.numa is not None}))
    return WorkerPlace(
        numa=numa,
        switches=tuple(dict.fromkeys(gpu.pcie_root for gpu in gpus if gpu.pcie_root)),
        nics=tuple(dict.fromkeys(nic for gpu in gpus for nic in gpu.nics)),
        cpus=numa if has_cores else (),
    )


def _has_cores(node: GpuNode, demand: Demand, policy: AlignmentPolicy | None) -> bool:
    """Whether a worker gets cores of its own next to its GPUs, if the kubelet's CPU manager is static."""
    asks = any(CPU in dict(asked) for asked in containers_of(demand, node.gpu_resource))
    return asks and policy not in (None, AlignmentPolicy.NONE) and _is_tied(node.zones, CPU)


def _is_tied(zones: NumaZones | None, resource: str) -> bool:
    """Whether *resource* is tied to NUMA nodes, so that the kubelet aligns it."""
    return zones is not None and any(zone.capacity.get(resource) for zone in zones.zones)


def placement(
    demand: Demand,
    fleet: Fleet,
    capacity: Capacity,
    chosen: DomainChoice,
    workers_of: Mapping[int, tuple[int, ...]] | None = None,
    *,
    explains: bool = True,
) -> Placement:
    """Return the placement of *demand* on the nodes of *chosen*, with its steps if it *explains* them.

    Steps are found when they are read. *workers_of* names the workers of each node, by position; without it
    they follow the nodes in fabric order.
    """
    parts, positions, paths = NodeParts(demand, fleet.state), chosen.pick.nodes, fleet.paths
    nodes = [fleet.nodes[position] for position in positions]
    names = [node.name for node in nodes]
    found = list(map(parts.of, nodes, positions, chosen.pick.offers))
    taken = [part.by_worker for part, _ in found]
    counts = list(map(len, taken))
    if workers_of:
        workers = [workers_of[position] for position in positions]
    else:
        numbers = iter(range(sum(counts)))
        workers = [tuple(islice(numbers, count)) for count in counts]
    shares = [
        _AS_SHARE((name, own, part.gpus, part.busbw, part.best, paths[position], alignment))
        for name, own, (part, alignment), position in zip(names, workers, found, positions, strict=True)
    ]
    # A gang may have thousands of workers.
    ranks, gpus = chain.from_iterable(workers), chain.from_iterable(taken)
    hosts = chain.from_iterable(map(repeat, names, counts))
    slots = list(map(_AS_SLOT, zip(ranks, hosts, gpus, strict=True)))
    if workers_of:
        slots.sort()
    # Where several levels count as equally close, the nodes may share a closer domain than the one searched.
    number, domain = spanned(fleet, chosen.pick.nodes[0], chosen.pick.nodes[-1])
    level = level_names(fleet)[number]
    return Placement(
        roles=(RolePlacement("", demand.gpus, tuple(slots), tuple(shares), level, domain.name),),
        level=level,
        domain=domain.name,
        why=Steps(lambda: why(demand, fleet, capacity, chosen)) if explains else (),
    )


_AS_SLOT: Callable[[tuple[int, str, tuple[int, ...] | None]], Slot] = partial(tuple.__new__, Slot)
_AS_SHARE: Callable[[tuple[object, ...]], NodeShare] = partial(tuple.__new__, NodeShare)
"""What ``Slot`` and ``NodeShare`` do with their fields, in a third of the time: a gang may have thousands."""


class NodePart(NamedTuple):
    """What an offer takes of a node: its GPUs in ring order, their busbw, and the GPUs of each worker.

    Nodes with the same GPUs have equal ones.
    """

    gpus: tuple[int, ...] | None
    busbw: float | None
    best: float | None
    by_worker: tuple[tuple[int, ...] | None, ...]


class NodeParts:
    """What offers take of nodes for the workers of one demand; equal nodes are worked out once.

    Nodes and offers that were asked for must stay alive, because they are told apart by their identity.
    """

    def __init__(self, demand: Demand, state_of: Callable[[int], NodeState]) -> None:
        """Take what each worker asks for, and what tells the state of a node from its position."""
        self._demand = demand
        self._state_of = state_of
        self._known: dict[tuple[int, ...], tuple[NodePart, NodeAlignment | None]] = {}

    def of(self, node: GpuNode, position: int, offer: Offer) -> tuple[NodePart, NodeAlignment | None]:
        """Return what *offer* takes of *node*, at *position*, and where on the node the workers are."""
        # A gang of thousands uses few offers, and most nodes share the object of their GPUs.
        key = id(offer), id(node.gpus), id(node.zones)
        known = self._known.get(key)
        if known is None:
            part = _node_part(node, self._state_of(position), offer, self._demand.gpus)
            known = part, node_alignment(node, self._demand, part.by_worker)
            # Without a choice the state tells which GPUs are taken.
            if offer.choice:
                self._known[key] = known
        return known


def _node_part(node: GpuNode, state: NodeState, offer: Offer, gpus: int) -> NodePart:
    """Return what *offer* takes of *node*, in *state*, for workers of *gpus* GPUs, neighbours in the ring."""
    choice, workers = offer.choice, range(offer.workers)
    taken = (
        _in_ring_order(node, offer, choice.order, gpus) if choice else _first_free(node, state, offer, gpus)
    )
    by_worker = tuple(None if taken is None else taken[i * gpus : (i + 1) * gpus] for i in workers)
    # A single GPU has no peer, so there is no bandwidth to show; nor is there for unidentified GPUs.
    if choice is None or isinf(offer.inside):
        return NodePart(taken, None, None, by_worker)
    return NodePart(taken, choice.busbw, choice.best, by_worker)


def gpus_by_worker(
    fleet: Fleet, position: int, offer: Offer, gpus: int
) -> tuple[tuple[int, ...] | None, ...]:
    """Return the GPUs of each worker that *offer* takes of the node at *position*; None if unknown."""
    return _node_part(fleet.nodes[position], fleet.state(position), offer, gpus).by_worker


def _in_ring_order(node: GpuNode, offer: Offer, ring: Sequence[int], gpus: int) -> tuple[int, ...]:
    """Return the GPUs of *ring*, cut between workers of *gpus* GPUs where that costs least."""
    if offer.rule:
        return indices_of(node, offer.rule.cut(ring))
    if node.links:
        ring = rotated_for_workers(node.links, ring, gpus, tuple(map(place_of, node.gpus)))
    return indices_of(node, ring)


def _first_free(node: GpuNode, state: NodeState, offer: Offer, gpus: int) -> tuple[int, ...] | None:
    """Return the first free GPUs of *node*, in *state*, if links are unknown: any on as few NUMA nodes do.

    None if it is not known which are free.
    """
    count = offer.workers * gpus
    free = state.mask if count else None
    if free is None:
        return None
    if offer.rule:
        return indices_of(node, offer.rule.cut(positions_of(offer.rule.first(free, count))))
    sides: dict[int | None, list[int]] = {}
    for position in positions_of(free):
        sides.setdefault(node.gpus[position].numa, []).append(position)
    # The smallest side that has enough, to keep larger ones whole; else the largest, to touch few.
    enough = [side for side in sides.values() if len(side) >= count]
    ordered = [min(enough, key=len)] if enough else sorted(sides.values(), key=lambda side: -len(side))
    return indices_of(node, list(chain.from_iterable(ordered))[:count])


# What would have been chosen by another order of choice: the price of what decided.
#
# A worker of four GPUs takes the empty box at 19 GB/s. With ``pack`` it takes the half-used one at 13 GB/s,
# and leaves none over. Two workers on one node at 8 GB/s take no second node, even where that gives 45 GB/s:
# the number of nodes goes first.

OTHER = {Objective.BANDWIDTH: Objective.PACK, Objective.PACK: Objective.BANDWIDTH}

# A remark is not worth the effort of a decision.
_EFFORT = 1_000
_MOST_NODES = 4
"""A node more seldom makes a gang on many nodes faster, and looking for one takes longer than to place it."""


def alternative(problem: Problem, chosen: DomainChoice) -> Pick | None:
    """Return what the other objective picks, if that has more busbw or leaves fewer GPUs over."""
    other = OTHER[problem.objective]
    # Single GPUs, and pods without any, have no bandwidth to give up. Nothing left over is the least, and of
    # such choices the fastest was taken in any case.
    if isinf(chosen.pick.busbw) or (other is Objective.PACK and chosen.pick.stranded == 0):
        return None
    pick = choose_domain(replace(problem, objective=other), chosen.level).pick
    # A search that did not end may miss the best: what wins or loses in both figures is no price.
    return pick if (pick.busbw > chosen.pick.busbw) != (pick.stranded < chosen.pick.stranded) else None


def faster_on_more(problem: Problem, domain: Domain, nodes: int, busbw: float) -> Pick | None:
    """Return a pick in *domain* on one node more than *nodes* with more than *busbw*, None if not found."""
    count = nodes + 1
    if count > min(problem.workers, _MOST_NODES) or isinf(busbw):
        return None
    fleet = problem.fleet
    taking = sum(places > 0 for places in problem.capacity.places[domain.start : domain.end])
    if taking < count:
        return None
    other = pick(problem, domain, count, Effort(_EFFORT))
    # Where a NIC's rate is not known, more nodes may be slower for all that is known inside them.
    is_known = all(fleet.state(position).rate for position in other.nodes)
    # Neither is a search that did not end worth a remark.
    return other if is_known and other.complete and other.busbw > busbw else None


# What would give a gang a place that has none now: a smaller gang, another shape or level, the end of other
# jobs.

# For each job that is tried, the places of the whole fleet are added up once more.
_MOST_JOBS = 200
_MOST_NAMED = 3
_MOST_GPUS = 1024
"""GPUs of the largest worker that is offered in place of one that has no room."""


def _remedies(demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits) -> tuple[str, ...]:
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
    # Whatever numbers a job or a node says, these many are tried: a pod may ask for 64Gi GPUs.
    most = min(max((state.total for state in fleet.states), default=0), _MOST_GPUS)
    for gpus in range(min(most, demand.gpus - 1), 0, -1):
        if ranks % gpus:
            continue
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
    """Return the jobs and pods that hold GPUs, the smallest first, each with its GPUs by node."""
    gpus = {
        name: {position: sum(holder.gpus for holder in holders) for position, holders in by_node.items()}
        for name, by_node in holders_by_job(fleet).items()
    }
    return sorted(gpus.items(), key=lambda job: (sum(job[1].values()), job[0]))


def _places_after(
    demand: Demand, fleet: Fleet, now: Sequence[int], besides_gpus: Sequence[int], freed: Mapping[int, int]
) -> list[int]:
    """Return the places of every node once *freed* GPUs are given back; *now* are those that it has.

    *besides_gpus* are the places that all other resources leave.
    """
    after = list(now)
    for position, gpus in freed.items():
        state = fleet.state(position)
        # GPUs that the node hands out by another resource do not help, even when they are free. Neither is it
        # known whether those are on NUMA nodes where the kubelet would admit a worker.
        if serves_resource(demand, state) and not state.alignment:
            with_gpus = min(state.free + gpus, state.total) // demand.gpus
            after[position] = max(now[position], min(with_gpus, besides_gpus[position]))
    return after


# The answer for a gang that has no place: why, how far each level gets, and what would help.

_NOTHING = Reason("no node has GPUs, or there are no nodes", 0)


def infeasible(
    demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits, *, advises: bool = True
) -> Infeasible:
    """Return why *demand* does not fit within *limits*; with *advises* also levels, nodes and remedies."""
    level = level_words(fleet)[limits.widest]
    most, _ = best_of_level(fleet, capacity, limits.widest)
    where = "the cluster" if limits.widest > len(fleet.tiers) else f"one {level}"
    return Infeasible(
        summary=f"{gang_words(demand)} do not fit in {where}: {most} of {demand.workers} do"
        if demand.workers > 1
        else f"{gang_words(demand)} does not fit on any node",
        reasons=(*_exclusions(demand, fleet), *_partly(demand, capacity)) or (_NOTHING,),
        levels=tuple(_levels(demand, fleet, capacity)) if advises else (),
        remedies=_remedies(demand, fleet, capacity, limits) if advises else (),
        nodes=tuple(_rooms(demand, fleet, capacity)) if advises else (),
    )


def no_launcher(demand: Demand) -> Infeasible:
    """Return the answer for a gang whose workers fit, and whose launcher then has no place."""
    asked = demand.launcher or {}
    amounts = ", ".join(written_amount(name, amount) for name, amount in asked.items())
    labels = ", ".join(f"label {key}={value}" for key, value in demand.launcher_selector.items())
    # A launcher that asks for nothing still is one of the pods that a node takes.
    requirements = ", ".join(filter(None, (amounts, labels))) or "one more pod"
    return Infeasible(
        summary=f"the workers fit, but then no node has room for the launcher ({requirements})",
        remedies=("ask less with --launcher-cpu and --launcher-memory, or use fewer workers",),
    )


def too_wide(gang: str, fleet: Fleet, level: int, ideal: int) -> Infeasible:
    """Return the answer for *gang*, in words, that would get a wider level now than on the empty cluster."""
    words = level_words(fleet)
    now = "the whole cluster" if level > len(fleet.tiers) else f"one {words[level]}"
    return Infeasible(
        summary=f"{gang} would need {now} now; one idle {words[ideal]} would hold them",
        remedies=(f"--topology-policy=best-effort takes the {words[level]}",),
    )


def gang_words(demand: Demand) -> str:
    """Return how many workers *demand* has: ``4 workers of 2 GPUs``."""
    shape = f" of {plural(demand.gpus, 'GPU')}" if demand.gpus else ""
    return f"{plural(demand.workers, 'worker')}{shape}"


def _partly(demand: Demand, capacity: Capacity) -> Iterator[Reason]:
    taking = len(capacity.places) - capacity.places.count(0)
    if not taking:
        return
    verb = "takes" if taking == 1 else "take"
    if capacity.total < demand.workers:
        alone = ", one each because a worker takes a port of its node" if demand.one_per_node else ""
        yield Reason(
            f"{plural(taking, 'node')} {verb} {capacity.total} of {demand.workers} workers together{alone}",
            taking,
        )
    else:
        yield Reason(f"{plural(taking, 'node')} {verb} workers, but not close enough together", taking)


def _levels(demand: Demand, fleet: Fleet, capacity: Capacity) -> Iterator[str]:
    for level, name in enumerate(level_words(fleet)):
        most, domain = best_of_level(fleet, capacity, level)
        # The whole cluster is among the reasons already.
        if most and level <= len(fleet.tiers):
            yield f"the best {name} fits {min(most, demand.workers)} of {demand.workers} workers ({domain})"


def _exclusions(demand: Demand, fleet: Fleet) -> tuple[Reason, ...]:
    """Return why nodes take no worker of *demand*, the most frequent reason first.

    Each node counts for the first reason that keeps workers off it; nodes without GPUs count only for gangs
    without.
    """
    candidates = [_is_candidate(demand, state) for state in fleet.states]
    counted: Counter[str] = Counter()
    for state_id, positions in enumerate(fleet.nodes_by_state):
        if candidates[state_id]:
            counted.update(_first_obstacles(demand, fleet, fleet.states[state_id], positions))
    del counted[""]
    ordered = sorted(counted.items(), key=lambda entry: (-entry[1], natural_sort_key(entry[0])))
    return tuple(
        Reason(f"{plural(count, 'node')} {_agreeing(text, count)}", count) for text, count in ordered
    )


def _first_obstacles(
    demand: Demand, fleet: Fleet, state: NodeState, positions: Sequence[int]
) -> Mapping[str, int]:
    """Count the first text that keeps a worker off each of the nodes at *positions*, in *state*; or empty."""

    def first(position: int) -> str:
        return next(_obstacles(demand, fleet, position, fleet.nodes[position]), "")

    chooses = demand.node_selector or demand.affinity or (demand.needs_hostname and fleet.without_hostname)
    serves = not demand.gpus or serves_resource(demand, state)
    # Without a choice by labels, nodes of one state that cannot serve a worker are all refused for the same.
    if not chooses and not (serves and open_to(demand, state) and state.free >= demand.gpus):
        return {first(positions[0]): len(positions)}
    # Most gangs without a place are refused by too few nodes, not by what a node lacks next to GPUs.
    if not (chooses or state.alignment) and all(
        fleet.least_free[resource] >= amount for resource, amount in requests(demand).items()
    ):
        return {}
    return Counter(map(first, positions))


def _rooms(demand: Demand, fleet: Fleet, capacity: Capacity) -> Iterator[NodeRoom]:
    """Yield what each node that counts takes of the gang."""
    for position, node in enumerate(fleet.nodes):
        if _is_candidate(demand, fleet.state(position)):
            places = capacity.places[position]
            obstacle = "" if places else next(_obstacles(demand, fleet, position, node), "")
            yield NodeRoom(node.name, places, _agreeing(obstacle, 1) if obstacle else "")


def _is_candidate(demand: Demand, state: NodeState) -> bool:
    return not demand.gpus or state.total > 0


def _agreeing(text: str, count: int) -> str:
    verb, _, rest = text.partition(" ")
    singular = {"have": "has", "are": "is", "lack": "lacks", "offer": "offers", "do": "does"}
    return f"{singular.get(verb, verb)} {rest}" if count == 1 else text


def _obstacles(demand: Demand, fleet: Fleet, position: int, node: GpuNode) -> Iterator[str]:
    """Yield everything that keeps workers off the node at *position*, what is hardest to change first."""
    # The texts agree with several nodes; ``_agreeing`` turns them around for a single one.
    state = fleet.state(position)
    if demand.gpus and not serves_resource(demand, state):
        yield f"offer their GPUs as {state.resource}, not as {demand.gpu_resource}"
    yield from (
        f"lack the label {key}={value}"
        for key, value in demand.node_selector.items()
        if node.labels.get(key) != value
    )
    if demand.needs_hostname and HOSTNAME not in node.labels:
        yield f"lack the label {HOSTNAME}, by which the plan would be enforced"
    if demand.affinity and not selected(demand, node):
        yield "do not match the node affinity"
    yield from _closed(demand, node)
    if state.free < demand.gpus:
        yield f"have fewer than {demand.gpus} free GPUs" if demand.gpus > 1 else "have no free GPU"
    yield from (
        f"have less than {written_amount(resource, amount)} free"
        for resource, amount in requests(demand).items()
        if fleet.free[resource][position] < amount
    )
    if state.alignment and (refusal := state.alignment.refusal(containers_of(demand, state.resource))):
        yield f"would refuse a worker with TopologyAffinityError ({state.alignment.policy.value}): {refusal}"


def _closed(demand: Demand, node: GpuNode) -> Iterator[str]:
    if not node.ready:
        yield "are not ready"
    if node.unschedulable and untolerated((CORDON,), demand.tolerations):
        yield "are cordoned"
    if taint := untolerated(node.taints, demand.tolerations):
        yield f"have the taint {taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def why(demand: Demand, fleet: Fleet, capacity: Capacity, chosen: DomainChoice) -> Iterator[Step]:
    """Return the steps by which *chosen* won among all placements of *demand*."""
    problem = Problem(
        fleet,
        capacity,
        demand.workers,
        demand.gpus,
        objective=demand.objective,
        closest=policy_limits(demand, fleet).closest,
    )
    next_best = runner_up(problem, chosen)
    yield _fits(demand, fleet, capacity)
    yield _level(demand, fleet, capacity, chosen)
    yield _count(problem, chosen)
    yield from _within(problem, chosen, next_best)
    if demand.gpus:
        ordered = (_bandwidth(chosen, next_best, fleet), _damage(chosen, next_best, fleet))
        yield from ordered[::-1] if demand.objective is Objective.PACK else ordered
        yield _objective(problem, chosen)
    # On a cluster without GPUs there are none to keep usable.
    elif any(state.total for state in fleet.states):
        yield _damage(chosen, next_best, fleet)


def _fits(demand: Demand, fleet: Fleet, capacity: Capacity) -> Step:
    taking = len(capacity.places) - capacity.places.count(0)
    # topology and top node speak of nodes with GPUs, and so do workers that need some.
    with_gpus = sum(fleet.states[state].total > 0 for state in fleet.state_ids) if demand.gpus else 0
    nodes = plural(len(fleet.nodes), "node")
    if 0 < with_gpus < len(fleet.nodes):
        nodes = f"{plural(with_gpus, 'node')} with GPUs"
    return Step(
        criterion="fits",
        chosen=f"{taking} of {nodes} {'has' if taking == 1 else 'have'} room",
        bound=f"for {plural(capacity.total, 'worker')} in all",
    )


def _level(demand: Demand, fleet: Fleet, capacity: Capacity, chosen: DomainChoice) -> Step:
    words = level_words(fleet)
    level, domain = spanned(fleet, chosen.pick.nodes[0], chosen.pick.nodes[-1])
    runner_up = ""
    if chosen.rivals > 1:
        runner_up = f"{plural(chosen.rivals - 1, 'other ' + words[chosen.level])} would do"
    bound = "no level is closer"
    if level > 0:
        most, name = best_of_level(fleet, capacity, level - 1)
        fits = min(most, demand.workers)
        bound = f"no {words[level - 1]} holds all: the best fits {fits} of {demand.workers}" + (
            f" ({name})" if name else ""
        )
        # A closer level holds the gang too, but the demand counts all levels up to this one as equally close.
        if fits == demand.workers:
            is_unaware = demand.policy is TopologyPolicy.NONE
            flag = "--topology-policy=none" if is_unaware else f"--prefer-topology={demand.preferred_level}"
            bound = f"{flag}: nodes of one {words[chosen.level]} count as equally close"
    chose = "the whole cluster" if level > len(fleet.tiers) else f"one {words[level]}: {domain.name}"
    return Step("level", chose, runner_up, bound)


def _count(problem: Problem, chosen: DomainChoice) -> Step:
    fleet, count = problem.fleet, len(chosen.pick.nodes)
    word = level_words(fleet)[chosen.level]
    fewer = (
        f"no {count - 1} nodes of a {word} hold all" if count > 2 else f"no single node of a {word} holds all"
    )
    more = f"{plural(chosen.next_count, 'node')} in another {word}" if chosen.next_count else ""
    pick = chosen.pick
    # The domain of a gang on one node is the finest around it; without tiers that is the node itself.
    around = pick.domain if fleet.tiers else fleet.cluster
    if faster := faster_on_more(problem, around, count, pick.busbw):
        more = figures_words(fleet, faster)
    return Step(
        criterion="nodes",
        chosen=plural(count, "node"),
        runner_up=more,
        bound=fewer if count > 1 else "one is the least",
    )


def _within(problem: Problem, chosen: DomainChoice, other: Pick | None) -> Iterator[Step]:
    pick, fleet = chosen.pick, problem.fleet
    touched = within_words(problem, pick.domain, pick.nodes)
    if not touched:
        return
    second = ""
    if other and (others := within_words(problem, other.domain, other.nodes)) != touched:
        second = f"{others} on {nodes_words(fleet, other.nodes)}"
    word, nodes = level_words(fleet)[chosen.level], plural(len(pick.nodes), "node")
    bound = f"no {nodes} of a {word} that hold all touch fewer" if chosen.exact else ""
    yield Step("within", touched, second, bound, proven=chosen.exact)


def within_words(problem: Problem, domain: Domain, nodes: Sequence[int]) -> str:
    """Return how many domains of each closer level in *domain* have some of *nodes*: ``2 blocks, 5 racks``.

    Empty where no closer level counts.
    """
    fleet, goal = problem.fleet, problem.goal(len(nodes), domain)
    if not goal.closer:
        return ""
    words, tiers = level_words(fleet), closer_tiers(fleet, domain, problem.closest)
    return ", ".join(
        plural(number, words[len(fleet.tiers) + 1 - tier])
        for tier, number in zip(tiers, goal.domains_of(nodes), strict=True)
    )


def _bandwidth(chosen: DomainChoice, other: Pick | None, fleet: Fleet) -> Step:
    pick = chosen.pick
    second = _second_set(pick) if len(pick.nodes) == 1 else ""
    if not second and other:
        second = f"{rate_words(other.busbw)} on {nodes_words(fleet, other.nodes)}"
    return Step(
        criterion="busbw",
        chosen=rate_words(pick.busbw),
        runner_up=second,
        bound="every set of free GPUs was compared" if chosen.exact else "",
        proven=chosen.exact,
    )


def _damage(chosen: DomainChoice, other: Pick | None, fleet: Fleet) -> Step:
    stranded = chosen.pick.stranded
    where = "this node" if len(chosen.pick.nodes) == 1 else "these nodes"
    return Step(
        criterion="left over",
        chosen=f"{plural(stranded, 'GPU')} free on {where}",
        runner_up=f"{plural(other.stranded, 'GPU')} on {nodes_words(fleet, other.nodes)}" if other else "",
        bound="" if stranded else "none left is the least",
        proven=chosen.exact,
    )


def _objective(problem: Problem, chosen: DomainChoice) -> Step:
    """Return what went first of the two steps before, and what another order would have given."""
    other, found = OTHER[problem.objective], alternative(problem, chosen)
    return Step(
        criterion="objective",
        chosen=f"{problem.objective.value}: {MEANING[problem.objective]}",
        runner_up=f"{figures_words(problem.fleet, found)}, with --objective={other.value}" if found else "",
        bound="" if found else "no other objective gives faster links or leaves fewer GPUs over",
    )


MEANING = {
    Objective.BANDWIDTH: "faster links before fewer GPUs left over",
    Objective.PACK: "fewer GPUs left over before faster links",
}


def _second_set(pick: Pick) -> str:
    choice = pick.offers[0].choice
    if choice is None or choice.runner_up is None:
        return ""
    return f"{choice.runner_up[1]:.3g} GB/s with the next best set of GPUs there"


def rate_words(rate: float) -> str:
    """Return a busbw of *rate* GB/s as people read it."""
    if isinf(rate):
        return "one GPU per node: no links are used"
    return f"{rate:.3g} GB/s" if rate else "unknown links"


def figures_words(fleet: Fleet, chosen: ChosenNodes) -> str:
    """Return what *chosen* gives and leaves: ``45 GB/s on a and 1 other, 2 GPUs left over``."""
    where, left = nodes_words(fleet, chosen.nodes), plural(chosen.stranded, "GPU")
    return f"{rate_words(chosen.busbw)} on {where}, {left} left over"


def nodes_words(fleet: Fleet, positions: Sequence[int]) -> str:
    """Return the first of the nodes at *positions*, and how many others there are.

    Three nodes are ``a and 2 others``.
    """
    first = fleet.nodes[positions[0]].name
    return first if len(positions) == 1 else f"{first} and {plural(len(positions) - 1, 'other')}"
