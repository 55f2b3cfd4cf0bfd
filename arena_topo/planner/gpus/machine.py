"""One kind of node, and the best set of k GPUs among those that are free in it.

Sets are compared by, in this order: predicted bus bandwidth of the whole set; what the GPUs that stay free lose in
worth (``quality``); NUMA nodes, PCIe roots, alignment, NICs, link bandwidth (``locality``); lowest positions.
Every set is compared, or one of those that differ by interchangeable GPUs only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from arena_topo.model.cluster.hardware import Link, LinkGraph
from arena_topo.planner.gpus.bandwidth import BandwidthModel
from arena_topo.planner.gpus.busbw import SetRates
from arena_topo.planner.gpus.candidates import Candidates
from arena_topo.planner.gpus.canonical import Matrix, canonical, twins
from arena_topo.planner.gpus.growing import grow
from arena_topo.planner.gpus.locality import Locality, Place, positions_of
from arena_topo.planner.gpus.ranking import Ranking
from arena_topo.planner.gpus.ring_order import RingOrder
from arena_topo.planner.gpus.worth import MOST_STATES, Quality


@dataclass(frozen=True, slots=True)
class Choice:
    """A set of GPUs, and why it is the one.

    ``mask`` has bit i for position i in ``GpuNode.gpus``; ``order`` are the same positions in ring order, in which
    they should be visible. ``busbw`` is the predicted all-reduce bus bandwidth in GB/s: 0.0 for one GPU, which has
    nobody to talk to, and where links are not known. ``best`` is the best that so many GPUs can have on the empty
    machine. ``loss`` is the worth that the GPUs staying free lose (GB/s, summed over set sizes), 0.0 where it is not
    known. ``runner_up`` is the second best set and its busbw, None where there is no other. ``exact`` tells that all
    sets were compared, and by proven packings; it is False on machines too large and too irregular for that.
    """

    mask: int
    order: tuple[int, ...]
    busbw: float
    best: float
    loss: float
    runner_up: tuple[int, float] | None = None
    exact: bool = True


class Machine:
    """One kind of node: its links, and where its GPUs sit. Equal nodes share one machine, and its answers.

    ``size`` is the number of GPUs. ``key`` names the links in canonical form: equal for machines that differ in the
    numbering of their GPUs only.
    """

    def __init__(self, graph: LinkGraph, places: Sequence[Place], name: str, model: BandwidthModel) -> None:
        """Take the links, the places of the GPUs by position, the machine type and the bandwidth model."""
        matrix, legend = _numbered(graph)
        self._rates = rates = SetRates(graph, name, model)
        self.size = graph.size
        self.key = f"{graph.size}-{_digest(canonical(matrix).rows, legend)}"
        self._graph = graph
        self._all = (1 << graph.size) - 1
        labelled = _digest(matrix, legend, name, model)
        self._quality = Quality(matrix, lambda mask: rates.busbw(positions_of(mask)), labelled)
        locality = Locality(graph, places)
        candidates = Candidates(_kinds(matrix, locality))
        self._ranking = Ranking(self._quality, locality, candidates, graph.size)
        self._valued = self._quality.states <= MOST_STATES
        self._choices: dict[tuple[int, int, bool], Choice] = {}
        self._orders = RingOrder(graph)

    def busbw(self, mask: int) -> float:
        """Return the predicted all-reduce bus bandwidth of the set *mask* in GB/s."""
        return self._quality.busbw(mask)

    def best(self, free: int, k: int) -> Choice | None:
        """Return the best set of *k* GPUs among *free*, or None where fewer are free or *k* is not positive."""
        return self._choice(free, k, preserving=False)

    def preserving(self, free: int, k: int) -> Choice | None:
        """Return the set of *k* GPUs whose leaving hurts least, for jobs that do not need the bandwidth."""
        return self._choice(free, k, preserving=True)

    def _choice(self, free: int, k: int, *, preserving: bool) -> Choice | None:
        asked = (free, k, preserving)
        free &= self._all
        known = self._choices.get(asked)
        if known is None and 0 < k <= free.bit_count():
            known = self._choices[asked] = self._choose(free, k, preserving=preserving)
        return known

    def _choose(self, free: int, k: int, *, preserving: bool) -> Choice:
        if not self._valued or not self._ranking.can_compare(free, k):
            return self._grown(free, k)
        winner, second = self._ranking.two_best(free, k, preserving=preserving)
        return Choice(
            mask=winner,
            order=self._orders.of(winner),
            busbw=self.busbw(winner),
            best=self._quality.best(k),
            loss=self._loss(free, winner),
            runner_up=None if second is None else (second, self.busbw(second)),
            exact=self._rates.proven,
        )

    def _grown(self, free: int, k: int) -> Choice:
        mask = grow(self._graph, positions_of(free), k, self.busbw)
        order, busbw = self._orders.of(mask), self.busbw(mask)
        if self._valued:
            return Choice(mask, order, busbw, self._quality.best(k), self._loss(free, mask), exact=False)
        best = self.busbw(grow(self._graph, positions_of(self._all), k, self.busbw))
        return Choice(mask, order, busbw, max(best, busbw), 0.0, exact=False)

    def _loss(self, free: int, mask: int) -> float:
        return round(self._quality.worth(free) - self._quality.worth(free ^ mask), 3)


def _numbered(graph: LinkGraph) -> tuple[Matrix, list[tuple[str, int, float]]]:
    """Return the matrix of links as numbers, and what the numbers stand for; equal for equal kinds of links."""
    size = range(graph.size)
    named = [[_name(graph.links[a][b]) if a != b else ("", 0, 0.0) for b in size] for a in size]
    legend = sorted({name for row in named for name in row})
    number = {name: at for at, name in enumerate(legend)}
    return [[number[name] for name in row] for row in named], legend


def _name(link: Link) -> tuple[str, int, float]:
    return link.kind.value, link.count, link.bandwidth


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _kinds(matrix: Matrix, locality: Locality) -> list[list[int]]:
    """Return the positions by interchangeability: twins in links whose places do not differ either."""
    classes = twins(matrix)
    kinds: list[list[int]] = []
    for at, name in enumerate(classes):
        kind = next(
            (kind for kind in kinds if classes[kind[0]] == name and locality.interchangeable(kind[0], at)),
            None,
        )
        if kind is None:
            kinds.append([at])
        else:
            kind.append(at)
    return kinds
