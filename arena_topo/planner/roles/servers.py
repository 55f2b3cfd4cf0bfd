"""Where parameter servers go: where NIC rate is free, one to a node as long as that makes a step faster.

Compared in this order, given the workers' nodes:

1. the time that the slowest NIC needs for a step (``traffic``): so servers spread over the nodes with the most free
   rate until they are no longer the bottleneck, and no further;
2. how far they are from the workers: the levels between each and the domain that has the most workers;
3. how many stand on nodes with GPUs, which stay whole that way;
4. the fewest nodes, then those with the fewest free GPUs, then fabric order.

Where the user spreads them, as few as possible stand on each node before any of this counts.

All of 1 to 4 but the order of equal nodes is exact: 1 is a bisection over the times that can occur, and 2 to 4 are costs
of single servers, so the cheapest places are filled first.

Eight workers on two nodes with NICs of 25 GB/s cannot be done before 4 / 25 = 0.16 s, what four workers send. Two servers
on nodes without GPUs need 8 / 2 / 25 = 0.16 s: they spread over two nodes. Four servers on two such nodes, two each, need
no more, so they take two nodes and not four.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from arena_topo.model.plan.roles import Spread, StepTraffic
from arena_topo.planner.memo import Memo
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import domain_at
from arena_topo.planner.nodes.node_state import NIC_EFFICIENCY, NodeState
from arena_topo.planner.roles.traffic import NodeLoad, all_reduce_seconds, node_seconds, summed_seconds
from arena_topo.planner.roles.turn import RoleChoice, Turn, evened

_MOST_KINDS = 100_000
_DIGITS = 12
"""Times that differ by less are rounding errors of the same time."""


def choose_servers(turn: Turn, span: Domain) -> RoleChoice | None:
    """Return the best nodes in *span* for the parameter servers whose *turn* it is, None where they do not fit."""
    places = turn.places(span)
    if sum(places) < turn.seat.role.pods:
        return None
    if turn.seat.role.spread is Spread.PREFERRED:
        places = evened(places, turn.seat.role.pods)
    counts = _counts(_Rule.of(turn), span, places)
    return turn.choice(counts, lambda position: places[position - span.start])


ServerMerit = tuple[float, int, int, int]
"""Seconds for each GB of parameters, levels from the workers, servers on nodes with GPUs, nodes: the lowest best."""


def server_merit(turn: Turn, counts: Mapping[int, int]) -> ServerMerit:
    """Return what the servers *counts*, by the position of their node, are compared by."""
    rule, fleet = _Rule.of(turn), turn.board.fleet
    seconds = max(
        rule.seconds(
            free_rate(fleet.state(position), rule.unknown),
            rule.workers.get(position, 0),
            counts.get(position, 0),
        )
        for position in {*counts, *rule.workers}
    )
    return (
        seconds,
        sum(rule.distance(position) * count for position, count in counts.items()),
        sum(count for position, count in counts.items() if fleet.state(position).total),
        len(counts),
    )


def step_traffic(turn: Turn, counts: Mapping[int, int]) -> StepTraffic:
    """Return how long a step exchanges data with the servers at *counts*, and without them."""
    rule, fleet, seat = _Rule.of(turn), turn.board.fleet, turn.seat
    worker = [free_rate(fleet.state(position), rule.unknown) for position in rule.workers]
    # A pod that asks for what a server does, on a node without GPUs: what would help to sum.
    places = seat.capacity.places
    available = sum(
        sum(map(bool, map(places.__getitem__, nodes)))
        for state, nodes in zip(fleet.states, fleet.nodes_by_state, strict=True)
        if not state.total
    )
    return StepTraffic(
        servers=server_merit(turn, counts)[0],
        all_reduce=all_reduce_seconds(worker, rule.total),
        with_cpu_nodes=tuple(
            (count, summed_seconds(len(worker), count, min(worker))) for count in _powers(len(worker))
        ),
        available=available,
        assumed=any(not fleet.state(position).rate for position in {*counts, *rule.workers}),
    )


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4 and so on below *most*, and *most*; nothing for a single node, which exchanges nothing."""
    powers = [1 << bit for bit in range(most.bit_length()) if 1 << bit < most]
    return [*powers, most] if most > 1 else []


def free_rate(state: NodeState, unknown: float) -> float:
    """Return the NIC rate in GB/s that the jobs on a node leave free: each GPU in use takes its share of it.

    *unknown* is the rate of a node that does not say.
    """
    rate = (state.rate or unknown) * NIC_EFFICIENCY
    # A node whose GPUs are all in use still carries what its own servers send, if slowly.
    return rate * max(state.free, 0.5) / state.total if state.total else rate


def lowest_rate(fleet: Fleet) -> float:
    """Return the lowest rate of a node's NICs that is known, by which those that do not say are counted; 1 where none is."""
    return min((state.rate for state in fleet.states if state.rate), default=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """What the places of servers are compared by: the workers on each node, and the domains around most of them.

    ``homes`` are those domains, the finest tier first and the cluster last; None where the workers have none there.
    """

    fleet: Fleet
    servers: int
    workers: Mapping[int, int]
    total: int
    homes: tuple[Domain | None, ...]
    unknown: float

    @classmethod
    def of(cls, turn: Turn) -> "_Rule":
        seat, fleet = turn.seat, turn.board.fleet
        workers = turn.placed[seat.serves].counts if seat.serves is not None else {}
        homes: list[Domain | None] = []
        for tier in reversed(fleet.domains):
            by_domain: dict[Domain, int] = {}
            for position, count in workers.items():
                if domain := domain_at(tier, position):
                    by_domain[domain] = by_domain.get(domain, 0) + count
            # Of domains with as many workers the first in fabric order.
            homes.append(max(by_domain, key=lambda domain: (by_domain[domain], -domain.start), default=None))
        return cls(
            fleet=fleet,
            servers=seat.role.pods,
            workers=workers,
            total=sum(workers.values()),
            homes=(*homes, fleet.cluster),
            unknown=lowest_rate(fleet),
        )

    def distance(self, position: int) -> int:
        """Return how many levels up the first domain is that holds the node and most workers; 0 is the finest tier."""
        return next(
            level
            for level, home in enumerate(self.homes)
            if home is not None and home.start <= position < home.end
        )

    def seconds(self, rate: float, workers: int, servers: int) -> float:
        """Return how long a NIC of *rate* takes with so many workers and servers on its node."""
        return round(node_seconds(NodeLoad(rate, workers, servers), self.total, self.servers), _DIGITS)

    def allowed(self, rate: float, workers: int, places: int, limit: float) -> tuple[int, int] | None:
        """Return the fewest and the most servers with which a node stays within *limit* seconds; None for none.

        Without servers a node's time is that of its workers, and each server adds n - 2 w parts: the times rise with
        the servers, or fall where most workers are on the node.
        """
        most = min(places, self.servers)
        counts = range(most + 1)
        if self.total > 2 * workers:
            fitting = bisect_right(counts, limit, key=lambda servers: self.seconds(rate, workers, servers))
            return (0, fitting - 1) if fitting else None
        least = bisect_left(counts, -limit, key=lambda servers: -self.seconds(rate, workers, servers))
        return (least, most) if least <= most else None


def _counts(rule: _Rule, span: Domain, places: Sequence[int]) -> dict[int, int]:
    """Return the servers of each node that gets any."""
    fleet, start = rule.fleet, span.start
    rates = [free_rate(state, rule.unknown) for state in fleet.states]
    state_ids = fleet.state_ids[span.start : span.end]
    kinds = Counter(zip(state_ids, places, strict=True))
    for position in rule.workers:
        # Their own traffic makes workers' nodes unlike all others.
        if span.start <= position < span.end:
            kinds[fleet.state_ids[position], places[position - start]] -= 1
    occupied = [
        (position, places[position - start] if span.start <= position < span.end else 0)
        for position in rule.workers
    ]
    alike: Counter[tuple[float, int, int]] = Counter()
    for (state, width), count in kinds.items():
        # More places than there are servers are as good as that many.
        alike[rates[state], 0, min(width, rule.servers)] += count if width else 0
    for position, width in occupied:
        alike[rates[fleet.state_ids[position]], rule.workers[position], min(width, rule.servers)] += 1
    limit = _shortest(rule, alike)
    bounds: Memo[tuple[float, int, int], tuple[int, int] | None] = Memo(
        lambda key: rule.allowed(*key, limit), limit=_MOST_KINDS
    )

    def bound(position: int) -> tuple[int, int]:
        width = places[position - start] if span.start <= position < span.end else 0
        key = rates[fleet.state_ids[position]], rule.workers.get(position, 0), width
        return bounds[key] or (0, 0)

    # Where most workers are on one node, it may be too slow without servers of its own.
    counts = {position: least for position, _ in occupied if (least := bound(position)[0])}
    for candidates in _by_cost(rule, span):
        left = rule.servers - sum(counts.values())
        room = {
            position: more
            for position in candidates
            if (more := bound(position)[1] - counts.get(position, 0)) > 0
        }
        # Nodes that have servers already cost nothing, then the widest are the fewest.
        for position in sorted(
            room,
            key=lambda at: (at not in counts, -room[at], fleet.state(at).free, at),
        ):
            added = min(room[position], left)
            if added:
                counts[position] = counts.get(position, 0) + added
                left -= added
        if not left:
            break
    return counts


def _shortest(rule: _Rule, alike: Mapping[tuple[float, int, int], int]) -> float:
    """Return the shortest time in which all servers have a place: how many nodes have a rate, workers, and places."""
    times = sorted(
        {
            rule.seconds(rate, workers, servers)
            for (rate, workers, width), count in alike.items()
            if count
            for servers in range(min(width, rule.servers) + 1)
        }
    )

    def holds(limit: float) -> bool:
        fewest = most = 0
        for (rate, workers, width), count in alike.items():
            if not count:
                continue
            allowed = rule.allowed(rate, workers, width, limit)
            if allowed is None:
                return False
            fewest, most = fewest + allowed[0] * count, most + allowed[1] * count
        return fewest <= rule.servers <= most

    # With more time every node may have more servers, or fewer: once all have a place, they keep it.
    return times[bisect_left(times, 1, key=lambda limit: int(holds(limit)))]


def _by_cost(rule: _Rule, span: Domain) -> Iterator[list[int]]:
    """Yield the nodes of *span* by what a server costs there: the closest to the workers first, without GPUs before with."""
    state_ids, states = rule.fleet.state_ids, rule.fleet.states
    has_gpus = [state.total > 0 for state in states]
    closer: list[Domain] = []
    for home in rule.homes:
        if home is None:
            continue
        ring = list(range(max(home.start, span.start), min(home.end, span.end)))
        # The block with most workers need not be the one around the rack with most workers.
        for inner in closer:
            ring = [position for position in ring if not inner.start <= position < inner.end]
        for wanted in (False, True):
            yield [position for position in ring if has_gpus[state_ids[position]] is wanted]
        closer.append(home)
