"""Which nodes of a domain take how many workers of a gang: the fewest nodes, and of those the best.

With the fewest nodes, the places left unused on the chosen nodes are fewer than one node's: every node takes nearly all
it can, and the exact search (``searching``) stays short. Where it would still be long, a greedy choice takes its place
and says so.
"""

from dataclasses import dataclass
from itertools import accumulate, compress

from arena_topo.planner.fleet import Domain, Fleet
from arena_topo.planner.levels import Room
from arena_topo.planner.offers import Offer, Offers
from arena_topo.planner.searching import Chosen, Effort, Goal, Group, greedy, search


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
    left: int
    exact: bool = True

    @property
    def merit(self) -> tuple[float, float, int, float, int]:
        """The rank among picks of as many nodes in domains of one level: the lowest is best.

        Bandwidth with NICs counted, bandwidth inside the nodes, GPUs left over on the nodes used, quality lost by
        them, places left in the domain.
        """
        return (
            -min(offer.busbw for offer in self.offers),
            -min(offer.inside for offer in self.offers),
            sum(offer.stranded for offer in self.offers),
            round(sum(offer.loss for offer in self.offers), 6),
            self.left,
        )


def fewest(space: Room, domain: Domain, workers: int) -> int:
    """Return the least number of nodes of *domain* that have *workers* places together; it has as many."""
    widest = sorted(space.places[domain.start : domain.end], reverse=True)
    for count, placed in enumerate(accumulate(widest), 1):
        if placed >= workers:
            return count
    raise ValueError(f"{domain.name} has fewer than {workers} places")


def pick(problem: Problem, domain: Domain, count: int, effort: Effort) -> Pick:
    """Return the best choice of *count* nodes, the fewest possible, in *domain*."""
    groups, goal = _groups(problem, domain, count), Goal(count, problem.workers)
    chosen = search(groups, goal, effort)
    return _picked(problem, domain, chosen or greedy(groups, goal), exact=chosen is not None)


def _picked(problem: Problem, domain: Domain, chosen: Chosen, *, exact: bool) -> Pick:
    ordered = sorted(chosen, key=lambda each: each[0])
    return Pick(
        domain=domain,
        nodes=tuple(at for at, _ in ordered),
        offers=tuple(offer for _, offer in ordered),
        left=problem.space.within(domain) - problem.workers,
        exact=exact,
    )


def _groups(problem: Problem, domain: Domain, count: int) -> list[Group]:
    """Return the nodes that can be among the fewest, equal ones in one group, with all that each may take."""
    kinds, places, offers = problem.fleet.kinds, problem.space.places, problem.offers
    widest = sorted(places[domain.start : domain.end], reverse=True)[:count]
    slack = sum(widest) - problem.workers
    least = max(widest[-1] - slack, 1)
    members: dict[tuple[int, int], list[int]] = {}
    for at in compress(range(domain.start, domain.end), map(least.__le__, places[domain.start : domain.end])):
        alike = members.setdefault((places[at], kinds[at]), [])
        if len(alike) < count:
            alike.append(at)
    return [
        Group(
            tuple(alike),
            tuple(offers.of(kind, taken, most) for taken in range(most, max(most - slack, 1) - 1, -1)),
        )
        for (most, kind), alike in members.items()
    ]
