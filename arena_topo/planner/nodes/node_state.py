"""What a decision sees of a node, and what such a node would give a gang: bandwidth, and damage to what stays free."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import inf

from arena_topo.model.cluster.snapshot import Taint
from arena_topo.planner.gpus.machine import GpuChoice, Machine
from arena_topo.planner.gpus.zone_rule import ZoneRule
from arena_topo.planner.memo import Memo
from arena_topo.planner.nodes.alignment import Alignment, Amounts

NIC_EFFICIENCY = 0.92
"""The part of a NIC's rate that collectives reach: what NCCL's tuner leaves of a tree (``src/graph/tuning.cc``)."""
# 2**50 thousandths of GB/s would be a loss of a million GB/s on each of a million nodes.
_LOSS_BITS = 50

_MOST_OFFERS = 200_000
_MOST_ROWS = 100_000
_MOST_DAMAGES = 1_000


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a decision sees of a node's GPUs and taints; nodes of one state are equally good for a gang.

    ``free`` and ``total`` count GPUs; ``mask`` has a bit for each free position, None where it is not known which
    GPUs are free. ``rate`` is the sum of the NICs' rates in GB/s and ``fastest`` the highest, 0 where not known.
    ``alignment`` is how the kubelet aligns pods with NUMA nodes, None where it refuses none; ``containers`` are then those of
    a worker, as soon as it is known what is to be placed.
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


@dataclass(frozen=True, slots=True)
class Offer:
    """What one node gives ``workers`` of a gang.

    ``inside`` is the busbw in GB/s of the GPUs that the gang gets there as one communicator: infinite for a single
    GPU, 0 where the links are not known. ``busbw`` also counts the node's NICs, which bound a gang over several
    nodes. ``stranded`` counts the GPUs left free on the node; ``loss`` is the value that these lose (without GPUs: the
    places that stay unused). ``damage`` is both as one number that orders and adds up as the pair does. ``choice`` names
    the GPUs, None where it is not known which are free; ``exact`` is False where it may not be the best set. ``rule`` is what
    the kubelet lets the workers have of them, None where that is anything.
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
    """The offers of one state for several numbers of workers, most workers first, and whether all are exact."""

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
    """What the GPUs of a node are chosen for: a gang on that node, one over several nodes, or to do the least damage."""

    ONE_NODE = 0
    SEVERAL_NODES = 1
    DAMAGE_ONLY = 2


OfferKey = tuple[int, Use, int, int, int]
"""GPUs of a worker, what they are for, id of the state, workers, and the places of the node for gangs without GPUs."""
RowKey = tuple[int, Use, int, int, int]
"""GPUs of a worker, what they are for, id of the state, most and fewest workers."""


class PlanningTables:
    """What node states give gangs: functions of the states alone, shared by all decisions on a fleet.

    Every table is a bounded ``Memo``: what is kept makes the next decision faster and never changes it. Whether an offer
    is exact is kept with the offer, so a decision depends on the offers that it compared and on no earlier decision.
    """

    def __init__(self, states: Sequence[NodeState]) -> None:
        """Take the states of a fleet; their positions are their ids."""
        self._states = states
        self.offers: Memo[OfferKey, Offer] = Memo(self._offer, limit=_MOST_OFFERS)
        self.rows: Memo[RowKey, OfferRow] = Memo(self._row, limit=_MOST_ROWS)
        self.damages: Memo[tuple[int, int], DamageTable] = Memo(self._damages, limit=_MOST_DAMAGES)

    def offer(self, gpus: int, use: Use, state_id: int, workers: int, places: int) -> Offer:
        """Return what nodes of state *state_id*, which take *places* workers of *gpus* GPUs, give *workers* of them."""
        # What a node strands of its GPUs does not depend on how many workers it could take, so neither does the key.
        return self.offers[gpus, use, state_id, workers, 0 if gpus else places]

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
        # No set does less damage than the one chosen for a single node, so that this bounds gangs over several too.
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
        # A pod without GPUs may take the cpu and memory that a GPU needs to be of use: where more GPUs are free it
        # does more damage. Of nodes with as many, the one whose places it fills is taken.
        left = float(places - workers)
        return Offer(workers, inf, inf, state.free, left, damage(state.free, left), None)
    rule = state.alignment.rule(state.containers, workers, gpus) if state.alignment else None
    choice = best_set(state, count, across_nodes=use is Use.SEVERAL_NODES, rule=rule)
    bandwidth_sensitive = use is not Use.DAMAGE_ONLY
    # A single GPU has no peer on the node, so the links around it do not matter.
    communicates = bandwidth_sensitive and count > 1
    inside = (choice.busbw if choice else 0.0) if communicates else inf
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
    """Return the NIC rate in GB/s that the jobs on a node leave free; *unknown* is that of a node which does not say."""
    rate = (state.rate or unknown) * NIC_EFFICIENCY
    # A node whose GPUs are all in use still carries what its own servers send, if slowly.
    return rate * max(state.free, 0.5) / state.total if state.total else rate


def damage(stranded: int, loss: float) -> int:
    """Return a number that orders as the pair of *stranded* GPUs and *loss* does, and adds up as they do.

    A loss is a sum of rates in thousandths of GB/s; those of a whole gang stay below the first bit of *stranded*.

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
    state: NodeState, count: int, *, across_nodes: bool = False, rule: ZoneRule | None = None
) -> GpuChoice | None:
    """Return the best *count* free GPUs of a node in *state*, None where its links or its free GPUs are unknown.

    *across_nodes*: they belong to a gang over several nodes. Only sets that *rule* allows are compared.
    """
    if state.machine is None or state.mask is None:
        return None
    return state.machine.best(state.mask, count, across_nodes=across_nodes, rule=rule)


def nic_rate(state: NodeState, count: int) -> float:
    """Return the rate in GB/s that the node's NICs give *count* GPUs: each GPU its share, but one NIC at least.

    Eight GPUs share four NICs of 25 GB/s: four GPUs get 0.92 of 50, one GPU gets 0.92 of 25.
    """
    # NICs of unknown rate set no bound; the GPUs of the node still do.
    if not state.rate:
        return inf
    share = min(count / max(state.total, count), 1.0)
    return NIC_EFFICIENCY * max(state.fastest, state.rate * share)
