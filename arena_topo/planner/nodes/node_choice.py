"""Which nodes of a domain take how many workers of a gang: the fewest nodes, and of those the best.

With the fewest nodes, the places left unused on the chosen nodes are fewer than one node's: every node takes nearly all
it can, and the exact search (``search``) stays short. Where it would still be long, a greedy choice takes its place
and says so.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, compress
from operator import attrgetter, itemgetter

from arena_topo.model.plan.demand import Objective
from arena_topo.planner.nodes.fleet import Domain, Fleet
from arena_topo.planner.nodes.levels import Capacity
from arena_topo.planner.nodes.node_state import Offer, Use
from arena_topo.planner.nodes.objective import Goal, Merit
from arena_topo.planner.nodes.search import Effort, greedy, search
from arena_topo.planner.nodes.slack import Chosen, NodeGroup


@dataclass(frozen=True, slots=True)
class Problem:
    """A gang of ``workers`` with ``gpus`` GPUs each, and the fleet with its capacity for them.

    ``bandwidth_sensitive`` is False where only the damage to what stays free is to be compared; else ``objective`` says
    what goes first.
    """

    fleet: Fleet
    capacity: Capacity
    workers: int
    gpus: int
    bandwidth_sensitive: bool = True
    objective: Objective = Objective.BANDWIDTH

    def goal(self, nodes: int) -> Goal:
        """Return what the gang needs of so many *nodes*, and by what choices of them are compared."""
        return Goal(nodes, self.workers, self.objective, self.workers * self.gpus)

    def use(self, nodes: int) -> Use:
        """Return what the GPUs of a node are chosen for when the gang gets so many *nodes*."""
        if not self.bandwidth_sensitive:
            return Use.DAMAGE_ONLY
        return Use.SEVERAL_NODES if nodes > 1 else Use.ONE_NODE


@dataclass(frozen=True, slots=True)
class Pick:
    """The nodes of one domain that take the gang, as positions in fabric order, and each one's offer.

    ``complete`` is False where the search ended early, so that a better choice of nodes cannot be ruled out;
    ``sets_exact`` is False where a set of GPUs that was compared may not be the best of its node.
    """

    domain: Domain
    nodes: tuple[int, ...]
    offers: tuple[Offer, ...]
    merit: Merit
    complete: bool = True
    sets_exact: bool = True

    @property
    def busbw(self) -> float:
        """The lowest busbw of the nodes in GB/s; NICs count where there are several nodes."""
        # A gang runs at the pace of its slowest node, and on one node it does not use the NICs.
        return min(map(_INSIDE if len(self.offers) == 1 else _BUSBW, self.offers))

    @property
    def stranded(self) -> int:
        """The GPUs left over on the nodes."""
        return sum(offer.stranded for offer in self.offers)


def picked(
    domain: Domain, chosen: Chosen, goal: Goal, *, complete: bool = True, sets_exact: bool = True
) -> Pick:
    """Return *chosen*, nodes of *domain* that take a gang, in fabric order and with its merit."""
    nodes, offers = zip(*sorted(chosen, key=_POSITION), strict=True)
    inside = min(map(_INSIDE, offers))
    busbw = inside if len(offers) == 1 else min(map(_BUSBW, offers))
    return Pick(
        domain=domain,
        nodes=nodes,
        offers=offers,
        merit=goal.merit(busbw, inside, sum(map(_DAMAGE, offers))),
        complete=complete,
        sets_exact=sets_exact,
    )


_POSITION: Callable[[tuple[int, Offer]], int] = itemgetter(0)
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_INSIDE: Callable[[Offer], float] = attrgetter("inside")
_DAMAGE: Callable[[Offer], int] = attrgetter("damage")


def fewest(capacity: Capacity, domain: Domain, workers: int) -> int:
    """Return the least number of nodes of *domain* that have *workers* places together; it has as many."""
    # Workers are alike, so no other nodes hold as many in the same number as the widest.
    widest = sorted(capacity.places[domain.start : domain.end], reverse=True)
    return bisect_left(list(accumulate(widest)), workers) + 1


def pick(problem: Problem, domain: Domain, count: int, effort: Effort) -> Pick:
    """Return the best choice of *count* nodes, the fewest possible, in *domain*."""
    groups, sets_exact = _groups(problem, domain, count)
    goal = problem.goal(count)
    chosen = search(groups, goal, effort)
    return picked(
        domain,
        chosen or greedy(groups, goal),
        goal,
        complete=chosen is not None,
        sets_exact=sets_exact,
    )


def _groups(problem: Problem, domain: Domain, count: int) -> tuple[list[NodeGroup], bool]:
    """Return the nodes that can be among the fewest, equal ones in one group, with all that each may take.

    The second value says whether all their offers are exact. With nine workers on nodes that take 8, 4, 2 and 1 the
    two widest have 12 places, so 3 stay unused: a node that takes less than 4 - 3 = 1 is never chosen, one that takes 8
    gets 8 to 5 of the workers, and one that takes 4 gets 4 to 1.
    """
    places = problem.capacity.places
    widest = sorted(places[domain.start : domain.end], reverse=True)[:count]
    slack = sum(widest) - problem.workers
    least = max(widest[-1] - slack, 1)
    rows, gpus, use = problem.fleet.tables.rows, problem.gpus, problem.use(count)
    groups, sets_exact = [], True
    for most, state_id, nodes in alike(problem, domain, least, count):
        row = rows[gpus, use, state_id, most, max(most - slack, 1)]
        groups.append(NodeGroup(tuple(nodes), row.offers))
        sets_exact = sets_exact and row.exact
    return groups, sets_exact


def alike(problem: Problem, domain: Domain, least: int, count: int) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the nodes of *domain* that take *least* workers or more, by places and state, at most *count* of each."""
    places, by_state = problem.capacity.places, problem.capacity.by_state
    state_ids, start, end = problem.fleet.state_ids, domain.start, domain.end
    # A large domain has few states: look for each state's nodes in it rather than at every node.
    if by_state is not None and 4 * len(by_state) < end - start:
        nodes_by_state = problem.fleet.nodes_by_state
        for state_id, most in enumerate(by_state):
            if most >= least:
                nodes = nodes_by_state[state_id]
                first = bisect_left(nodes, start)
                same = nodes[first : min(first + count, bisect_left(nodes, end, first))]
                if same:
                    yield most, state_id, same
        return
    able = compress(range(start, end), map(least.__le__, places[start:end]))
    if by_state is not None:
        by_id: dict[int, list[int]] = {}
        for position in able:
            by_id.setdefault(state_ids[position], []).append(position)
        for state_id, same in by_id.items():
            yield by_state[state_id], state_id, same[:count]
        return
    by_places: dict[tuple[int, int], list[int]] = {}
    for position in able:
        by_places.setdefault((places[position], state_ids[position]), []).append(position)
    for (most, state_id), same in by_places.items():
        yield most, state_id, same[:count]
