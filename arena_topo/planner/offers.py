"""What a decision sees of a node, and what the node offers: bandwidth, and damage to what stays free."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations
from math import inf

from arena_topo.model.cluster import (
    AlignmentPolicy,
    AlignmentScope,
    GpuNode,
    NumaZones,
    Taint,
    rdma_cards,
)
from arena_topo.model.plan import Demand
from arena_topo.model.pods import CPU, is_aligned
from arena_topo.model.text.quantity import total
from arena_topo.model.text.words import plural, written_amount
from arena_topo.planner.gpus.bandwidth import positions_of
from arena_topo.planner.gpus.machine import GpuChoice, IsolatedPods, Machine, ZoneRule
from arena_topo.planner.memo import Memo

# Which workers the kubelet of a node admits, by the rules of its topology manager.
#
# For each resource that a container asks for, the sets of NUMA nodes that have as much free are its *hints*.
# A hint is preferred where no smaller set would do on the empty machine. ``restricted`` admits the container
# if one set is a preferred hint of every resource alike, ``single-numa-node`` if one NUMA node is; otherwise
# the pod fails with TopologyAffinityError, which kube-scheduler does not foresee. The other policies admit
# every pod.
#
# Of two NUMA nodes with 4 GPUs and 48 cores each, 4 GPUs and 16 cores are free on the first, 2 GPUs and 40
# cores on the second. A worker of 2 GPUs and 32 cores goes to the second. One of 4 GPUs and 32 cores is
# refused: its GPUs are on the first, its cores on the second. With both free, one of 6 GPUs and 64 cores
# needs both NUMA nodes for either, so that ``restricted`` admits it; one of 6 GPUs and 32 cores is refused,
# because 32 cores alone need one.
#
# Source: ``k8s.io/kubernetes/pkg/kubelet/cm/topologymanager`` (policy.go, policy_single_numa_node.go),
# ``devicemanager`` (topology_hints.go) and ``cpumanager`` (policy_static.go). Memory is left out: it is not
# known whether the kubelet's memory manager is static, and mostly it is not.

_MOST_ZONES = 8
"""NUMA nodes that the topology manager takes by default; with more of them it would try 2**n sets."""

Amounts = tuple[tuple[str, int], ...]
"""What one container asks, by resource."""
Row = tuple[int, ...]
"""A number for each NUMA node."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The NUMA nodes of a node whose kubelet refuses pods that do not fit them.

    ``resources`` are those that are tied to NUMA nodes, with their ``capacity`` and what is ``available`` of
    each, by NUMA node. ``gpu_resource`` is the one of the GPUs; ``positions`` are the GPUs on each NUMA node,
    as bits, empty where it is not known where each of them is.
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
        """Return which GPUs *workers* of *gpus* GPUs each can get; None if the kubelet lets them have any."""
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
        """Return what is left of the NUMA nodes next to so many *workers* with such *containers*.

        *mask* are the positions of all the *gpus* GPUs of each, 0 where it is not known which they are: then
        the kubelet's own order of choice is followed.
        """
        parts = self._parts(containers)
        free = {name: list(row) for name, row in zip(self.resources, self.available, strict=True)}
        if mask and self.positions and len(parts) == 1 and self._sets(parts[0]) == 1:
            # What a worker has next to its GPUs is on their NUMA node.
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
        """Return why the kubelet would admit no worker with such *containers*, empty if it would."""
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
        """Return how many NUMA nodes the preferred hints of *part* have; None if resources differ in that.

        So many that the empty machine could serve it by, no matter what is free.
        """
        sizes = {self._least(name, count) for name, count in part}
        size = sizes.pop() if len(sizes) == 1 else None
        return None if self.policy is AlignmentPolicy.SINGLE_NUMA_NODE and size != 1 else size

    def _able(self, part: Amounts) -> list[int]:
        """Return the NUMA nodes that can be in a preferred hint: those that have every resource of *part*."""
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
        """Return the GPUs of each NUMA node that workers get, as the kubelet admits one after another."""
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
    """Return what each container of a worker asks on a node that offers its GPUs as *gpu_resource*."""
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
        # As many are free, on other NUMA nodes: the kubelet's count is right, and our assumption was not.
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


_NIC_EFFICIENCY = 0.92
"""The part of a NIC's rate that collectives reach, as NCCL's tuner has it (``src/graph/tuning.cc``)."""
CARD_RATE = 12.5
"""GB/s of an RDMA card that does not publish its rate, as the shipped calibration has it."""
# 2**50 thousandths of GB/s would be a loss of a million GB/s on each of a million nodes.
_LOSS_BITS = 50

_MOST_OFFERS = 200_000
_MOST_ROWS = 100_000
_MOST_DAMAGES = 1_000


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a decision sees of a node's GPUs and taints; nodes of one state are equally good for a gang.

    ``free`` and ``total`` count GPUs; ``mask`` has a bit for each free position, None where it is not known
    which GPUs are free. ``rate`` is the sum of the NICs' rates in GB/s and ``fastest`` the highest, 0 where
    not known. ``alignment`` is how the kubelet aligns pods with NUMA nodes, None where it refuses none;
    ``containers`` are then those of a worker, as soon as it is known what is to be placed. ``isolated`` as in
    ``Demand``, of what is to be placed.
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
    alignment: Alignment | None = None
    containers: tuple[Amounts, ...] = ()
    isolated: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What one node gives ``workers`` of a gang.

    ``inside`` is the busbw in GB/s of the GPUs that the gang gets there as one communicator: infinite for a
    single GPU, 0 where the links are not known. ``busbw`` also counts the node's NICs, which bound a gang
    over several nodes. ``stranded`` counts the GPUs left free on the node; ``loss`` is the value that these
    lose (without GPUs: the places that stay unused). ``damage`` is both as one number that orders and adds up
    as the pair does. ``choice`` names the GPUs, None where it is not known which are free; ``exact`` is False
    where it may not be the best set. ``rule`` is what the kubelet lets the workers have of them, None where
    that is anything.
    """

    workers: int
    inside: float
    busbw: float
    stranded: int
    loss: float
    damage: int
    choice: GpuChoice | None
    exact: bool = True
    rule: ZoneRule | None = None


@dataclass(frozen=True, slots=True)
class OfferRow:
    """The offers of one state for several numbers of workers, the most first, and whether all are exact."""

    offers: tuple[Offer, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class DamageTable:
    """The damage of so many workers on a node of every state, infinite where it has too few free GPUs.

    ``inexact`` are the ids of the states whose damage may be less with a set of GPUs that was not compared.
    """

    damages: list[float]
    inexact: frozenset[int]


class Use(IntEnum):
    """What GPUs of a node are chosen for: a gang on one node, one on several, or to do the least damage."""

    ONE_NODE = 0
    SEVERAL_NODES = 1
    DAMAGE_ONLY = 2


OfferKey = tuple[int, Use, int, int, int]
"""GPUs of a worker, use, id of the state, workers, and for gangs without GPUs how many fit on the node."""
RowKey = tuple[int, Use, int, int, int]
"""GPUs of a worker, what they are for, id of the state, most and fewest workers."""


AlikeOffers = Sequence[tuple[Offer, Sequence[int]]]
"""Offers that differ by their rate inside, their damage, or by whether they are exact; the states of each."""


class PlanningTables:
    """What node states give gangs: functions of the states alone, shared by all decisions on a fleet.

    Every table is a bounded ``Memo``: what is kept makes the next decision faster and never changes it.
    Whether an offer is exact is kept with the offer, so a decision depends on the offers that it compared and
    on no earlier decision.
    """

    def __init__(self, states: Sequence[NodeState]) -> None:
        """Take the states of a fleet; their positions are their ids."""
        self._states = states
        self.offers: Memo[OfferKey, Offer] = Memo(self._offer, limit=_MOST_OFFERS)
        self.rows: Memo[RowKey, OfferRow] = Memo(self._row, limit=_MOST_ROWS)
        self.damages: Memo[tuple[int, int], DamageTable] = Memo(self._damages, limit=_MOST_DAMAGES)
        self.alike: Memo[tuple[int, Use, int], AlikeOffers] = Memo(self._alike, limit=_MOST_DAMAGES)

    def offer(self, gpus: int, use: Use, state_id: int, workers: int, places: int) -> Offer:
        """Return what nodes of *state_id* with room for *places* workers of *gpus* GPUs give *workers*."""
        # What a node strands of its GPUs does not depend on how many workers it could take, so neither does
        # the key.
        return self.offers[gpus, use, state_id, workers, 0 if gpus else places]

    def _alike(self, key: tuple[int, Use, int]) -> AlikeOffers:
        gpus, use, workers = key
        alike: dict[tuple[float, int, bool], tuple[Offer, list[int]]] = {}
        for state_id, state in enumerate(self._states):
            if state.free >= workers * gpus:
                offer = self.offer(gpus, use, state_id, workers, workers)
                known = alike.setdefault((offer.inside, offer.damage, offer.exact), (offer, []))
                known[1].append(state_id)
        return tuple(alike.values())

    def _offer(self, key: OfferKey) -> Offer:
        gpus, use, state_id, workers, places = key
        return offer_of(self._states[state_id], gpus, use, workers, places)

    def _row(self, key: RowKey) -> OfferRow:
        gpus, use, state_id, most, fewest = key
        offers = tuple(
            [self.offer(gpus, use, state_id, workers, most) for workers in range(most, fewest - 1, -1)]
        )
        return OfferRow(offers, all(offer.exact for offer in offers))

    def _damages(self, key: tuple[int, int]) -> DamageTable:
        gpus, workers = key
        # No set does less damage than the one chosen for a single node, so that this bounds gangs over
        # several too.
        offers = [
            self.offer(gpus, Use.ONE_NODE, state_id, workers, workers)
            if state.free >= workers * gpus
            else None
            for state_id, state in enumerate(self._states)
        ]
        return DamageTable(
            damages=[offer.damage if offer else inf for offer in offers],
            inexact=frozenset(state_id for state_id, offer in enumerate(offers) if offer and not offer.exact),
        )


def offer_of(state: NodeState, gpus: int, use: Use, workers: int, places: int) -> Offer:
    """Return what a node in *state*, which takes *places* workers of *gpus* GPUs, gives *workers* of them."""
    count = workers * gpus
    if not count:
        # A pod without GPUs may take the cpu and memory that a GPU needs to be of use: where more GPUs are
        # free it does more damage. Of nodes with as many, the one whose places it fills is taken.
        left = float(places - workers)
        return Offer(workers, inf, inf, state.free, left, damage(state.free, left), None)
    rule = state.alignment.rule(state.containers, workers, gpus) if state.alignment else None
    # Their own nodes may tell them nothing about their NICs.
    card = (state.fastest or CARD_RATE) * _NIC_EFFICIENCY / workers
    isolated = IsolatedPods(card, gpus > 1) if state.isolated else None
    choice = best_set(state, count, across_nodes=use is Use.SEVERAL_NODES, isolated=isolated, rule=rule)
    bandwidth_sensitive = use is not Use.DAMAGE_ONLY
    # A single GPU has no peer on the node, so the links around it do not matter.
    communicates = bandwidth_sensitive and count > 1
    inside = (choice.busbw if choice else 0.0) if communicates else inf
    if communicates and state.isolated and workers > 1 and state.rate:
        # Links carry nothing between isolated pods, which share the NICs.
        inside = min(inside if gpus > 1 else inf, nic_rate(state, count) / workers)
    loss = choice.loss if choice else 0.0
    return Offer(
        workers=workers,
        inside=inside,
        busbw=min(inside, nic_rate(state, count)) if bandwidth_sensitive else inf,
        stranded=state.free - count,
        loss=loss,
        damage=damage(state.free - count, loss),
        choice=choice,
        exact=choice is None or choice.exact,
        rule=rule,
    )


def free_rate(state: NodeState, unknown: float) -> float:
    """Return the NIC rate in GB/s that the jobs on a node leave free, *unknown* if the node does not say."""
    rate = (state.rate or unknown) * _NIC_EFFICIENCY
    # A node whose GPUs are all in use still carries what its own servers send, if slowly.
    return rate * max(state.free, 0.5) / state.total if state.total else rate


def damage(stranded: int, loss: float) -> int:
    """Return a number that orders as the pair of *stranded* GPUs and *loss* does, and adds up as they do.

    A loss is a sum of rates in thousandths of GB/s; those of a whole gang stay below the first bit of
    *stranded*.

    >>> damage(1, 0.0) > damage(0, 500.0) > damage(0, 45.0)
    True
    >>> damage(1, 45.0) + damage(2, 8.0) == damage(3, 53.0)
    True
    """
    return (stranded << _LOSS_BITS) + round(loss * 1000)


def stranded_of(amount: int) -> int:
    """Return the GPUs that a ``damage`` of *amount* leaves free on the nodes used.

    >>> stranded_of(damage(3, 45.0)), loss_of(damage(3, 45.0))
    (3, 45.0)
    """
    return amount >> _LOSS_BITS


def loss_of(amount: int) -> float:
    """Return the value that those GPUs lose."""
    return (amount & ((1 << _LOSS_BITS) - 1)) / 1000


def best_set(
    state: NodeState,
    count: int,
    *,
    across_nodes: bool = False,
    isolated: IsolatedPods | None = None,
    rule: ZoneRule | None = None,
) -> GpuChoice | None:
    """Return the best *count* free GPUs of a node in *state*, None if links or free GPUs are unknown.

    *across_nodes*: they belong to a gang over several nodes, *isolated*: to such pods. Only sets that *rule*
    allows are compared.
    """
    if state.machine is None or state.mask is None:
        return None
    return state.machine.best(state.mask, count, across_nodes=across_nodes, isolated=isolated, rule=rule)


def nic_rate(state: NodeState, count: int) -> float:
    """Return the rate in GB/s that the NICs of a node give *count* GPUs: their share, but one NIC at least.

    Eight GPUs share four NICs of 25 GB/s: four GPUs get 0.92 of 50, one GPU gets 0.92 of 25.
    """
    # NICs of unknown rate set no bound; the GPUs of the node still do.
    if not state.rate:
        return inf
    share = count / max(state.total, count, 1)
    return _NIC_EFFICIENCY * max(state.fastest, state.rate * share)


def card_rate(node: GpuNode, choice: GpuChoice | None, gpus: int, pods: int) -> float:
    """Return what each of *pods* isolated pods of *gpus* GPUs has on *node*, 0 where it has no RDMA card.

    In GB/s, as ``prediction.forecast`` has it: a ring leaves every pod once, so that they share the cards.
    """
    cards = rdma_cards(node, positions_of(choice.mask) if choice else None, pods * gpus)
    rate = _NIC_EFFICIENCY * sum(card.rate or CARD_RATE for card in cards) / pods
    inside = choice.busbw if choice and gpus > 1 else 0.0
    return round(min(rate, inside or inf), 3)
