"""The domain and the nodes for a gang, in the order of design: closest level, fewest nodes, best busbw, least damage."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter

from arena_topo.planner.fleet import Domain, Fleet
from arena_topo.planner.levels import Room, domains
from arena_topo.planner.picking import Pick, Problem, fewest, pick
from arena_topo.planner.searching import Effort

EFFORT = 20_000
"""Steps of search that one decision may take before it settles for the best found so far."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """The pick for a gang, and what it was chosen from.

    ``level`` is where it was searched, ``rivals`` how many domains there hold the gang, ``equals`` how many of them
    with as few nodes. ``next_count`` is the number of nodes that the best of the others needs, 0 where there is
    none. ``runner_up`` is the best pick of another domain (or node) with as few nodes. ``exact`` is False where
    something better cannot be ruled out.
    """

    pick: Pick
    level: int
    rivals: int
    equals: int
    next_count: int
    runner_up: Pick | None
    exact: bool


def choose(problem: Problem, level: int) -> Choosing:
    """Return the best pick at *level*, which has a domain that holds all workers of *problem*."""
    if level == 0:
        return _choose_node(problem)
    space, workers = problem.space, problem.workers
    holding = [each for each in domains(problem.fleet, level) if space.within(each) >= workers]
    counts = _counts(space, holding, workers)
    least = min(counts)
    equal = [domain for domain, count in zip(holding, counts, strict=True) if count == least]
    picks, exact = _picks(problem, equal, least)
    return Choosing(
        pick=picks[0],
        level=level,
        rivals=len(holding),
        equals=len(equal),
        next_count=min((count for count in counts if count > least), default=0),
        runner_up=picks[1] if len(picks) > 1 else None,
        exact=exact and picks[0].exact,
    )


def _counts(space: Room, holding: Sequence[Domain], workers: int) -> list[int]:
    """Return the fewest nodes that each of *holding* needs; domains with the same places share the answer."""
    known: dict[tuple[int, ...], int] = {}
    counts = []
    for domain in holding:
        key = tuple(space.places[domain.start : domain.end])
        count = known.get(key)
        if count is None:
            count = known[key] = fewest(space, domain, workers)
        counts.append(count)
    return counts


def _picks(problem: Problem, equal: Sequence[Domain], count: int) -> tuple[list[Pick], bool]:
    """Return the best picks of *equal*, at most two, and whether all of *equal* were compared.

    The tightest domain comes first, so that it is the one that stays when the effort is spent.
    """
    effort = Effort(EFFORT)
    best: list[Pick] = []
    seen: set[tuple[tuple[int, int], ...]] = set()
    for domain in sorted(equal, key=lambda each: (problem.space.within(each), each.start)):
        if len(equal) > 1:
            alike = _makeup(problem, domain)
            if alike in seen:
                continue
            seen.add(alike)
        if best and not effort.spend(domain.end - domain.start):
            return best, False
        best.append(pick(problem, domain, count, effort))
        best.sort(key=lambda each: (each.merit, each.nodes))
        del best[2:]
    return best, True


def _makeup(problem: Problem, domain: Domain) -> tuple[tuple[int, int], ...]:
    """Return the places and states of the nodes of *domain* that take workers, whatever their order."""
    places = problem.space.places[domain.start : domain.end]
    kinds = problem.fleet.kinds[domain.start : domain.end]
    return tuple(sorted(zip(compress(places, places), compress(kinds, places), strict=True)))


def _choose_node(problem: Problem) -> Choosing:
    """Return the best single node: of the best states, the node in the domain with the least room."""
    kinds, places = problem.fleet.kinds, problem.space.places
    alike: dict[tuple[int, int], list[int]] = {}
    for at in compress(range(len(places)), map(problem.workers.__le__, places)):
        alike.setdefault((kinds[at], 0 if problem.offers.gpus else places[at]), []).append(at)
    by_merit: dict[tuple[float, ...], list[int]] = {}
    for members in alike.values():
        merit = _alone(problem, members[0]).merit[:-1]
        by_merit.setdefault(merit, []).extend(members)
    ranked = [sorted(by_merit[merit]) for merit in sorted(by_merit)]
    best = _tightest(problem, ranked[0])
    return Choosing(
        pick=_alone(problem, best),
        level=0,
        rivals=sum(map(len, ranked)),
        equals=sum(map(len, ranked)),
        next_count=0,
        runner_up=_alone(problem, ranked[1][0]) if len(ranked) > 1 else None,
        exact=True,
    )


def _alone(problem: Problem, at: int) -> Pick:
    """Return the pick of the node at *at* for the whole gang."""
    fleet, places, workers = problem.fleet, problem.space.places, problem.workers
    return Pick(
        domain=Domain((fleet.nodes[at].name,), at, at + 1),
        nodes=(at,),
        offers=(problem.offers.of(fleet.kinds[at], workers, places[at]),),
        left=problem.space.within(_finest(fleet, at)) - workers,
    )


def _tightest(problem: Problem, nodes: Sequence[int]) -> int:
    """Return the one of *nodes*, in fabric order, whose finest domain has the least room; the first of equals."""
    tiers = problem.fleet.domains
    if not tiers:
        return nodes[0]
    best: tuple[int, int] | None = None
    for domain in tiers[-1]:
        first = bisect_left(nodes, domain.start)
        if first < len(nodes) and nodes[first] < domain.end:
            found = (problem.space.within(domain), nodes[first])
            best = min(best, found) if best else found
    return best[1] if best else nodes[0]


def _finest(fleet: Fleet, at: int) -> Domain:
    """Return the finest domain that the node at *at* is in, the node itself where it is in none."""
    if fleet.tiers:
        tier = fleet.domains[-1]
        found = bisect_right(tier, at, key=attrgetter("start")) - 1
        if found >= 0 and at < tier[found].end:
            return tier[found]
    return Domain((fleet.nodes[at].name,), at, at + 1)
