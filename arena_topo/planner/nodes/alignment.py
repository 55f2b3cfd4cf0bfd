"""Which workers the kubelet of a node admits, by the rules of its topology manager.

For each resource that a container asks for, the sets of NUMA nodes that have as much free are its *hints*. A hint is
preferred where no smaller set would do on the empty machine. ``restricted`` admits the container if one set is a preferred
hint of every resource alike, ``single-numa-node`` if one NUMA node is; otherwise the pod fails with TopologyAffinityError,
which kube-scheduler does not foresee. The other policies admit every pod.

Of two NUMA nodes with 4 GPUs and 48 cores each, 4 GPUs and 16 cores are free on the first, 2 GPUs and 40 cores on the
second. A worker of 2 GPUs and 32 cores goes to the second. One of 4 GPUs and 32 cores is refused: its GPUs are on the
first, its cores on the second. With both free, one of 6 GPUs and 64 cores needs both NUMA nodes for either, so that
``restricted`` admits it; one of 6 GPUs and 32 cores is refused, because 32 cores alone need one.

Source: ``k8s.io/kubernetes/pkg/kubelet/cm/topologymanager`` (policy.go, policy_single_numa_node.go), ``devicemanager``
(topology_hints.go) and ``cpumanager`` (policy_static.go). Memory is left out: it is not known whether the kubelet's memory
manager is static, and mostly it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from arena_topo.model.cluster.numa import AlignmentPolicy, AlignmentScope, NumaZones
from arena_topo.model.cluster.pod_requests import CPU, is_aligned
from arena_topo.model.cluster.snapshot import GpuNode
from arena_topo.model.notation.quantity import total
from arena_topo.model.notation.words import plural, written_amount
from arena_topo.model.plan.demand import Demand
from arena_topo.planner.gpus.zone_rule import ZoneRule

_MOST_ZONES = 8
"""NUMA nodes that the topology manager takes unless it is told otherwise; with more of them it would try 2**n sets."""

Amounts = tuple[tuple[str, int], ...]
"""What one container asks, by resource."""
Row = tuple[int, ...]
"""A number for each NUMA node."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The NUMA nodes of a node whose kubelet refuses pods that do not fit them.

    ``resources`` are those that are tied to NUMA nodes, with their ``capacity`` and what is ``available`` of each, by NUMA
    node. ``gpu_resource`` is the one of the GPUs; ``positions`` are the GPUs on each NUMA node, as bits, empty where
    it is not known where each of them is.
    """

    policy: AlignmentPolicy
    scope: AlignmentScope
    gpu_resource: str
    resources: tuple[str, ...]
    capacity: tuple[Row, ...]
    available: tuple[Row, ...]
    positions: Row = ()

    def admitted(self, containers: Sequence[Amounts], most: int) -> int:
        """Return how many of *most* workers, whose *containers* ask so much, the kubelet admits."""
        parts = self._parts(containers)
        if not all(map(self._is_judged, parts)):
            return most
        if len(parts) == 1 and self._sets(parts[0]) == 1:
            # Alike and each on one NUMA node: which of them goes first does not matter.
            return min(sum(self._whole_workers(parts[0])), most)
        return len(self._one_by_one(parts, most)) if parts else most

    def rule(self, containers: Sequence[Amounts], workers: int, gpus: int) -> ZoneRule | None:
        """Return which GPUs so many *workers* of *gpus* GPUs can get; None where the kubelet lets them have any."""
        parts = self._parts(containers)
        if not self.positions or not any(self.gpu_resource in dict(part) for part in parts):
            return None
        if not all(map(self._is_judged, parts)):
            return None
        if len(parts) == 1 and self._sets(parts[0]) == 1:
            most = tuple(gpus * count for count in self._whole_workers(parts[0]))
            return ZoneRule(self.positions, most, gpus) if sum(most) >= workers * gpus else None
        shares = self._one_by_one(parts, workers)
        if len(shares) < workers:
            return None
        # The kubelet's own order of choice is the only one that is known to work out for larger workers.
        most = tuple(map(sum, zip(*shares, strict=True)))
        return ZoneRule(self.positions, most, gpus, tuple(shares)) if sum(most) == workers * gpus else None

    def after(self, containers: Sequence[Amounts], workers: int, gpus: int, mask: int) -> "Alignment":
        """Return what is left of the NUMA nodes once so many *workers*, whose *containers* ask so much, have come.

        *mask* are the positions of all the *gpus* GPUs of each, 0 where it is not known which they are: then the kubelet's own
        order of choice is followed.
        """
        parts = self._parts(containers)
        free = {name: list(row) for name, row in zip(self.resources, self.available, strict=True)}
        if mask and self.positions and len(parts) == 1 and self._sets(parts[0]) == 1:
            # What a worker has beside its GPUs is on their NUMA node.
            for zone, side in enumerate(self.positions):
                for name, count in parts[0]:
                    free[name][zone] -= count * ((mask & side).bit_count() // gpus)
        else:
            for part in parts * workers:
                self._admit(part, free)
            if mask and self.positions and self.gpu_resource in free:
                had = self.available[self.resources.index(self.gpu_resource)]
                taken = [(mask & side).bit_count() for side in self.positions]
                free[self.gpu_resource] = [has - less for has, less in zip(had, taken, strict=True)]
        return replace(
            self, available=tuple(tuple(max(left, 0) for left in free[name]) for name in self.resources)
        )

    def refusal(self, containers: Sequence[Amounts]) -> str:
        """Return why the kubelet would admit no worker whose *containers* ask so much, empty where it would."""
        parts = self._parts(containers)
        if self.admitted(containers, 1):
            return ""
        # Where each container would be admitted by itself, it is all of them that do not fit.
        refused = next((part for part in parts if not self._one_by_one([part], 1)), _sum(parts))
        words = " and ".join(self._words(refused))
        without_cores = [tuple((name, count) for name, count in part if name != CPU) for part in containers]
        # What it does with cores is its CPU manager's to say, and it is not known whether that is static.
        assumed = " (if its CPU manager is static)" if self.admitted(without_cores, 1) else ""
        sets = self._sets(refused)
        if sets is None and self.policy is AlignmentPolicy.RESTRICTED:
            return f"{words} need different numbers of NUMA nodes{assumed}"
        if sets is None or sets == 1:
            return f"no NUMA node has {words} free{assumed}"
        return f"no {sets} NUMA nodes have {words} free{assumed}"

    def _words(self, part: Amounts) -> list[str]:
        return [
            plural(count, "GPU")
            if name == self.gpu_resource
            else plural(count // 1000, "CPU")
            if name == CPU
            else written_amount(name, count)
            for name, count in sorted(part, key=lambda entry: (entry[0] != self.gpu_resource, entry[0]))
        ]

    def _parts(self, containers: Sequence[Amounts]) -> list[Amounts]:
        """Return what is aligned as one, as far as it is tied to NUMA nodes; nothing where nothing is."""
        tied = [
            tuple((name, count) for name, count in asked if name in self.resources) for asked in containers
        ]
        parts = [_sum(tied)] if self.scope is AlignmentScope.POD else tied
        return [part for part in parts if part]

    def _sets(self, part: Amounts) -> int | None:
        """Return how many NUMA nodes the preferred hints of *part* have; None where its resources differ in that.

        So many that the empty machine could serve it by, no matter what is free.
        """
        sizes = {self._least(name, count) for name, count in part}
        size = sizes.pop() if len(sizes) == 1 else None
        return None if self.policy is AlignmentPolicy.SINGLE_NUMA_NODE and size != 1 else size

    def _able(self, part: Amounts) -> list[int]:
        """Return the NUMA nodes that can be in a hint: one that lacks a resource altogether is in no preferred one for it."""
        capacities = [self.capacity[self.resources.index(name)] for name, _ in part]
        return [zone for zone, has in enumerate(zip(*capacities, strict=True)) if all(has)]

    def _is_judged(self, part: Amounts) -> bool:
        """Whether it can be found out if *part* is admitted; what cannot be is not refused."""
        return self._sets(part) in (None, 1) or len(self._able(part)) <= _MOST_ZONES

    def _least(self, name: str, count: int) -> int | None:
        held = 0
        for size, capacity in enumerate(sorted(self.capacity[self.resources.index(name)], reverse=True), 1):
            held += capacity
            if held >= count:
                return size
        return None

    def _whole_workers(self, part: Amounts) -> list[int]:
        """Return how often each NUMA node has *part* free."""
        rows = [(self.available[self.resources.index(name)], count) for name, count in part]
        return [min(row[zone] // count for row, count in rows) for zone in range(len(self.available[0]))]

    def _one_by_one(self, parts: Sequence[Amounts], most: int) -> list[Row]:
        """Return the GPUs of each NUMA node that the workers get as the kubelet admits them one after another."""
        free = {name: list(row) for name, row in zip(self.resources, self.available, strict=True)}
        shares: list[Row] = []
        while len(shares) < most:
            before = list(free.get(self.gpu_resource, ()))
            if not all(self._admit(part, free) for part in parts):
                break
            after = free.get(self.gpu_resource, ())
            shares.append(tuple(had - has for had, has in zip(before, after, strict=True)))
        return shares

    def _admit(self, part: Amounts, free: dict[str, list[int]]) -> bool:
        """Whether *part* is admitted; takes it from *free* if so."""
        size = self._sets(part)
        if size is None:
            return False
        # Of equally many NUMA nodes the kubelet takes those with the lowest bits.
        for zones in sorted(combinations(self._able(part), size), key=lambda zones: zones[::-1]):
            if all(sum(free[name][zone] for zone in zones) >= count for name, count in part):
                for name, count in part:
                    _take(free[name], zones, count)
                return True
        return False


def _take(free: list[int], zones: Sequence[int], count: int) -> None:
    """Take *count* from *zones*, first from those with the fewest, as the kubelet does with devices."""
    for zone in sorted(zones, key=lambda zone: free[zone]):
        taken = min(free[zone], count)
        free[zone] -= taken
        count -= taken


def _sum(parts: Sequence[Amounts]) -> Amounts:
    return tuple(total(map(dict, parts)).items())


def containers_of(demand: Demand, gpu_resource: str) -> tuple[Amounts, ...]:
    """Return what each container of a worker of *demand* asks on a node that offers its GPUs as *gpu_resource*."""
    if demand.containers:
        return tuple(tuple(asked.items()) for asked in demand.containers)
    # Nothing is known of its containers: mostly there is one, and it asks for all devices.
    devices = {name: amount for name, amount in demand.requests.items() if is_aligned(name)}
    gpus = {demand.gpu_resource or gpu_resource: demand.gpus} if demand.gpus else {}
    return (tuple({**gpus, **devices}.items()),)


def alignment_of(node: GpuNode, mask: int | None) -> Alignment | None:
    """Return how the kubelet of *node* aligns pods; None where it refuses none for it, or that is not known.

    *mask* are the positions of its free GPUs, None where they are not known.
    """
    zones = node.zones
    if zones is None or zones.policy is None or not zones.policy.refuses:
        return None
    names = sorted(
        {name for zone in zones.zones for name in zone.capacity if name == CPU or is_aligned(name)}
    )
    # One that all zones have none of is tied to none.
    names = [name for name in names if any(zone.capacity.get(name) for zone in zones.zones)]
    available = {name: tuple(zone.available.get(name, 0) for zone in zones.zones) for name in names}
    positions: Row = ()
    if node.gpu_resource in available:
        available[node.gpu_resource], positions = _gpus(node, zones, mask, available[node.gpu_resource])
    return Alignment(
        policy=zones.policy,
        scope=zones.scope,
        gpu_resource=node.gpu_resource,
        resources=tuple(names),
        capacity=tuple(tuple(zone.capacity.get(name, 0) for zone in zones.zones) for name in names),
        available=tuple(available[name] for name in names),
        positions=positions,
    )


def _gpus(node: GpuNode, zones: NumaZones, mask: int | None, published: Row) -> tuple[Row, Row]:
    """Return the free GPUs on each NUMA node, and which ones they are, empty where that is not known."""
    located = _located(node, zones)
    if mask is not None and located:
        free = tuple((mask & side).bit_count() for side in located)
        # The zones are as old as their last report: pods, and plans that have none yet, came after it.
        if free == published or sum(free) != sum(published):
            return free, located
        # As many are free, on other NUMA nodes: which GPU is where was assumed, and the kubelet's count is right.
        return published, ()
    # GPUs that were taken since the report may be of any NUMA node.
    unseen = max(sum(published) - node.gpu_free, 0)
    return tuple(max(count - unseen, 0) for count in published), ()


def _located(node: GpuNode, zones: NumaZones) -> Row:
    """Return the positions of the GPUs on each of *zones*, as bits; empty where that of one is not known."""
    index = {zone.number: place for place, zone in enumerate(zones.zones)}
    sides = [0] * len(index)
    for position, gpu in enumerate(node.gpus):
        if gpu.numa not in index:
            return ()
        sides[index[gpu.numa]] |= 1 << position
    return tuple(sides) if node.gpus else ()
