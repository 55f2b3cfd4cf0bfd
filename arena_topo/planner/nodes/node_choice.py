"""Which nodes of a domain take how many workers of a gang: the fewest nodes, and of those the best.

With the fewest nodes, the places left unused on the chosen nodes are fewer than one node's: every node takes nearly all
it can, and the exact search (``searching``) stays short. Where it would still be long, a greedy choice takes its place
and says so.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, compress
from operator import attrgetter, itemgetter

from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import Room
from arena_topo.planner.nodes.offers import Offer, Offers
from arena_topo.planner.nodes.search import Effort, greedy, search
from arena_topo.planner.nodes.slack import Chosen, Goal, Group

Merit = tuple[float, float, int, int]
"""The rank among picks of as many nodes in domains of one level, the lowest best: bandwidth with NICs counted and
bandwidth inside the nodes (both negative), damage on the nodes used, places left in the domain."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The workers to place, the room for them, and what the nodes offer them."""

    workers: int
    space: Room
    offers: Offers

    @property
    def fleet(self) -> Fleet:
        """The nodes."""
        return self.offers.fleet


@dataclass(frozen=True, slots=True)
class Pick:
    """The nodes of one domain that take the gang, as positions in fabric order, and each one's offer.

    ``exact`` is False where a better choice in this domain cannot be ruled out.
    """

    domain: Domain
    nodes: tuple[int, ...]
    offers: tuple[Offer, ...]
    merit: Merit
    exact: bool = True

    @property
    def busbw(self) -> float:
        """The lowest busbw of the nodes in GB/s; NICs count where there are several nodes."""
        return -self.merit[0]


def picked(problem: Problem, domain: Domain, chosen: Chosen, *, exact: bool = True) -> Pick:
    """Return *chosen*, nodes of *domain* that take the gang of *problem*, in fabric order and with its merit."""
    ordered = sorted(chosen, key=_position)
    nodes, offers = zip(*ordered, strict=True)
    inside = min(map(_INSIDE, offers))
    busbw = inside if len(offers) == 1 else min(map(_BUSBW, offers))
    left = problem.space.within(domain) - problem.workers
    return Pick(
        domain=domain,
        nodes=nodes,
        offers=offers,
        merit=(-busbw, -inside, sum(map(_DAMAGE, offers)), left),
        exact=exact,
    )


_position: Callable[[tuple[int, Offer]], int] = itemgetter(0)
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")
_DAMAGE: Callable[[Offer], int] = attrgetter("damage")


def fewest(space: Room, domain: Domain, workers: int) -> int:
    """Return the least number of nodes of *domain* that have *workers* places together; it has as many."""
    widest = sorted(space.places[domain.start : domain.end], reverse=True)
    return bisect_left(list(accumulate(widest)), workers) + 1


def pick(problem: Problem, domain: Domain, count: int, effort: Effort) -> Pick:
    """Return the best choice of *count* nodes, the fewest possible, in *domain*."""
    groups, goal = _groups(problem, domain, count), Goal(count, problem.workers)
    chosen = search(groups, goal, effort)
    return picked(problem, domain, chosen or greedy(groups, goal), exact=chosen is not None)


def _groups(problem: Problem, domain: Domain, count: int) -> list[Group]:
    """Return the nodes that can be among the fewest, equal ones in one group, with all that each may take."""
    places, offers = problem.space.places, problem.offers
    widest = sorted(places[domain.start : domain.end], reverse=True)[:count]
    slack = sum(widest) - problem.workers
    least = max(widest[-1] - slack, 1)
    return [
        Group(
            tuple(alike),
            tuple([offers.of(kind, taken, most) for taken in range(most, max(most - slack, 1) - 1, -1)]),
        )
        for most, kind, alike in _alike(problem, domain, least, count)
    ]


def _alike(problem: Problem, domain: Domain, least: int, count: int) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the nodes of *domain* that take *least* workers or more, by places and state, at most *count* of each."""
    places, kinds, by_kind = problem.space.places, problem.fleet.kinds, problem.space.by_kind
    start, end = domain.start, domain.end
    if by_kind is not None and 4 * len(by_kind) < end - start:
        members = problem.fleet.members
        for kind, most in enumerate(by_kind):
            if most >= least:
                positions = members[kind]
                first = bisect_left(positions, start)
                alike = positions[first : min(first + count, bisect_left(positions, end, first))]
                if alike:
                    yield most, kind, alike
        return
    able = compress(range(start, end), map(least.__le__, places[start:end]))
    if by_kind is not None:
        alike_kinds: dict[int, list[int]] = {}
        for at in able:
            alike_kinds.setdefault(kinds[at], []).append(at)
        for kind, alike in alike_kinds.items():
            yield by_kind[kind], kind, alike[:count]
        return
    found: dict[tuple[int, int], list[int]] = {}
    for at in able:
        found.setdefault((places[at], kinds[at]), []).append(at)
    for (most, kind), alike in found.items():
        yield most, kind, alike[:count]
