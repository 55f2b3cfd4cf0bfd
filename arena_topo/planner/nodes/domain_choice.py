"""The domain and the nodes for a gang, in the order of design: closest level, fewest nodes, best busbw, least damage."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter

from arena_topo.planner.nodes.bounds import NO_BOUND, Bounds, domain_hardware
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import domains, rooms
from arena_topo.planner.nodes.node_choice import Merit, Pick, Problem, fewest, pick, picked
from arena_topo.planner.nodes.search import Effort

EFFORT = 6_000
"""Steps of search that one decision may take before it settles for the best found so far: some milliseconds."""
NODES_A_STEP = 2
"""In larger fleets there is one step more for so many nodes."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """The pick for a gang, and what it was chosen from.

    ``level`` is where it was searched, ``rivals`` how many domains there hold the gang, ``equals`` how many of them
    with as few nodes. ``next_count`` is the number of nodes that the best of the others needs, 0 where there is
    none. ``runner_up`` is the best pick of another domain (or node) with as few nodes; it may be as good, and later
    by name. ``exact`` is False where something better cannot be ruled out.
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
    tier = domains(problem.fleet, level)
    holding = [at for at, places in enumerate(rooms(space, tier)) if places >= workers]
    counts = [fewest(space, tier[at], workers) for at in holding]
    least = min(counts)
    equal = [at for at, count in zip(holding, counts, strict=True) if count == least]
    picks, exact = _picks(problem, tier, equal, least)
    return Choosing(
        pick=picks[0],
        level=level,
        rivals=len(holding),
        equals=len(equal),
        next_count=min((count for count in counts if count > least), default=0),
        runner_up=picks[1] if len(picks) > 1 else None,
        exact=exact and problem.offers.exact,
    )


def _picks(
    problem: Problem, tier: Sequence[Domain], equal: Sequence[int], count: int
) -> tuple[list[Pick], bool]:
    """Return the best picks of the domains *equal* of *tier*, at most two, and whether none can be better.

    Domains are searched in the order of what their hardware allows, tightest first; one whose bound is no better
    than the picks so far is left out.
    """
    effort = Effort(EFFORT + len(problem.fleet.nodes) // NODES_A_STEP)
    best: list[tuple[Merit, int, Pick]] = []
    exact = True
    for domain, rates, bound in _promising(problem, tier, equal, count):
        if len(best) > 1:
            if rates > best[1][0][:2]:
                break
            if (bound(), domain.start) > best[1][:2]:
                continue
        found = pick(problem, domain, count, effort)
        if not found.exact and found.merit > bound():
            exact = exact and bool(best) and (bound(), domain.start) > best[0][:2]
        best = sorted((*best, (found.merit, domain.start, found)), key=itemgetter(0, 1))[:2]
    return [each for _, _, each in best], exact


def _promising(
    problem: Problem, tier: Sequence[Domain], equal: Sequence[int], count: int
) -> Iterator[tuple[Domain, tuple[float, float], Callable[[], Merit]]]:
    """Yield the domains *equal* of *tier*, those whose hardware allows most first, with what it allows.

    The third is the bound of the domain, for when it is needed.
    """
    space, fleet = problem.space, problem.fleet

    def bounds() -> Bounds:
        widest = max(max(space.places[tier[at].start : tier[at].end]) for at in equal)
        return Bounds(problem, count, widest, domain_hardware(fleet, tier))

    if len(equal) == 1:
        only = tier[equal[0]]
        yield only, NO_BOUND, lambda: bounds().bound(equal[0], only, space.within(only) - problem.workers)
        return
    made = bounds()
    ordered = sorted((made.rates(at), space.within(tier[at]) - problem.workers, at) for at in equal)
    for rates, left, at in ordered:
        yield tier[at], rates, partial(made.bound, at, tier[at], left)


def _choose_node(problem: Problem) -> Choosing:
    """Return the best single node: of the best states, the node in the domain with the least room."""
    by_merit: dict[Merit, list[list[int]]] = {}
    for kind, nodes in _able(problem):
        offer = problem.offers.of(kind, problem.workers, problem.workers)
        by_merit.setdefault((-offer.inside, 0, offer.damage, 0), []).append(nodes)
    ranked = [by_merit[merit] for merit in sorted(by_merit)[:2]]
    rivals = sum(len(nodes) for alike in by_merit.values() for nodes in alike)
    best = _tightest(problem, sorted(chain.from_iterable(ranked[0])))
    return Choosing(
        pick=_alone(problem, best),
        level=0,
        rivals=rivals,
        equals=rivals,
        next_count=0,
        runner_up=_alone(problem, min(map(min, ranked[1]))) if len(ranked) > 1 else None,
        exact=problem.offers.exact,
    )


def _able(problem: Problem) -> Iterator[tuple[int, list[int]]]:
    """Yield the nodes that take the whole gang, ascending, by their state."""
    workers, places, by_kind = problem.workers, problem.space.places, problem.space.by_kind
    for kind, nodes in enumerate(problem.fleet.members):
        if by_kind is None:
            able = [at for at in nodes if places[at] >= workers]
        else:
            able = nodes if by_kind[kind] >= workers else []
        if able:
            yield kind, able


def _alone(problem: Problem, at: int) -> Pick:
    """Return the pick of the node at *at* for the whole gang."""
    fleet, places, workers = problem.fleet, problem.space.places, problem.workers
    offer = problem.offers.of(fleet.kinds[at], workers, places[at])
    return picked(problem, _finest(fleet, at), [(at, offer)])


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
