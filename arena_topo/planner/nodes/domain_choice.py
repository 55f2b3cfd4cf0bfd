"""The domain and the nodes for a gang, in the order of design: closest level, fewest nodes, best busbw, least damage."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter

from arena_topo.model.plan.demand import Objective
from arena_topo.planner.nodes.bounds import DomainBounds
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import Room, capacity_by_domain, domain_at, domains_at, rooms
from arena_topo.planner.nodes.node_choice import Pick, Problem, fewest, pick, picked
from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.objective import Merit
from arena_topo.planner.nodes.search import Effort

EFFORT = 6_000
"""Steps of search that one decision may take before it settles for the best found so far: some milliseconds."""
NODES_PER_STEP = 2
"""In larger fleets there is one step more for every so many nodes."""


@dataclass(frozen=True, slots=True)
class DomainChoice:
    """The pick for a gang, and what it was chosen from.

    ``level`` is where it was searched, ``rivals`` how many domains there hold the gang. ``next_count`` is the number of
    nodes that the best of those with more nodes needs, 0 where there is none. ``runner_up`` is the best pick of another
    domain (or node) with as few nodes; it may be as good, and later by name. ``exact`` is False where something
    better cannot be ruled out: it depends on what this decision compared, and on no other decision.
    """

    pick: Pick
    level: int
    rivals: int
    next_count: int
    runner_up: Pick | None
    exact: bool


def choose_domain(problem: Problem, level: int) -> DomainChoice:
    """Return the best pick at *level*, which has a domain that holds all workers of *problem*."""
    if level == 0:
        return _choose_node(problem)
    capacity, workers = problem.capacity, problem.workers
    domains = domains_at(problem.fleet, level)
    holding = [
        number for number, places in enumerate(capacity_by_domain(capacity, domains)) if places >= workers
    ]
    counts = [fewest(capacity, domains[number], workers) for number in holding]
    least = min(counts)
    competing = [number for number, count in zip(holding, counts, strict=True) if count == least]
    picks, exact = _picks(problem, domains, competing, least)
    return DomainChoice(
        pick=picks[0],
        level=level,
        rivals=len(holding),
        next_count=min((count for count in counts if count > least), default=0),
        runner_up=picks[1] if len(picks) > 1 else None,
        exact=exact,
    )


def _picks(
    problem: Problem, domains: Sequence[Domain], competing: Sequence[int], count: int
) -> tuple[list[Pick], bool]:
    """Return the best picks of the *competing* ones of *domains*, at most two, and whether none can be better.

    Domains are searched in the order of what their hardware allows, tightest first; one whose bound is no better
    than the two picks so far is skipped. The result is exact only if every pick and every bound that was used is.
    """
    # One budget for all domains: the most promising ones are searched first and may use it up.
    effort = Effort(EFFORT + len(problem.fleet.nodes) // NODES_PER_STEP)
    competition = _Competition(problem, domains, competing, count)
    best: list[tuple[Merit, Room, int, Pick]] = []
    skipped: list[int] = []
    exact = True
    candidates = competition.best_first()
    for number, promise in candidates:
        domain = domains[number]
        # Two picks are kept because the second is shown as the runner-up: a skipped domain beats neither.
        room = competition.rooms[number]
        if len(best) > 1:
            # Candidates come in the order of what they promise: where this one cannot win, none of those after it can.
            if promise > best[1][0]:
                skipped += [number, *(other for other, _ in candidates)]
                break
            if (competition.bound(number), room, domain.start) > best[1][:3]:
                skipped.append(number)
                continue
        choice = pick(problem, domain, count, effort)
        exact = exact and choice.sets_exact
        # An incomplete search is still exact where its pick meets the bound, or where the best pick beats the bound.
        if not choice.complete and choice.merit > (bound := competition.bound(number)):
            exact = exact and bool(best) and (bound, room, domain.start) > best[0][:3]
        best = sorted((*best, (choice.merit, room, domain.start, choice)), key=itemgetter(0, 1, 2))[:2]
    return [choice for *_, choice in best], exact and competition.is_exact(skipped)


class _Competition:
    """The domains that compete for a gang, by their numbers in the tier, and their bounds."""

    def __init__(
        self, problem: Problem, domains: Sequence[Domain], numbers: Sequence[int], count: int
    ) -> None:
        self._problem = problem
        self._domains = domains
        self._numbers = numbers
        self._count = count

    @cached_property
    def rooms(self) -> list[Room]:
        """The room of every domain of the tier: of equally good domains the tightest is taken, at every level."""
        fleet, tier = self._problem.fleet, len(self._domains[0].path)
        return rooms(fleet, self._problem.capacity, tier)

    @cached_property
    def _bounds(self) -> DomainBounds:
        """The bounds, which a single domain needs only where its search does not end."""
        fleet, places = self._problem.fleet, self._problem.capacity.places
        domains = [self._domains[number] for number in self._numbers]
        most = max(max(places[domain.start : domain.end]) for domain in domains)
        tier = len(domains[0].path)
        return DomainBounds(self._problem, self._count, most, fleet.hardware_by_domain[tier])

    def best_first(self) -> Iterator[tuple[int, Merit]]:
        """Yield the domains with a merit that they do not exceed: the best first, then the tightest, then by name."""
        if len(self._numbers) == 1:
            yield self._numbers[0], ()
            return
        # Bandwidth goes first, and the hardware bounds it. What is left over depends on what is in use.
        is_bandwidth = self._problem.objective is Objective.BANDWIDTH
        promise = self._bounds.when_empty if is_bandwidth else self.bound
        ordered = sorted((promise(number), self.rooms[number], number) for number in self._numbers)
        yield from ((number, promised) for promised, _, number in ordered)

    def bound(self, number: int) -> Merit:
        """Return a merit that no choice in domain *number* is better than."""
        return self._bounds.bound(number, self._domains[number])

    def is_exact(self, skipped: Sequence[int]) -> bool:
        """Whether the domains that were *skipped* for their bounds have exact bounds."""
        return not skipped or self._bounds.is_exact(self._domains[number] for number in skipped)


def _choose_node(problem: Problem) -> DomainChoice:
    """Return the best single node: of the best states, the node in the tightest domain."""
    goal = problem.goal(1)
    by_merit: dict[Merit, list[list[int]]] = {}
    exact = True
    for state_id, nodes in _holding_nodes(problem):
        offer = _offer_of_one_node(problem, state_id, problem.workers)
        # One node needs no NIC, and the tightest domain is looked for among equally good nodes only.
        merit = goal.merit(offer.inside, offer.inside, offer.damage)
        by_merit.setdefault(merit, []).append(nodes)
        exact = exact and offer.exact
    ranked = [by_merit[merit] for merit in sorted(by_merit)[:2]]
    best = _tightest(problem, sorted(chain.from_iterable(ranked[0])))
    return DomainChoice(
        pick=_on_one_node(problem, best),
        level=0,
        rivals=sum(len(nodes) for alike in by_merit.values() for nodes in alike),
        next_count=0,
        runner_up=_on_one_node(problem, min(map(min, ranked[1]))) if len(ranked) > 1 else None,
        exact=exact,
    )


def _holding_nodes(problem: Problem) -> Iterator[tuple[int, list[int]]]:
    """Yield the nodes that take the whole gang, ascending, by the id of their state."""
    workers, capacity = problem.workers, problem.capacity
    for state_id, nodes in enumerate(problem.fleet.nodes_by_state):
        if capacity.by_state is None:
            holding = [position for position in nodes if capacity.places[position] >= workers]
        else:
            holding = nodes if capacity.by_state[state_id] >= workers else []
        if holding:
            yield state_id, holding


def _offer_of_one_node(problem: Problem, state_id: int, places: int) -> Offer:
    return problem.fleet.tables.offer(problem.gpus, problem.use(1), state_id, problem.workers, places)


def _on_one_node(problem: Problem, position: int) -> Pick:
    """Return the pick of the node at *position* for the whole gang."""
    fleet = problem.fleet
    offer = _offer_of_one_node(problem, fleet.state_ids[position], problem.capacity.places[position])
    return picked(_finest_domain(fleet, position), [(position, offer)], problem.goal(1))


def _tightest(problem: Problem, nodes: Sequence[int]) -> int:
    """Return the one of *nodes*, in fabric order, whose domains have the least room; the first of equals."""
    tiers = problem.fleet.domains
    # A node that is in no domain of a tier is taken after those that are: the next coarser tier compares such nodes.
    for depth in range(len(tiers), 0, -1):
        best: tuple[Room, int] | None = None
        for domain, room in zip(tiers[depth - 1], rooms(problem.fleet, problem.capacity, depth), strict=True):
            first = bisect_left(nodes, domain.start)
            if first < len(nodes) and nodes[first] < domain.end:
                candidate = (room, nodes[first])
                best = min(best, candidate) if best else candidate
        if best:
            return best[1]
    return nodes[0]


def _finest_domain(fleet: Fleet, position: int) -> Domain:
    """Return the finest domain that the node at *position* is in, the node itself where it is in none."""
    domain = domain_at(fleet.domains[-1], position) if fleet.tiers else None
    return domain or Domain((fleet.nodes[position].name,), position, position + 1)
