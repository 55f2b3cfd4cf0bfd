"""Where parameter servers go: where NIC rate is free, one to a node as long as that makes a step faster.

Compared in this order, given the workers' nodes:

1. the time that the slowest NIC needs for a step (``traffic``): so servers spread over the nodes with the
   most free rate until they are no longer the bottleneck, and no further;
2. how far they are from the workers: the levels between each and the domain that has the most workers;
3. how many stand on nodes with GPUs, which stay whole that way;
4. the fewest nodes, then those with the fewest free GPUs, then fabric order.

Where the user spreads them, as few as possible stand on each node before any of this counts.

All of 1 to 4 but the order of equal nodes is exact: 1 is a bisection over the times that can occur, and 2 to
4 are costs of single servers, so the cheapest places are filled first.

Eight workers on two nodes with NICs of 25 GB/s cannot be done before 4 / 25 = 0.16 s, what four workers send.
Two servers on nodes without GPUs need 8 / 2 / 25 = 0.16 s: they spread over two nodes. Four servers on two
such nodes, two each, need no more, so they take two nodes and not four.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from operator import neg
from typing import NamedTuple

from arena_topo.model.plan import StepTraffic
from arena_topo.planner.fleet import Domain, Fleet, domain_at
from arena_topo.planner.memo import Memo
from arena_topo.planner.roles.gang import CandidateNodes, PartialPlacement, RoleChoice

# What a training step moves over the NICs: with parameter servers, and by all-reduce on the same nodes.
#
# All times are in seconds for each GB of parameters, so that they depend on no model. A server keeps 1/s of
# the parameters: it takes that part of the gradients from each of n workers, and sends that part of the
# parameters to each. What stays on a node does not use its NIC. So a node with w workers and p servers moves,
# in each direction,
#
#     w (s - p) / s   for its workers, whose servers are elsewhere in s - p of s cases
#     p (n - w) / s   for its servers, whose workers are elsewhere in n - w of n cases
#
# and the step waits for the node that takes longest. Eight workers on two nodes with NICs of 10 GB/s, and two
# servers: one on each of two other nodes takes 1 * 8 / 2 / 10 = 0.4 s; one next to each four workers takes
# (4 * 1/2 + 1 * 4/2) / 10 = 0.4 s as well; both next to the same four (4 * 0 + 2 * 4/2) / 10 = 0.4 s there.


class NodeLoad(NamedTuple):
    """A node's free NIC rate in GB/s, and how many workers and servers it has."""

    rate: float
    workers: int
    servers: int


def node_seconds(load: NodeLoad, workers: int, servers: int) -> float:
    """Return how long the NIC of one node takes for each GB, of so many *workers* and *servers* in all.

    >>> node_seconds(NodeLoad(10.0, 0, 1), workers=8, servers=2)
    0.4
    """
    moved = load.workers * (servers - load.servers) + load.servers * (workers - load.workers)
    return moved / servers / load.rate


def _seconds_by_servers(rate: float, own: int, workers: int, servers: int) -> list[float]:
    """Return how long a NIC of *rate* takes next to *own* of the *workers*, by the *servers* there.

    >>> _seconds_by_servers(10.0, own=0, workers=8, servers=2)
    [0.0, 0.4, 0.8]
    """
    # Each server more takes from all workers elsewhere, and spares those next to it the way.
    most, more = own * servers, workers - 2 * own
    return [(most + here * more) / servers / rate for here in range(servers + 1)]


def all_reduce_seconds(rates: Iterable[float], workers: int) -> float:
    """Return how long a ring of *workers* takes over nodes of these NIC *rates*: 2 (n - 1) / n of every GB.

    Neighbours in the ring share a node as far as they can, so each NIC carries the ring once. On one node it
    uses none.

    >>> all_reduce_seconds([10.0, 10.0], workers=8)
    0.175
    """
    nodes = list(rates)
    if len(nodes) < 2:
        return 0.0
    return 2 * (workers - 1) / workers / min(nodes)


def summed_seconds(workers: int, cpu_nodes: int, rate: float) -> float:
    """Return the least that n workers with a NIC each need when k nodes without GPUs help them to sum.

    Source: BytePS (OSDI 2020), section 4.1: 2 n (n - 1) / (n n + k n - 2 k), which is all-reduce for k = 0
    and plain parameter servers for k = n; more nodes than workers do not help, because each worker still
    sends all it has.

    >>> summed_seconds(8, 0, 10.0), summed_seconds(8, 8, 10.0)
    (0.175, 0.1)
    """
    if workers < 2:
        return 0.0
    helping = min(cpu_nodes, workers)
    return 2 * workers * (workers - 1) / (workers * workers + helping * workers - 2 * helping) / rate


_MOST_KINDS = 100_000
_DIGITS = 12
"""Times that differ by less are rounding errors of the same time."""


def choose_servers(partial: PartialPlacement, span: Domain) -> RoleChoice | None:
    """Return the best nodes in *span* for the parameter servers that choose next, None if they do not fit."""
    candidates = partial.candidates(span)
    if candidates.total < partial.pod_set.role.pods:
        return None
    return partial.choice(_counts(_Rule.of(partial), candidates), candidates.places_at, candidates.span)


ServerScore = tuple[float, int, int, int]
"""Seconds per GB of parameters, levels from the workers, servers on GPU nodes, nodes: the lowest best."""


def server_score(partial: PartialPlacement, counts: Mapping[int, int]) -> ServerScore:
    """Return what the servers *counts*, by the position of their node, are compared by."""
    return _score(_Rule.of(partial), counts)


def _score(rule: "_Rule", counts: Mapping[int, int]) -> ServerScore:
    fleet = rule.fleet
    seconds = max(
        rule.times[rule.rate(position), rule.workers.get(position, 0)][counts.get(position, 0)]
        for position in {*counts, *rule.workers}
    )
    return (
        seconds,
        sum(rule.distance(position) * count for position, count in counts.items()),
        sum(count for position, count in counts.items() if fleet.state(position).total),
        len(counts),
    )


def step_traffic(partial: PartialPlacement, counts: Mapping[int, int]) -> StepTraffic:
    """Return how long a step exchanges data with the servers at *counts*, and without them."""
    rule, fleet, pod_set = _Rule.of(partial), partial.gang.fleet, partial.pod_set
    worker = [rule.rate(position) for position in rule.workers]
    # A pod that asks for what a server does, on a node without GPUs: what would help to sum.
    places = pod_set.capacity.places
    available = sum(
        sum(map(bool, map(places.__getitem__, nodes)))
        for state, nodes in zip(fleet.states, fleet.nodes_by_state, strict=True)
        if not state.total
    )
    return StepTraffic(
        servers=_score(rule, counts)[0],
        all_reduce=all_reduce_seconds(worker, rule.total),
        with_cpu_nodes=tuple(
            (count, summed_seconds(len(worker), count, min(worker))) for count in _powers(len(worker))
        ),
        available=available,
        assumed=any(not fleet.state(position).rate for position in {*counts, *rule.workers}),
    )


def _powers(most: int) -> list[int]:
    """Return 0, 1, 2, 4 and so on below *most*, and *most*; nothing for a single node."""
    powers = [1 << bit for bit in range(most.bit_length()) if 1 << bit < most]
    return [0, *powers, most] if most > 1 else []


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """What nodes for servers are compared by: the workers on each, and the domains around most of them.

    ``homes`` are those domains, the finest tier first and the cluster last; None where the workers have none
    there. ``times`` are the seconds that a NIC of some rate takes with so many workers on its node: by the
    servers next to them.
    """

    fleet: Fleet
    servers: int
    workers: Mapping[int, int]
    total: int
    homes: tuple[Domain | None, ...]
    times: Memo[tuple[float, int], list[float]]

    @classmethod
    def of(cls, partial: PartialPlacement) -> "_Rule":
        pod_set, fleet = partial.pod_set, partial.gang.fleet
        workers = partial.placed[pod_set.serves].counts if pod_set.serves is not None else {}
        homes: list[Domain | None] = []
        for tier in reversed(fleet.domains):
            most, home, domain, held = 0, None, None, 0
            for position in sorted(workers):
                if domain is None or position >= domain.end:
                    domain, held = domain_at(tier, position), 0
                held += workers[position]
                # Of domains with as many workers the first in fabric order.
                if domain is not None and held > most:
                    most, home = held, domain
            homes.append(home)
        servers, total = pod_set.role.pods, sum(workers.values())

        def times(key: tuple[float, int]) -> list[float]:
            return [round(seconds, _DIGITS) for seconds in _seconds_by_servers(*key, total, servers)]

        return cls(
            fleet=fleet,
            servers=servers,
            workers=workers,
            total=total,
            homes=(*homes, fleet.cluster),
            times=Memo(times, limit=_MOST_KINDS),
        )

    def rate(self, position: int) -> float:
        """Return the free NIC rate of the node at *position* in GB/s."""
        return self.fleet.free_rates[self.fleet.state_ids[position]]

    def distance(self, position: int) -> int:
        """Return how many levels up the first domain holds the node and most workers; 0 is the finest."""
        return next(
            level
            for level, home in enumerate(self.homes)
            if home is not None and home.start <= position < home.end
        )

    def allowed(self, rate: float, workers: int, places: int, limit: float) -> tuple[int, int] | None:
        """Return the fewest and the most servers with which a node stays within *limit* seconds, or None.

        Without servers a node's time is that of its workers, and each server adds n - 2 w parts: the times
        rise with the servers, or fall where most workers are on the node.
        """
        times, most = self.times[rate, workers], min(places, self.servers)
        if self.total > 2 * workers:
            fitting = bisect_right(times, limit, 0, most + 1)
            return (0, fitting - 1) if fitting else None
        least = bisect_left(times, -limit, 0, most + 1, key=neg)
        return (least, most) if least <= most else None


_Bounds = Memo[tuple[float, int, int], tuple[int, int]]
"""The fewest and the most servers of a node, by its free NIC rate, its workers and its places."""


_Rank = tuple[bool, int, int]
"""Whether a node has no server so far, the servers it takes (negative), its free GPUs: the lowest first."""


def _counts(rule: _Rule, candidates: CandidateNodes) -> dict[int, int]:
    """Return the servers of each node that gets any."""
    kinds = _kinds(rule, candidates)
    limit = _shortest(rule, _alike(rule, candidates, kinds))
    bounds: _Bounds = Memo(lambda key: rule.allowed(*key, limit) or (0, 0), limit=_MOST_KINDS)
    # Where most workers are on one node, it may be too slow without servers of its own.
    counts = {
        position: least
        for position, own in rule.workers.items()
        if (least := bounds[rule.rate(position), own, candidates.places_at(position)][0])
    }
    left = rule.servers - sum(counts.values())
    ranked = {
        with_gpus: _ranked(rule, candidates, kinds, bounds, counts, with_gpus=with_gpus)
        for with_gpus in (False, True)
    }
    for ring, with_gpus in product(_rings(rule, candidates.span), (False, True)):
        # Nodes that have servers already cost nothing, then the widest are the fewest.
        for most, nodes in ranked[with_gpus]:
            for position in chain.from_iterable(nodes.between(part) for part in ring):
                if not left:
                    return counts
                added = min(most, left)
                counts[position] = counts.get(position, 0) + added
                left -= added
    return counts


class _Nodes:
    """Nodes that are equally good for servers, in fabric order as soon as one of them is asked for."""

    def __init__(self, alike: Sequence[Sequence[int]]) -> None:
        self._alike = alike

    def between(self, part: range) -> Sequence[int]:
        """Return those of the nodes that are in *part*."""
        first = bisect_left(self._ordered, part.start)
        return self._ordered[first : bisect_left(self._ordered, part.stop, first)]

    @cached_property
    def _ordered(self) -> Sequence[int]:
        return self._alike[0] if len(self._alike) == 1 else sorted(chain.from_iterable(self._alike))


_Kinds = Mapping[tuple[float, bool, int, int], list[Sequence[int]]]
"""Untouched nodes by their free NIC rate, whether they have GPUs, their free GPUs and their room."""


def _kinds(rule: _Rule, candidates: CandidateNodes) -> _Kinds:
    # A fleet of ten thousand nodes has a thousand groups, and only some dozen that differ in what servers ask
    # of them.
    by_state = [
        (rate, state.total > 0, state.free)
        for rate, state in zip(rule.fleet.free_rates, rule.fleet.states, strict=True)
    ]
    kinds: dict[tuple[float, bool, int, int], list[Sequence[int]]] = {}
    for state_id, width, nodes in candidates.groups:
        kinds.setdefault((*by_state[state_id], width), []).append(nodes)
    return kinds


def _ranked(
    rule: _Rule,
    candidates: CandidateNodes,
    kinds: _Kinds,
    bounds: _Bounds,
    counts: Mapping[int, int],
    *,
    with_gpus: bool,
) -> list[tuple[int, _Nodes]]:
    """Return the nodes that take servers next to those of *counts*, the best first, with how many."""
    fleet = rule.fleet
    alike: dict[_Rank, list[Sequence[int]]] = {}
    for (rate, has_gpus, free, width), groups in kinds.items():
        if has_gpus is with_gpus and (most := bounds[rate, 0, width][1]):
            alike.setdefault((True, -most, free), []).extend(groups)
    # Workers' nodes one by one: their own traffic makes them unlike all others.
    known: dict[_Rank, list[int]] = {}
    for position, width in candidates.touched.items():
        state = fleet.state(position)
        if width and (state.total > 0) is with_gpus:
            most = bounds[rule.rate(position), rule.workers.get(position, 0), width][1]
            if more := most - counts.get(position, 0):
                known.setdefault((position not in counts, -more, state.free), []).append(position)
    for rank, nodes in known.items():
        alike.setdefault(rank, []).append(sorted(nodes))
    return [(-rank[1], _Nodes(alike[rank])) for rank in sorted(alike)]


def _alike(rule: _Rule, candidates: CandidateNodes, kinds: _Kinds) -> Mapping[tuple[float, int, int], int]:
    """Return how many nodes have a rate, workers and places, no more of these than there are servers."""
    servers = rule.servers
    alike: Counter[tuple[float, int, int]] = Counter()
    for (rate, _, _, width), nodes in kinds.items():
        alike[rate, 0, min(width, servers)] += sum(map(len, nodes))
    for position, width in candidates.touched.items():
        if width and position not in rule.workers:
            alike[rule.rate(position), 0, min(width, servers)] += 1
    for position, count in rule.workers.items():
        alike[rule.rate(position), count, min(candidates.places_at(position), servers)] += 1
    return alike


def _shortest(rule: _Rule, alike: Mapping[tuple[float, int, int], int]) -> float:
    """Return the shortest time in which all servers fit, of nodes counted by rate, workers and room."""
    times = sorted(
        {
            time
            for rate, workers, width in alike
            for time in rule.times[rate, workers][: min(width, rule.servers) + 1]
        }
    )

    def holds(limit: float) -> bool:
        fewest = most = 0
        for (rate, workers, width), count in alike.items():
            allowed = rule.allowed(rate, workers, width, limit)
            if allowed is None:
                return False
            fewest, most = fewest + allowed[0] * count, most + allowed[1] * count
        return fewest <= rule.servers <= most

    # With more time every node may have more servers, or fewer: once all have a place, they keep it.
    return times[bisect_left(times, 1, key=lambda limit: int(holds(limit)))]


def _rings(rule: _Rule, span: Domain) -> Iterator[list[range]]:
    """Yield the nodes of *span* by their distance from the workers, the closest first."""
    closer: list[Domain] = []
    for home in rule.homes:
        if home is None:
            continue
        # The block with most workers need not be the one around the rack with most workers.
        start, end = max(home.start, span.start), min(home.end, span.end)
        ring: list[range] = []
        for inner in sorted(closer, key=lambda inner: inner.start):
            ring.append(range(start, min(inner.start, end)))
            start = max(start, inner.end)
        yield [part for part in (*ring, range(start, end)) if part]
        closer.append(home)
