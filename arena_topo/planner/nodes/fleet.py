"""The nodes of a snapshot in fabric order, laid out so that a decision looks at each of them but once."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from arena_topo.model.cluster.snapshot import Fabric, GpuNode, Snapshot, Taint
from arena_topo.model.notation.words import natural_sort_key
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.gpus.node_machine import Machine, free_mask, machine_of

_CORE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
_UNTOLD = 1 << 62
_KEPT = 4


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a decision sees of a node's GPUs and gates; nodes of one state are equally good for a gang.

    ``free`` and ``total`` count GPUs; ``mask`` has a bit for each free position, None where nothing tells which
    GPUs are free. ``rate`` is the sum of the NICs' rates in GB/s and ``fastest`` the highest, 0 where not known.
    """

    resource: str
    free: int
    total: int
    mask: int | None
    machine: Machine | None
    rate: float
    fastest: float
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool


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


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """The nodes in fabric order: by their domains from the top, then by name.

    ``kinds`` gives each node the index of its state in ``states``; ``domains`` lists, tier by tier from coarse to
    fine, the domains as ranges of nodes, and ``paths`` each node's domains.
    """

    nodes: tuple[GpuNode, ...]
    kinds: tuple[int, ...]
    states: tuple[NodeState, ...]
    tiers: tuple[str, ...]
    domains: tuple[tuple[Domain, ...], ...]
    paths: tuple[tuple[str, ...], ...]
    model: BandwidthModel = DEFAULT_MODEL
    _free: dict[str, list[int]] = field(default_factory=dict)
    _least: dict[str, int] = field(default_factory=dict)
    _kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def cluster(self) -> Domain:
        """All nodes as one domain."""
        return Domain((), 0, len(self.nodes))

    def free(self, resource: str) -> list[int]:
        """Return the free amount of *resource* on every node.

        A node that tells neither its cpu nor its memory, as one read from a matrix, has enough of both.
        """
        column = self._free.get(resource)
        if column is None:
            column = self._free[resource] = [_free(node, resource) for node in self.nodes]
        return column

    def least(self, resource: str) -> int:
        """Return the free amount of *resource* on the node that has the least."""
        if resource not in self._least:
            self._least[resource] = min(self.free(resource), default=0)
        return self._least[resource]

    def kept(self, name: Hashable) -> Any:
        """Return a dict that lives as long as the fleet, for what planners compute once for all gangs."""
        return self._kept.setdefault(name, {})

    @property
    def members(self) -> list[list[int]]:
        """The positions of the nodes of each state, ascending."""
        kept: dict[str, list[list[int]]] = self.kept("members")
        if not kept:
            found: list[list[int]] = [[] for _ in self.states]
            for at, kind in enumerate(self.kinds):
                found[kind].append(at)
            kept["kinds"] = found
        return kept["kinds"]

    def state(self, at: int) -> NodeState:
        """Return the state of the node at *at*."""
        return self.states[self.kinds[at]]


def fleet_of(snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Fleet:
    """Return the fleet of *snapshot*; asked again for the same snapshot, the one it made."""
    for known, fleet in _made:
        if known is snapshot and fleet.model is model:
            return fleet
    fleet = make_fleet(snapshot, model)
    _made.insert(0, (snapshot, fleet))
    del _made[_KEPT:]
    return fleet


_made: list[tuple[Snapshot, Fleet]] = []


def make_fleet(snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Fleet:
    """Return the fleet of *snapshot*, whatever the order of its nodes."""
    tiers = snapshot.fabric.tiers
    places = cache(_place)
    placed = sorted(
        ((_path(node, snapshot.fabric), node) for node in snapshot.nodes),
        key=lambda each: ([*map(places, each[0])], _place(each[1].name)),
    )
    states: dict[NodeState, int] = {}
    kinds = tuple(states.setdefault(_state(node, model), len(states)) for _, node in placed)
    paths = [path for path, _ in placed]
    return Fleet(
        nodes=tuple(node for _, node in placed),
        kinds=kinds,
        states=tuple(states),
        tiers=tiers,
        domains=tuple(tuple(_ranges(paths, depth)) for depth in range(1, len(tiers) + 1)),
        paths=tuple(paths),
        model=model,
    )


def changed(fleet: Fleet, nodes: Mapping[int, GpuNode]) -> Fleet:
    """Return *fleet* with other *nodes* of the same names at some positions."""
    states = {state: number for number, state in enumerate(fleet.states)}
    kinds, others = list(fleet.kinds), list(fleet.nodes)
    for at, node in nodes.items():
        others[at] = node
        kinds[at] = states.setdefault(_state(node, fleet.model), len(states))
    return replace(
        fleet, nodes=tuple(others), kinds=tuple(kinds), states=tuple(states), _free={}, _least={}, _kept={}
    )


def emptied(fleet: Fleet) -> Fleet:
    """Return *fleet* as it would be with no pod on it."""
    return make_fleet(
        Snapshot(
            nodes=tuple(
                replace(node, requested={}, holders=(), used=frozenset() if node.gpus else node.used)
                for node in fleet.nodes
            ),
            fabric=Fabric(
                fleet.tiers, {node.name: path for node, path in zip(fleet.nodes, fleet.paths, strict=True)}
            ),
        ),
        fleet.model,
    )


def _path(node: GpuNode, fabric: Fabric) -> tuple[str, ...]:
    path = fabric.paths.get(node.name, ())
    return (*path, *[""] * (len(fabric.tiers) - len(path)))[: len(fabric.tiers)]


def _place(name: str) -> tuple[object, str]:
    return natural_sort_key(name), name


def _ranges(paths: Sequence[tuple[str, ...]], depth: int) -> list[Domain]:
    """Return the domains of the tier at *depth*; a node without one there is in none."""
    found: list[Domain] = []
    start = 0
    for at in range(1, len(paths) + 1):
        if at == len(paths) or paths[at][:depth] != paths[start][:depth]:
            if paths[start][depth - 1]:
                found.append(Domain(paths[start][:depth], start, at))
            start = at
    return found


def _state(node: GpuNode, model: BandwidthModel) -> NodeState:
    mask = free_mask(node)
    free = node.gpu_free if mask is None else min(node.gpu_free, mask.bit_count())
    rates = [nic.rate for nic in node.nics]
    return NodeState(
        resource=node.gpu_resource,
        free=free,
        total=node.gpu_total,
        mask=mask,
        machine=machine_of(node, model),
        rate=sum(rates),
        fastest=max(rates, default=0.0),
        taints=node.taints,
        unschedulable=node.unschedulable,
        ready=node.ready,
    )


def _free(node: GpuNode, resource: str) -> int:
    allocatable = node.allocatable
    if resource in _CORE and "cpu" not in allocatable and "memory" not in allocatable:
        return _UNTOLD
    return max(allocatable.get(resource, 0) - node.requested.get(resource, 0), 0)
