"""The nodes of a snapshot in fabric order, laid out so that a decision looks at each of them only once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, compress
from operator import is_not

from arena_topo.model.cluster.snapshot import Fabric, GpuNode, Holder, Snapshot
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.notation.words import natural_sort_key
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.gpus.machine import MachineCatalog, free_mask
from arena_topo.planner.memo import Memo
from arena_topo.planner.nodes.alignment import alignment_of, containers_of
from arena_topo.planner.nodes.alike_nodes import AlikeNodes, alike_nodes
from arena_topo.planner.nodes.node_state import NodeState, PlanningTables, free_rate

# An integer, because free amounts are subtracted and divided; more bytes than any node has.
_UNLIMITED = 1 << 62
_MOST_RESOURCES = 32
_MOST_TIERS = 64
_MOST_FLEETS = 3
"""Fleets that are kept: of what is free, of what is left beside a place that is kept, and of what will be free."""

_FEW = 100
"""Nodes whose states are recomputed in one step, and in which a fleet differs at most from the one whose place it takes."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A fabric domain: the nodes from ``start`` up to ``end`` in fabric order; ``path`` names it from the top."""

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


@dataclass(frozen=True, eq=False)
class Fleet:
    """The nodes in fabric order: by their domains from the top, then by name.

    ``state_ids`` gives each node the index of its state in ``states``; ``domains`` lists, tier by tier from coarse to
    fine, the domains as ranges of nodes, and ``paths`` each node's domains. The other attributes are derived from these
    when they are first needed, and kept: each is a function of the fleet, so no answer depends on what was asked
    before. (Their functions do not refer to the fleet itself, so that a fleet is freed as soon as nobody uses it.)
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

        A node that reports neither its cpu nor its memory, such as one read from a matrix, has enough of both.
        """
        nodes = self.nodes
        return Memo(lambda resource: [_free(node, resource) for node in nodes], limit=_MOST_RESOURCES)

    @cached_property
    def least_free(self) -> Memo[str, int]:
        """The free amount of a resource on the node that has the least."""
        free = self.free
        return Memo(lambda resource: min(free[resource], default=0), limit=_MOST_RESOURCES)

    @cached_property
    def alike(self) -> Memo[tuple[str, ...], AlikeNodes | None]:
        """The nodes in groups by their state and what they have free of some resources; None where nearly all differ."""
        state_ids, free = self.state_ids, self.free
        return Memo(
            lambda resources: alike_nodes(state_ids, [free[resource] for resource in resources]),
            limit=_MOST_RESOURCES,
        )

    @cached_property
    def open_to_all(self) -> list[bool]:
        """Whether nodes of each state are ready, without taints and cordon, and their kubelet refuses no pod."""
        return [
            state.ready and not (state.taints or state.unschedulable or state.alignment)
            for state in self.states
        ]

    @cached_property
    def domain_numbers(self) -> Memo[int, Sequence[int]]:
        """A number for the domain of each node by the tier, 1 the coarsest, 0 the cluster; a node in none has its own."""
        count, tiers = len(self.nodes), ((self.cluster,), *self.domains)
        return Memo(lambda tier: _domain_numbers(count, tiers[tier]), limit=_MOST_TIERS)

    @cached_property
    def parts(self) -> Memo[int, list[Domain]]:
        """The domains of a tier, 1 the coarsest, 0 the cluster, in fabric order, each node that is in none as one of its own."""
        count, tiers = len(self.nodes), ((self.cluster,), *self.domains)
        return Memo(lambda tier: _parts(count, tiers[tier]), limit=_MOST_TIERS)

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
        """The NIC rate in GB/s that the jobs on a node leave free, by state: each GPU in use takes its share of it.

        A node that does not publish its rate has the lowest that is known, 1 where none is.
        """
        unknown = min((state.rate for state in self.states if state.rate), default=1.0)
        return [free_rate(state, unknown) for state in self.states]

    @cached_property
    def parents(self) -> list[list[int | None]]:
        """Tier by tier, the number of the coarser domain around each domain, None where there is none."""
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
    def hardware_by_domain(self) -> Memo[int, list[frozenset[int]]]:
        """The kinds of hardware in each domain of a tier, by the tier's number from 1, the coarsest; 0 is the cluster."""
        by_node = list(map(self.hardware_ids.__getitem__, self.state_ids))
        tiers = ((self.cluster,), *self.domains)
        return Memo(
            lambda tier: [frozenset(by_node[domain.start : domain.end]) for domain in tiers[tier]],
            limit=_MOST_TIERS,
        )


def make_fleet(
    snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL, machines: MachineCatalog | None = None
) -> Fleet:
    """Return the fleet of *snapshot*, whatever the order of its nodes; *machines* of another fleet save time."""
    catalog = machines or MachineCatalog(model)
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
    """Return *fleet* with other *nodes* of the same names at some positions: what ``make_fleet`` gives for all of them.

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
    # Domains are the same, and so is what is derived of them alone.
    for name in ("parents", "parts", *(("without_hostname",) if same_labels else ())):
        if name in known:
            vars(after)[name] = known[name]


class Fleets:
    """The fleets of snapshots that follow each other; those of the same nodes in the same fabric are derived from the nearest one.

    A few are kept that are far from each other: whoever looks at what is free now, and at what will be, changes between the two.
    An answer is what ``make_fleet`` gives, whatever was asked before. One thread at a time may ask.
    """

    def __init__(self, model: BandwidthModel = DEFAULT_MODEL) -> None:
        """Take the bandwidth model of all fleets."""
        self._machines = MachineCatalog(model)
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
        """Return the number of the kept snapshot that differs least, and where it does; None where names or fabric are others."""
        found = (
            (number, differing)
            for number, (each, _) in enumerate(self._kept)
            if (differing := _differing(each, snapshot)) is not None
        )
        return min(found, key=lambda each: len(each[1]), default=None)

    def approach(self, snapshot: Snapshot) -> Iterator[None]:
        """Come so close to *snapshot* that its fleet is derived at once; yield after each few nodes.

        One that differs in all nodes of a thousand takes tens of milliseconds, and something else may have to come first.
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
    """Return where the nodes of two snapshots are not the same objects; None where names or fabrics differ."""
    if before.fabric is not after.fabric or len(before.nodes) != len(after.nodes):
        return None
    places = list(compress(range(len(after.nodes)), map(is_not, before.nodes, after.nodes)))
    same_names = all(before.nodes[index].name == after.nodes[index].name for index in places)
    return places if same_names else None


def aligned(fleet: Fleet, demand: Demand) -> Fleet:
    """Return *fleet* with the containers of *demand* known to the nodes whose kubelets align them.

    Which sets of GPUs such a node can give depends on what else its workers ask for. Most fleets have no such node, and
    are returned as they are.
    """
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
    """Return *node* once the pods *holders* have left it; their cpu and memory are not known, and count as in use."""
    count = sum(holder.gpus for holder in holders)
    freed = {index for holder in holders for index in holder.indices or ()}
    return replace(
        node,
        requested=requested_after(node, -count, -len(holders)),
        used=None if node.used is None else node.used - freed,
        holders=tuple(holder for holder in node.holders if holder not in holders),
    )


def requested_after(node: GpuNode, gpus: int, pods: int) -> Mapping[str, int]:
    """Return what is requested of *node* once so many *gpus* and *pods* more have come, or gone."""
    changes = {node.gpu_resource: gpus, "pods": pods}
    return {
        **node.requested,
        **{name: max(node.requested.get(name, 0) + more, 0) for name, more in changes.items()},
    }


def _path(node: GpuNode, fabric: Fabric) -> tuple[str, ...]:
    path = fabric.paths.get(node.name, ())
    # An empty name stands for a tier that the node has no domain in; every path is as long as there are tiers.
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
