"""The nodes of a snapshot in fabric order, laid out so that a decision looks at each of them only once."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, compress
from math import inf
from operator import attrgetter, is_not, lt

from arena_topo.errors import UsageError
from arena_topo.model.cluster import Fabric, GpuNode, Holder, Snapshot, Taint
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.placement_options import TopologyPolicy
from arena_topo.model.plan import Demand, GangDemand, Placement
from arena_topo.model.pods import untolerated
from arena_topo.model.text.quantity import Resources
from arena_topo.model.text.words import last_part, natural_sort_key
from arena_topo.planner.gpus.machine import MachineCatalog, free_mask
from arena_topo.planner.memo import Memo
from arena_topo.planner.offers import (
    NodeState,
    PlanningTables,
    Use,
    alignment_of,
    card_rate,
    containers_of,
    free_rate,
)

# Nodes that are equally good for a demand, because they are in one state and have as much free of what it
# asks for.
#
# A fleet of ten thousand nodes has some hundred groups of such nodes. What depends on a node alone is
# computed once for each group, and where its nodes are in a domain is found by bisection: no node has to be
# looked at by itself.

_FEWEST_OF_A_GROUP = 4
"""Groups of fewer nodes, in the mean, save no time."""


@dataclass(frozen=True, slots=True, eq=False)
class AlikeNodes:
    """The nodes of a fleet in groups: the group of each node, and each group's state, free amounts and nodes.

    ``ids`` are bytes where the groups are few. ``free`` are the amounts of some resources in the order in
    which they were asked for, ``nodes`` positions in fabric order.
    """

    ids: Sequence[int]
    state_ids: Sequence[int]
    free: Sequence[Sequence[int]]
    nodes: Sequence[Sequence[int]]

    def between(self, group: int, start: int, end: int) -> Sequence[int]:
        """Return the nodes of *group* from *start* up to *end*."""
        nodes = self.nodes[group]
        first = bisect_left(nodes, start)
        return nodes[first : bisect_left(nodes, end, first)]


def _alike_nodes(state_ids: Sequence[int], free: Sequence[Sequence[int]]) -> AlikeNodes | None:
    """Return nodes in groups, by state and by what is *free* of each resource; None if nearly all differ.

    >>> groups = _alike_nodes([0, 0, 0, 0, 1, 1, 1, 1], [[9, 9, 9, 9, 9, 9, 9, 9]])
    >>> groups.nodes, groups.free
    (([0, 1, 2, 3], [4, 5, 6, 7]), ((9,), (9,)))
    >>> _alike_nodes([0, 0, 0, 0], [[6, 7, 8, 9]]) is None
    True
    """
    numbers: dict[tuple[int, ...], int] = {}
    ids = [numbers.setdefault(key, len(numbers)) for key in zip(state_ids, *free, strict=True)]
    if len(numbers) * _FEWEST_OF_A_GROUP > len(ids):
        return None
    nodes: tuple[list[int], ...] = tuple([] for _ in numbers)
    for position, group in enumerate(ids):
        nodes[group].append(position)
    by_node = bytes(ids) if len(numbers) <= _BYTE else ids
    return AlikeNodes(by_node, tuple(key[0] for key in numbers), tuple(key[1:] for key in numbers), nodes)


# An integer, because free amounts are subtracted and divided; more bytes than any node has.
_UNLIMITED = 1 << 62
_MOST_RESOURCES = 32
_MOST_TIERS = 64
_MOST_DOMAINS = 100_000
_FEW_WIDTHS = 17
_BYTE = 1 << 8
_MOST_FLEETS = 3
"""Fleets that are kept: of what is free, of what the head's reservation leaves, and of what will be free."""

_FEW = 100
"""Nodes whose states are recomputed in one step; a fleet that differs in fewer replaces the kept one."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A fabric domain: the nodes from ``start`` up to ``end`` in fabric order, named by ``path``."""

    path: tuple[str, ...]
    start: int
    end: int

    @property
    def name(self) -> str:
        """The domain's own name."""
        return self.path[-1] if self.path else "cluster"

    def has(self, position: int) -> bool:
        """Whether the node at *position* is in the domain."""
        return self.start <= position < self.end


Nested = tuple[Sequence[int], Sequence[Domain]]
"""The number of each node's domain, and the domains by number."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """The nodes in fabric order: by their domains from the top, then by name.

    ``state_ids`` gives each node the index of its state in ``states``; ``domains`` lists, tier by tier from
    coarse to fine, the domains as ranges of nodes, and ``paths`` each node's domains. The other attributes
    are derived from these when they are first needed, and kept: each is a function of the fleet, so no answer
    depends on what was asked before. (Their functions do not refer to the fleet itself, so that a fleet is
    freed as soon as nobody uses it.)
    """

    nodes: tuple[GpuNode, ...]
    state_ids: tuple[int, ...]
    states: tuple[NodeState, ...]
    tiers: tuple[str, ...]
    domains: tuple[tuple[Domain, ...], ...]
    paths: tuple[tuple[str, ...], ...]
    machines: MachineCatalog

    @property
    def cluster(self) -> Domain:
        """All nodes as one domain."""
        return Domain((), 0, len(self.nodes))

    def state(self, position: int) -> NodeState:
        """Return the state of the node at *position*."""
        return self.states[self.state_ids[position]]

    @cached_property
    def tables(self) -> PlanningTables:
        """What the states give gangs."""
        return PlanningTables(self.states)

    @cached_property
    def free(self) -> Memo[str, list[int]]:
        """The free amount of a resource on every node: ``fleet.free["cpu"]``.

        A node that reports neither its cpu nor its memory, such as one read from a matrix, has enough of
        both.
        """
        nodes = self.nodes
        return Memo(lambda resource: [_free(node, resource) for node in nodes], limit=_MOST_RESOURCES)

    @cached_property
    def least_free(self) -> Memo[str, int]:
        """The free amount of a resource on the node that has the least."""
        free = self.free
        return Memo(lambda resource: min(free[resource], default=0), limit=_MOST_RESOURCES)

    @cached_property
    def unused(self) -> list[int]:
        """How much cpu and memory each node has free, in steps of eight cores and of 64 GiB, added up."""
        return list(map(_unused, self.nodes))

    @cached_property
    def alike(self) -> Memo[tuple[str, ...], AlikeNodes | None]:
        """The nodes in groups by their state and free amounts of resources; None if nearly all differ."""
        state_ids, free = self.state_ids, self.free
        return Memo(
            lambda resources: _alike_nodes(state_ids, [free[resource] for resource in resources]),
            limit=_MOST_RESOURCES,
        )

    @cached_property
    def open_rooms(self) -> Memo[tuple[int, str], list[int | None]]:
        """By the GPUs of a worker and the resource it asks for, if any, how many a node of each state takes.

        None for a state that may refuse a pod: by readiness, taints, a cordon, its resource or NUMA.
        """
        states = self.states

        def room(state: NodeState, gpus: int, resource: str) -> int | None:
            if not state.ready or state.taints or state.unschedulable or state.alignment:
                return None
            if not gpus:
                return _UNLIMITED
            return state.free // gpus if not resource or resource == state.resource else None

        return Memo(lambda asked: [room(state, *asked) for state in states], limit=_MOST_RESOURCES)

    @cached_property
    def isolated(self) -> "Fleet":
        """The same fleet for isolated pods (``Demand.isolated``), with what does not depend on that."""
        fleet = replace(self, states=tuple(replace(state, isolated=True) for state in self.states))
        for name in ("free", "unused", "least_free", "alike", "open_rooms", "domain_numbers", "parts"):
            fleet.__dict__[name] = getattr(self, name)
        return fleet

    @cached_property
    def domain_numbers(self) -> Memo[int, Sequence[int]]:
        """The number of each node's domain by tier, 1 the coarsest, 0 the cluster; in none it has its own."""
        count, tiers = len(self.nodes), ((self.cluster,), *self.domains)
        return Memo(lambda tier: _domain_numbers(count, tiers[tier]), limit=_MOST_TIERS)

    @cached_property
    def parts(self) -> Memo[int, list[Domain]]:
        """The domains of a tier, 1 the coarsest, 0 the cluster; each node in none is a domain of its own."""
        count, tiers = len(self.nodes), ((self.cluster,), *self.domains)
        return Memo(lambda tier: _parts(count, tiers[tier]), limit=_MOST_TIERS)

    @cached_property
    def nested(self) -> Memo[int, Nested]:
        """The nodes by the domains of a tier, 1 the coarsest; what is in none, by the next finer tier's.

        A rack that is in no block is a block of its own here, as is a node that is in no rack either.
        """
        count, tiers = len(self.nodes), self.domains
        return Memo(lambda tier: _nested(count, tiers[tier - 1 :]), limit=_MOST_TIERS)

    @cached_property
    def without_hostname(self) -> list[int]:
        """The positions of the nodes that lack their hostname label; nearly always none."""
        return [position for position, node in enumerate(self.nodes) if HOSTNAME not in node.labels]

    @cached_property
    def has_alignment(self) -> bool:
        """Whether the kubelet of some node refuses pods that do not fit its NUMA nodes."""
        return any(state.alignment for state in self.states)

    @cached_property
    def nodes_by_state(self) -> list[list[int]]:
        """The positions of the nodes of each state, ascending."""
        positions: list[list[int]] = [[] for _ in self.states]
        for position, state_id in enumerate(self.state_ids):
            positions[state_id].append(position)
        return positions

    @cached_property
    def free_gpus_before(self) -> list[int]:
        """The free GPUs on all nodes before each one, and on all nodes at the end."""
        return list(accumulate((self.states[state_id].free for state_id in self.state_ids), initial=0))

    @cached_property
    def free_rates(self) -> list[float]:
        """The NIC rate in GB/s that the jobs on a node leave free, by state: each GPU in use takes its share.

        A node that does not publish its rate has the lowest that is known, 1 where none is.
        """
        unknown = min((state.rate for state in self.states if state.rate), default=1.0)
        return [free_rate(state, unknown) for state in self.states]

    @cached_property
    def parents(self) -> list[list[int | None]]:
        """Tier by tier, the number of the coarser domain around each domain, None if there is none."""
        coarser: tuple[Domain, ...] = ()
        parents: list[list[int | None]] = []
        for domains in self.domains:
            number_of = {domain.path: number for number, domain in enumerate(coarser)}
            parents.append([number_of.get(domain.path[:-1]) for domain in domains])
            coarser = domains
        return parents

    @cached_property
    def hardware_ids(self) -> list[int]:
        """The kind of hardware of each state: one number for states that differ only in what is in use."""
        numbers: dict[object, int] = {}
        return [
            numbers.setdefault((state.machine, state.rate, state.fastest, state.total), len(numbers))
            for state in self.states
        ]

    @cached_property
    def hardware(self) -> dict[int, NodeState]:
        """A state of each kind of hardware."""
        return dict(zip(self.hardware_ids, self.states, strict=True))

    @cached_property
    def card_rates(self) -> Memo[tuple[int, int, int], float]:
        """The rate in GB/s of isolated pods: by the GPUs of each, the id of their node's state, and how many.

        Nodes of one state have the same cards: the sum of their rates and the fastest are part of it.
        """
        nodes, tables = self.nodes, self.tables
        first = [positions[0] for positions in self.nodes_by_state]

        def rate(key: tuple[int, int, int]) -> float:
            gpus, state_id, pods = key
            offer = tables.offer(gpus, Use.SEVERAL_NODES, state_id, pods, pods)
            return card_rate(nodes[first[state_id]], offer.choice, gpus, pods)

        return Memo(rate, limit=_MOST_DOMAINS)

    @cached_property
    def least_damages(self) -> Memo[tuple[int, int], Mapping[int, float]]:
        """The least damage on each kind of hardware, by the GPUs of a worker and the number of workers."""
        tables, kinds = self.tables, self.hardware_ids

        def least(key: tuple[int, int]) -> Mapping[int, float]:
            by_kind: dict[int, float] = {}
            for kind, damage in zip(kinds, tables.damages[key].damages, strict=True):
                by_kind[kind] = min(damage, by_kind.get(kind, inf))
            return by_kind

        return Memo(least, limit=_MOST_RESOURCES)

    @cached_property
    def hardware_by_domain(self) -> Memo[int, list[frozenset[int]]]:
        """The kinds of hardware in each domain of a tier, 1 the coarsest; 0 is the cluster."""
        by_node = list(map(self.hardware_ids.__getitem__, self.state_ids))
        tiers = ((self.cluster,), *self.domains)
        return Memo(
            lambda tier: [frozenset(by_node[domain.start : domain.end]) for domain in tiers[tier]],
            limit=_MOST_TIERS,
        )


def make_fleet(snapshot: Snapshot, machines: MachineCatalog | None = None) -> Fleet:
    """Return the fleet of *snapshot*, in any order of its nodes; *machines* of another fleet save time."""
    catalog = machines or MachineCatalog()
    # The same few domain names come once per node, and a natural sort key is slow to compute.
    place_of = cache(_place)
    placed = sorted(
        ((_path(node, snapshot.fabric), node) for node in snapshot.nodes),
        key=lambda entry: ([*map(place_of, entry[0])], _place(entry[1].name)),
    )
    states: dict[NodeState, int] = {}
    state_ids = tuple(states.setdefault(_state(node, catalog), len(states)) for _, node in placed)
    paths = [path for path, _ in placed]
    tiers = snapshot.fabric.tiers
    return Fleet(
        nodes=tuple(node for _, node in placed),
        state_ids=state_ids,
        states=tuple(states),
        tiers=tiers,
        domains=tuple(tuple(_ranges(paths, depth)) for depth in range(1, len(tiers) + 1)),
        paths=tuple(paths),
        machines=catalog,
    )


def changed(fleet: Fleet, nodes: Mapping[int, GpuNode]) -> Fleet:
    """Return *fleet* with other *nodes* of the same names: what ``make_fleet`` gives for all of them.

    What was derived of the others is kept, so that it takes as long as there are such nodes.
    """
    states = {state: state_id for state_id, state in enumerate(fleet.states)}
    state_ids, others = list(fleet.state_ids), list(fleet.nodes)
    same_labels = all(node.labels == others[position].labels for position, node in nodes.items())
    for position, node in nodes.items():
        others[position] = node
        state_ids[position] = states.setdefault(_state(node, fleet.machines), len(states))
    # States are numbered as they come in fabric order, and those that no node has any more are left out.
    order = dict.fromkeys(state_ids)
    number = {state_id: at for at, state_id in enumerate(order)}
    known = tuple(states)
    after = replace(
        fleet,
        nodes=tuple(others),
        state_ids=tuple(map(number.__getitem__, state_ids)),
        states=tuple(known[state_id] for state_id in order),
    )
    _keep_derived(fleet, after, nodes, same_labels=same_labels)
    return after


def _keep_derived(before: Fleet, after: Fleet, nodes: Mapping[int, GpuNode], *, same_labels: bool) -> None:
    """Have *after* know what was derived of *before* and does not depend on *nodes*, in which they differ."""
    known = vars(before)
    for resource, amounts in known.get("free", {}).items():
        after.free[resource] = amounts.copy()
        for position, node in nodes.items():
            after.free[resource][position] = _free(node, resource)
    if "unused" in known:
        vars(after)["unused"] = known["unused"].copy()
        for position, node in nodes.items():
            after.unused[position] = _unused(node)
    # Domains are the same, and so is what is derived of them alone.
    for name in ("parents", "parts", "nested", *(("without_hostname",) if same_labels else ())):
        if name in known:
            vars(after)[name] = known[name]


class Fleets:
    """The fleets of successive snapshots; those of the same nodes and fabric are derived from the nearest.

    A few are kept that are far from each other: a reader that looks at what is free now, and at what will be,
    changes between the two. An answer is what ``make_fleet`` gives, whatever was asked before. One thread at
    a time may ask.
    """

    def __init__(self) -> None:
        """Keep no fleet yet."""
        self._machines = MachineCatalog()
        self._kept: list[tuple[Snapshot, Fleet]] = []
        self._positions: Sequence[int] = ()

    def of(self, snapshot: Snapshot) -> Fleet:
        """Return the fleet of *snapshot*."""
        nearest = self._nearest(snapshot)
        if nearest is None:
            fleet = make_fleet(snapshot, machines=self._machines)
            at = {node.name: position for position, node in enumerate(fleet.nodes)}
            self._positions = [at[node.name] for node in snapshot.nodes]
            self._kept = [(snapshot, fleet)]
            return fleet
        number, differing = nearest
        others = {self._positions[index]: snapshot.nodes[index] for index in differing}
        fleet = changed(self._kept[number][1], others) if others else self._kept[number][1]
        if len(differing) <= _FEW:
            del self._kept[number]
        self._kept = [*self._kept, (snapshot, fleet)][-_MOST_FLEETS:]
        return fleet

    def _nearest(self, snapshot: Snapshot) -> tuple[int, list[int]] | None:
        """Return the kept snapshot that differs least, and where; None if names or fabric differ."""
        found = (
            (number, differing)
            for number, (each, _) in enumerate(self._kept)
            if (differing := _differing(each, snapshot)) is not None
        )
        return min(found, key=lambda each: len(each[1]), default=None)

    def approach(self, snapshot: Snapshot) -> Iterator[None]:
        """Come so close to *snapshot* that its fleet is derived at once; yield after each few nodes.

        One that differs in all nodes of a thousand takes tens of milliseconds, and something else may have to
        come first.
        """
        nearest = self._nearest(snapshot)
        if nearest is None:
            return
        number, differing = nearest
        nodes = list(self._kept[number][0].nodes)
        # The last few are those of the question itself.
        for first in range(0, len(differing) - _FEW, _FEW):
            for index in differing[first : first + _FEW]:
                nodes[index] = snapshot.nodes[index]
            self.of(replace(snapshot, nodes=tuple(nodes)))
            yield


def _differing(before: Snapshot, after: Snapshot) -> list[int] | None:
    """Return where the nodes of two snapshots are not the same objects; None if names or fabrics differ."""
    if before.fabric is not after.fabric or len(before.nodes) != len(after.nodes):
        return None
    places = list(compress(range(len(after.nodes)), map(is_not, before.nodes, after.nodes)))
    same_names = all(before.nodes[index].name == after.nodes[index].name for index in places)
    return places if same_names else None


def aligned(fleet: Fleet, demand: Demand) -> Fleet:
    """Return *fleet* with what of *demand* decides which sets of GPUs a node gives.

    That is what the containers ask for where kubelets align them, and whether the pods are isolated. Most
    fleets have no such node, and most pods no RDMA cards: they get the fleet as it is.
    """
    if demand.isolated:
        fleet = fleet.isolated
    if not fleet.has_alignment:
        return fleet
    states = tuple(
        replace(state, containers=containers_of(demand, state.resource)) if state.alignment else state
        for state in fleet.states
    )
    return replace(fleet, states=states)


def emptied(fleet: Fleet) -> Fleet:
    """Return *fleet* as it would be with no pod on it."""
    # Only a node that lists its GPUs can say that none of them is in use.
    nodes = tuple(
        replace(
            node,
            requested={},
            holders=(),
            used=frozenset() if node.gpus else node.used,
            zones=node.zones and node.zones.emptied(),
        )
        for node in fleet.nodes
    )
    paths = {node.name: path for node, path in zip(fleet.nodes, fleet.paths, strict=True)}
    return make_fleet(Snapshot(nodes, Fabric(fleet.tiers, paths)), machines=fleet.machines)


def without_holders(node: GpuNode, holders: Sequence[Holder]) -> GpuNode:
    """Return *node* without the pods *holders*; their cpu and memory are unknown, and count as in use."""
    count = sum(holder.gpus for holder in holders)
    freed = {index for holder in holders for index in holder.indices or ()}
    return replace(
        node,
        requested=requested_after(node, -count, -len(holders)),
        used=None if node.used is None else node.used - freed,
        holders=tuple(holder for holder in node.holders if holder not in holders),
    )


def holders_by_job(fleet: Fleet) -> Mapping[str, Mapping[int, Sequence[Holder]]]:
    """Return the pods that hold GPUs by their job, ``job namespace/name``, and the position of their node.

    A pod without a job is one of its own: ``pod namespace/name``.
    """
    by_job: dict[str, dict[int, list[Holder]]] = {}
    for position, node in enumerate(fleet.nodes):
        for holder in node.holders:
            kind = "job" if holder.job else "pod"
            by_node = by_job.setdefault(f"{kind} {holder.namespace}/{holder.job or holder.pod}", {})
            by_node.setdefault(position, []).append(holder)
    return by_job


def requested_after(node: GpuNode, gpus: int, pods: int) -> Mapping[str, int]:
    """Return what is requested of *node* once so many *gpus* and *pods* more have come, or gone."""
    changes = {node.gpu_resource: gpus, "pods": pods}
    return {
        **node.requested,
        **{name: max(node.requested.get(name, 0) + more, 0) for name, more in changes.items()},
    }


def _path(node: GpuNode, fabric: Fabric) -> tuple[str, ...]:
    path = fabric.paths.get(node.name, ())
    # An empty name stands for a tier in which the node has no domain; every path has all tiers.
    return (*path, *[""] * (len(fabric.tiers) - len(path)))[: len(fabric.tiers)]


def _place(name: str) -> tuple[object, str]:
    # Names such as a1 and a01 have equal natural keys, and their order must not depend on the snapshot's.
    return natural_sort_key(name), name


def _ranges(paths: Sequence[tuple[str, ...]], depth: int) -> list[Domain]:
    """Return the domains of the tier at *depth*; a node without one there is in none."""
    domains: list[Domain] = []
    start = 0
    for end in range(1, len(paths) + 1):
        if end == len(paths) or paths[end][:depth] != paths[start][:depth]:
            if paths[start][depth - 1]:
                domains.append(Domain(paths[start][:depth], start, end))
            start = end
    return domains


def _domain_numbers(count: int, domains: Sequence[Domain]) -> list[int]:
    numbers = list(range(-count, 0))
    for number, domain in enumerate(domains):
        numbers[domain.start : domain.end] = [number] * (domain.end - domain.start)
    return numbers


def _parts(count: int, domains: Sequence[Domain]) -> list[Domain]:
    parts, start = list[Domain](), 0
    for domain in domains:
        parts += [Domain((), at, at + 1) for at in range(start, domain.start)]
        parts.append(domain)
        start = domain.end
    return parts + [Domain((), at, at + 1) for at in range(start, count)]


def _nested(count: int, tiers: Sequence[Sequence[Domain]]) -> Nested:
    parts = [Domain((), at, at + 1) for at in range(count)]
    for domains in reversed(tiers):
        outside, around = iter(parts), list[Domain]()
        part = next(outside, None)
        for domain in domains:
            while part and part.start < domain.start:
                around.append(part)
                part = next(outside, None)
            while part and part.start < domain.end:
                part = next(outside, None)
            around.append(domain)
        parts = [*around, *([part] if part else ()), *outside]
    return [number for number, part in enumerate(parts) for _ in range(part.start, part.end)], parts


def _state(node: GpuNode, machines: MachineCatalog) -> NodeState:
    mask = free_mask(node)
    # The mask leaves out unhealthy GPUs, which a node may still count as allocatable.
    free = node.gpu_free if mask is None else min(node.gpu_free, mask.bit_count())
    rates = [nic.rate for nic in node.nics]
    return NodeState(
        resource=node.gpu_resource,
        free=free,
        total=node.gpu_total,
        mask=mask,
        machine=machines.machine_of(node),
        rate=sum(rates),
        fastest=max(rates, default=0.0),
        taints=node.taints,
        unschedulable=node.unschedulable,
        ready=node.ready,
        alignment=alignment_of(node, mask) if node.zones else None,
    )


def _free(node: GpuNode, resource: str) -> int:
    if not node.reports(resource):
        return _UNLIMITED
    # Pods may request more than is allocatable when a node has lost capacity since they were bound.
    return max(node.allocatable.get(resource, 0) - node.requested.get(resource, 0), 0)


_UNITS = {"cpu": 8_000, "memory": 2**36}
"""Millicores and bytes of which differences count: what each node runs of its own is less."""


def _unused(node: GpuNode) -> int:
    # What a node does not report cannot be used up.
    return sum([_free(node, name) // unit for name, unit in _UNITS.items() if name in node.allocatable])


# The levels of a fabric, from one node up to the whole cluster, and which of their domains hold a gang.

# More places than a fleet has.
_UNBOUNDED = 1 << 62
_NODE = "node"
_CLUSTER = "cluster"


@dataclass(frozen=True, eq=False)
class Capacity:
    """How many workers of one gang the nodes of a fleet take.

    ``places`` counts them node by node, ``before`` those on all earlier nodes, so that a domain's places are
    a difference of two entries. ``by_state`` counts them by the id of a node's state, None where nodes of one
    state differ. ``alike`` are groups of nodes with as many places each, None where that takes a look at the
    nodes themselves; ``by_group`` then counts them by group.

    With the places 3, 2, 0, 4 on four nodes ``before`` is 0, 3, 5, 5, 9, and the domain of the last two nodes
    has 9 - 5 = 4 places.
    """

    places: Sequence[int]
    by_state: Sequence[int] | None = None
    alike: AlikeNodes | None = None
    by_group: Sequence[int] = ()

    @cached_property
    def before(self) -> Sequence[int]:
        """The places on all nodes before each one, and on all nodes at the end."""
        return list(accumulate(self.places, initial=0))

    @cached_property
    def most(self) -> int:
        """The places on the widest node."""
        return max(self.places, default=0)

    @cached_property
    def _packed(self) -> bytes:
        """The places of each node as one byte, so that nodes are counted at once; empty if one has more."""
        if isinstance(self.places, bytes):
            return self.places
        return bytes(self.places) if self.most < _BYTE else b""

    @cached_property
    def _wide(self) -> Memo[int, bytes]:
        """By a number of places, a 1 for each node that has as many or more, and a 0 for each other."""
        places, packed = self.places, self._packed

        def wide(least: int) -> bytes:
            if packed:
                return packed.translate(bytes(map(least.__le__, range(_BYTE))))
            return bytes(map(least.__le__, places))

        return Memo(wide, limit=_MOST_RESOURCES)

    def wide_in(self, domains: Iterable[Domain], least: int) -> list[int]:
        """Return how many nodes of each of *domains* have *least* places or more."""
        count = self._wide[least].count
        return [count(1, domain.start, domain.end) for domain in domains]

    @cached_property
    def widths(self) -> Memo[tuple[int, int], Sequence[tuple[int, int]]]:
        """By two positions, each number of places that nodes from one up to the other have, the most first.

        Each with how many nodes have it: of nodes with 3, 2, 0 and 3 places it is (3, 2), (2, 1), (0, 1).
        """
        places, count = self.places, self._packed.count
        widths = range(self.most, -1, -1)
        few = self._packed and len(widths) <= _FEW_WIDTHS

        def counted(ends: tuple[int, int]) -> Sequence[tuple[int, int]]:
            if few:
                return [(width, times) for width in widths if (times := count(width, *ends))]
            return sorted(Counter(places[slice(*ends)]).items(), reverse=True)

        return Memo(counted, limit=_MOST_DOMAINS)

    def within(self, domain: Domain) -> int:
        """Return the places in *domain*."""
        return self.before[domain.end] - self.before[domain.start]

    @property
    def total(self) -> int:
        """The places on all nodes."""
        return self.before[-1]


def capacity_of(places: Sequence[int], by_state: Sequence[int] | None = None) -> Capacity:
    """Return the capacity that *places* are, node by node in fabric order."""
    return Capacity(places, by_state)


def capacity_by_domain(capacity: Capacity, domains: Sequence[Domain]) -> list[int]:
    """Return the places in each of *domains*."""
    before = capacity.before
    return [before[domain.end] - before[domain.start] for domain in domains]


Room = tuple[int, ...]
"""The places in a domain, and in each coarser domain around it, the finest first."""


def rooms(fleet: Fleet, capacity: Capacity, depth: int) -> list[Room]:
    """Return the room of each domain of the tier at *depth*, 1 for the coarsest; depth 0 is the cluster.

    With two racks of 3 and 5 places in a block of 8, and a rack of 3 in a block of its own, the rooms of the
    racks are (3, 8), (5, 8) and (3, 3): of the two racks with 3 places the last one is the tighter, and the
    first block stays whole.
    """
    if depth == 0:
        return [(capacity.total,)]
    own = capacity_by_domain(capacity, fleet.domains[depth - 1])
    if depth == 1:
        return [(places,) for places in own]
    around = rooms(fleet, capacity, depth - 1)
    # What is not in any coarser domain is taken after what is equally tight and in one.
    nowhere = (_UNBOUNDED,) * (depth - 1)
    return [
        (places, *(nowhere if parent is None else around[parent]))
        for places, parent in zip(own, fleet.parents[depth - 1], strict=True)
    ]


def level_names(fleet: Fleet) -> tuple[str, ...]:
    """Return the names of the levels of *fleet*, the closest first: ``node``, the tiers, ``cluster``."""
    return (_NODE, *reversed(fleet.tiers), _CLUSTER)


def level_words(fleet: Fleet) -> tuple[str, ...]:
    """Return ``level_names`` as people say them: a label key by its last part, if that is unique."""
    names = level_names(fleet)
    short = [last_part(name) for name in names]
    return tuple(
        last if last and short.count(last) == 1 else name for name, last in zip(names, short, strict=True)
    )


def domains_at(fleet: Fleet, level: int) -> Sequence[Domain]:
    """Return the domains of *level*, an index into ``level_names``."""
    if level == 0:
        return [Domain((node.name,), position, position + 1) for position, node in enumerate(fleet.nodes)]
    if level > len(fleet.tiers):
        return [fleet.cluster]
    return fleet.domains[len(fleet.tiers) - level]


def level_of(fleet: Fleet, name: str, flag: str) -> int:
    """Return the index of the level called *name*: ``node``, ``cluster``, or a tier's name.

    Raises ``UsageError``, naming *flag*, for a level that the fabric does not have.
    """
    names = level_names(fleet)
    # To Kubernetes a single node is a topology domain too, by its hostname label.
    plain = _NODE if name == HOSTNAME else name
    if plain in names:
        return names.index(plain)
    # A label key may be given by its last part, as the tables print it, where only one level ends in it.
    short = [name for name in names if last_part(name) == plain]
    if len(short) == 1:
        return names.index(short[0])
    raise UsageError(
        f"{flag}: the fabric has no level {name!r}",
        hint=f"its levels are: {', '.join(names)}; --topology-levels names labels to use instead",
    )


@dataclass(frozen=True, slots=True)
class LevelLimits:
    """The levels that a demand allows: ``closest`` to ``widest``; all up to ``closest`` count as one."""

    closest: int
    widest: int


def level_limits(demand: Demand | GangDemand, fleet: Fleet) -> LevelLimits:
    """Return the levels among which *demand* lets the planner choose; raises ``UsageError``."""
    widest = len(fleet.tiers) + 1
    closest = 0
    if demand.required_level:
        widest = level_of(fleet, demand.required_level, "--require-topology")
    if demand.preferred_level:
        # A required level goes before a wider preferred one.
        closest = min(level_of(fleet, demand.preferred_level, "--prefer-topology"), widest)
    return LevelLimits(closest, widest)


def policy_limits(demand: Demand | GangDemand, fleet: Fleet) -> LevelLimits:
    """Return the levels that will do for *demand*; raises ``UsageError``."""
    limits = level_limits(demand, fleet)
    # Without a policy all levels count as the widest one, and only the number of nodes decides.
    return LevelLimits(limits.widest, limits.widest) if demand.policy is TopologyPolicy.NONE else limits


def closest_level(fleet: Fleet, capacity: Capacity, workers: int, limits: LevelLimits) -> int | None:
    """Return the closest level that has a domain with *workers* places, None where no allowed level has."""
    for level in range(limits.closest, limits.widest + 1):
        if level == 0:
            if capacity.most >= workers:
                return level
        elif max(capacity_by_domain(capacity, domains_at(fleet, level)), default=-1) >= workers:
            return level
    return None


def spanned(fleet: Fleet, first: int, last: int) -> tuple[int, Domain]:
    """Return the closest level with a domain that holds the nodes at *first* and *last*, and that domain."""
    if first == last:
        return 0, Domain((fleet.nodes[first].name,), first, first + 1)
    for level in range(1, len(fleet.tiers) + 1):
        domain = domain_at(fleet.domains[len(fleet.tiers) - level], first)
        # The node at *last* comes later in fabric order, so the domain holds it if it reaches that far.
        if domain and last < domain.end:
            return level, domain
    return len(fleet.tiers) + 1, fleet.cluster


def domain_at(domains: Sequence[Domain], position: int) -> Domain | None:
    """Return the one of *domains*, in fabric order, that holds the node at *position*, or None."""
    index = bisect_right(domains, position, key=attrgetter("start")) - 1
    return domains[index] if index >= 0 and position < domains[index].end else None


# How many workers of a gang each node takes, and whether its launcher fits: what kube-scheduler would check.
#
# Source of the rules: ``k8s.io/kubernetes/pkg/scheduler/framework/plugins`` (noderesources, nodeaffinity,
# tainttoleration, nodeunschedulable). What the kubelet then checks, which the scheduler does not foresee, is
# in ``alignment``.

# NodeUnschedulable lets a pod onto a cordoned node if the pod tolerates this taint.
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
# For each host that is tried for the launcher, the workers are placed once more.
_MOST_HOSTS = 32


def capacity_for(demand: Demand, fleet: Fleet, reserved: tuple[int, Resources] | None = None) -> Capacity:
    """Return how many workers of *demand* fit on every node of *fleet*, at most all of them.

    *reserved* is a node's position and what must stay free on it for another pod.
    """
    by_state = _by_state(demand, fleet)
    most = max(by_state, default=0)
    asked = requests(demand)
    # Mostly even the node with the least has enough, and no node has to be looked at.
    short = {name: amount for name, amount in asked.items() if fleet.least_free[name] < amount * most}
    by_label = demand.node_selector or demand.affinity or (demand.needs_hostname and fleet.without_hostname)
    if not (reserved or by_label) and (groups := fleet.alike[tuple(short)]):
        return _of_groups(groups, by_state, tuple(short.values()))
    places = list(map(by_state.__getitem__, fleet.state_ids))
    # The reserved node has less room than its equals, so places do not follow from a node's state alone.
    alike = reserved is None
    if demand.node_selector or demand.affinity:
        alike = not _unselect(demand, fleet, places) and alike
    if demand.needs_hostname:
        for position in fleet.without_hostname:
            places[position], alike = 0, False
    for resource, amount in asked.items():
        if resource in short:
            alike = not _limit(places, fleet.free[resource], amount, most) and alike
        # The launcher's pod takes one of the node's places for pods, too.
        if reserved:
            position, launcher = reserved
            left = fleet.free[resource][position] - {"pods": 1, **launcher}.get(resource, 0)
            places[position] = max(min(places[position], left // amount), 0)
    return capacity_of(places, by_state if alike else None)


def _of_groups(alike: AlikeNodes, by_state: Sequence[int], amounts: Sequence[int]) -> Capacity:
    """Return the capacity of nodes in groups with free amounts, of which each worker takes *amounts*."""
    by_group = [by_state[state_id] for state_id in alike.state_ids]
    whole = by_group
    for index, amount in enumerate(amounts):
        by_group = [min(most, free[index] // amount) for most, free in zip(by_group, alike.free, strict=True)]
    ids = alike.ids
    places: Sequence[int]
    if isinstance(ids, bytes) and max(by_group, default=0) < _BYTE:
        # One call for all nodes takes a fiftieth of the time.
        places = ids.translate(bytes(by_group).ljust(_BYTE))
    else:
        places = list(map(by_group.__getitem__, ids))
    return Capacity(places, by_state if by_group == whole else None, alike, by_group)


def requests(demand: Demand) -> Resources:
    """Return what one worker asks of a node besides GPUs, its place among the node's pods included."""
    return {"pods": 1, **{name: amount for name, amount in demand.requests.items() if amount > 0}}


def open_to(demand: Demand, state: NodeState) -> bool:
    """Whether nodes of *state* take pods with the tolerations of *demand* at all."""
    if not state.ready or (state.taints and untolerated(state.taints, demand.tolerations)):
        return False
    return not state.unschedulable or not untolerated((CORDON,), demand.tolerations)


def selected(demand: Demand, node: GpuNode) -> bool:
    """Whether *node* meets the node selector and the required node affinity of *demand*."""
    labels = node.labels
    if any(labels.get(key) != value for key, value in demand.node_selector.items()):
        return False
    return not demand.affinity or any(term.selects(node.name, labels) for term in demand.affinity)


def serves_resource(demand: Demand, state: NodeState) -> bool:
    """Whether nodes of *state* hand out GPUs by the resource that *demand* asks for."""
    return not demand.gpu_resource or demand.gpu_resource == state.resource


def reshaped(demand: Demand, gpus: int) -> Demand:
    """Return *demand* as workers of *gpus* GPUs each, with as many GPUs in all and requests in proportion.

    Four workers of two GPUs and 3 cpu become two workers of four GPUs and 6 cpu.
    """
    # Rounded up, so that the pods of a shape never ask for less in all than those that were asked for.
    in_proportion = {name: -(-amount * gpus // demand.gpus) for name, amount in demand.requests.items()}
    containers = tuple(
        {name: -(-amount * gpus // demand.gpus) for name, amount in asked.items()}
        for asked in demand.containers
    )
    workers = demand.workers * demand.gpus // gpus
    return replace(
        demand, workers=workers, gpus=gpus, requests=in_proportion, containers=containers, coalesce=False
    )


def launcher_fits(demand: Demand, fleet: Fleet, answer: Placement) -> bool:
    """Whether some node still has what the launcher asks once the workers are placed as in *answer*.

    A gang whose launcher stays Pending never starts.
    """
    workers = Counter(slot.node for slot in answer.slots)
    asked, worker = demand.launcher or {}, requests(demand)
    return any(
        _has(asked, fleet, position, {name: n * workers[node.name] for name, n in worker.items()})
        for position, node in enumerate(fleet.nodes)
        if _may_host_launcher(demand, fleet, position)
    )


def launcher_hosts(demand: Demand, fleet: Fleet) -> Iterator[int]:
    """Yield nodes that have what the launcher asks as they are now, those with the fewest free GPUs first."""
    hosts = [
        position
        for position in range(len(fleet.nodes))
        if _may_host_launcher(demand, fleet, position) and _has(demand.launcher or {}, fleet, position, {})
    ]
    # A node without free GPUs takes no worker, so that keeping room on it costs the workers nothing.
    hosts.sort(key=lambda position: fleet.state(position).free)
    yield from hosts[:_MOST_HOSTS]


def _by_state(demand: Demand, fleet: Fleet) -> list[int]:
    """Return the places on nodes of each state by their GPUs, their taints and their NUMA nodes."""
    most = 1 if demand.one_per_node else demand.workers
    return [
        # What most states are takes no call.
        _places(demand, state) if room is None else min(room, most)
        for state, room in zip(fleet.states, fleet.open_rooms[demand.gpus, demand.gpu_resource], strict=True)
    ]


def _places(demand: Demand, state: NodeState) -> int:
    if state.free < demand.gpus or not open_to(demand, state):
        return 0
    most = 1 if demand.one_per_node else demand.workers
    # Only cpu, memory and pods limit a gang without GPUs, and those are looked up node by node.
    if demand.gpus:
        most = min(state.free // demand.gpus, most) if serves_resource(demand, state) else 0
    if state.alignment is None:
        return most
    return state.alignment.admitted(containers_of(demand, state.resource), most)


def _unselect(demand: Demand, fleet: Fleet, places: list[int]) -> bool:
    """Set *places* to 0 in place where a node's labels do not fit; whether there was such a node."""
    wrong = [
        position
        for position, count in enumerate(places)
        if count and not selected(demand, fleet.nodes[position])
    ]
    for position in wrong:
        places[position] = 0
    return bool(wrong)


def _limit(places: list[int], free: list[int], amount: int, most: int) -> bool:
    """Lower *places*, up to *most*, in place to how often *free* holds *amount*; whether any was lowered."""
    needed = [amount * count for count in range(most + 1)]
    short = list(compress(range(len(places)), map(lt, free, map(needed.__getitem__, places))))
    for position in short:
        places[position] = free[position] // amount
    return bool(short)


def _may_host_launcher(demand: Demand, fleet: Fleet, position: int) -> bool:
    labels = fleet.nodes[position].labels
    selector = demand.launcher_selector.items()
    return open_to(demand, fleet.state(position)) and all(labels.get(key) == value for key, value in selector)


def _has(asked: Resources, fleet: Fleet, position: int, taken: Resources) -> bool:
    return all(
        fleet.free[name][position] - taken.get(name, 0) >= amount
        for name, amount in {"pods": 1, **asked}.items()
    )
