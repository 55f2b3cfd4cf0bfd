"""What a node would give a gang for a number of its workers: bandwidth, and damage to what stays free."""

from dataclasses import dataclass
from math import inf

from arena_topo.planner.gpus.node_machine import Choice
from arena_topo.planner.nodes.fleet import Fleet, NodeState

NIC_EFFICIENCY = 0.92
"""The part of a NIC's rate that collectives reach (NCCL's tuning, topology.md E.1)."""
_LOSS_BITS = 50


@dataclass(frozen=True, slots=True)
class Offer:
    """What one node gives ``workers`` of a gang.

    ``inside`` is the busbw in GB/s of the GPUs that the gang gets there as one communicator: infinite for a single
    GPU, 0 where the links are not known. ``busbw`` also counts the node's NICs, which bound a gang over several
    nodes. ``stranded`` counts the GPUs (without GPUs: the places) left free on the node; ``loss`` is the quality
    that these lose. ``damage`` is both as one number, that orders and adds up as the pair does. ``choice`` names
    the GPUs, None where nothing tells which are free.
    """

    workers: int
    inside: float
    busbw: float
    stranded: int
    loss: float
    damage: int
    choice: Choice | None


class Offers:
    """The offers of a fleet's node states for one gang, each computed once.

    ``gpus`` is what each worker gets; ``matters`` is False for gangs that never communicate. The fleet keeps the
    offers: what a state gives so many workers does not depend on the gang.
    """

    __slots__ = ("_inexact", "_known", "fleet", "gpus", "matters")

    def __init__(self, fleet: Fleet, gpus: int, *, matters: bool = True) -> None:
        self.fleet = fleet
        self.gpus = gpus
        self.matters = matters
        self._known: dict[tuple[int, int, int], Offer] = fleet.kept((gpus, matters))
        self._inexact: dict[int, int] = fleet.kept(("inexact", gpus))

    @property
    def exact(self) -> bool:
        """Whether every set of GPUs was compared on each node that was looked at, for this gang or one before."""
        return not self._inexact

    def of(self, kind: int, workers: int, places: int) -> Offer:
        """Return what nodes of state *kind*, which take *places* workers, give *workers* of them."""
        key = (kind, workers, places if not self.gpus else 0)
        offer = self._known.get(key)
        if offer is None:
            offer = self._known[key] = self._make(self.fleet.states[kind], workers, places)
        return offer

    def _make(self, state: NodeState, workers: int, places: int) -> Offer:
        count = workers * self.gpus
        if not count:
            return Offer(workers, inf, inf, places - workers, 0.0, damage(places - workers, 0.0), None)
        choice = best_set(state, count)
        if choice is not None and not choice.exact:
            self._inexact[count] = count
        communicates = self.matters and count > 1
        inside = (choice.busbw if choice else 0.0) if communicates else inf
        loss = choice.loss if choice else 0.0
        return Offer(
            workers=workers,
            inside=inside,
            busbw=min(inside, nics(state, count)) if self.matters else inf,
            stranded=state.free - count,
            loss=loss,
            damage=damage(state.free - count, loss),
            choice=choice,
        )


def damage(stranded: int, loss: float) -> int:
    """Return a number that orders as the pair of *stranded* GPUs and *loss* does, and adds up as they do.

    A loss is a sum of rates in thousandths of GB/s; those of a whole gang stay below the first bit of *stranded*.
    """
    return (stranded << _LOSS_BITS) + round(loss * 1000)


def best_set(state: NodeState, count: int) -> Choice | None:
    """Return the best *count* free GPUs of a node in *state*, None where its links or its free GPUs are unknown."""
    if state.machine is None or state.mask is None:
        return None
    return state.machine.best(state.mask, count)


def nics(state: NodeState, count: int) -> float:
    """Return the rate in GB/s that the node's NICs give *count* GPUs: each GPU its share, but one NIC at least."""
    if not state.rate:
        return inf
    share = min(count / max(state.total, count), 1.0)
    return NIC_EFFICIENCY * max(state.fastest, state.rate * share)
