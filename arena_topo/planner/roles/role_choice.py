"""The nodes of one role, given those of the roles before it: as a gang of one role gets them, within ties and slices.

A choice is compared by, in this order: the most pods on one node, where the role is spread; the number of nodes, fewest
or, where it is spread, most; the bandwidth with NICs counted, and inside the nodes; the preferences missed; the damage
to what stays free.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from arena_topo.model.plan.roles import Spread
from arena_topo.planner.nodes.alignment import Alignment
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.objective import Goal
from arena_topo.planner.nodes.search import Effort, greedy, search
from arena_topo.planner.nodes.slack import Chosen, NodeGroup
from arena_topo.planner.roles.slices import fewest_nodes, sliced
from arena_topo.planner.roles.turn import Openings, RoleChoice, Turn, evened

_MANY = 512
"""In a domain of more nodes, groups of equal ones are compared before any node is looked at."""


def choose_nodes(turn: Turn, span: Domain, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *turn* in *span*, None where there is none."""
    seat, size = turn.seat, turn.seat.whole
    plain = not (seat.slices or seat.apart or size > 1 or seat.penalties)
    if plain and span.end - span.start > _MANY:
        return _in_groups(turn, turn.openings(span), effort)
    places = turn.places(span)
    if size > 1:
        places = [width // size * size for width in places]
    if sum(places) < seat.role.pods:
        return None
    parts, exact = [(span, seat.role.pods)], True
    if seat.slices or seat.apart:
        # The choice between domains minds the number of nodes alone.
        exact = False
        parts = sliced(turn.board, seat, span, places) if seat.slices else _one_each(turn, span, places)
    if not parts:
        return None
    chosen: Chosen = []
    for part, pods in parts:
        own = _Part(turn, part, places[part.start - span.start : part.end - span.start], len(parts) > 1)
        nodes, complete = own.best(pods, effort)
        if not nodes:
            return None
        chosen += nodes
        exact = exact and complete
    return turn.chosen(chosen, exact=exact)


_TakenGpus = tuple[int, int, Alignment | None]
"""How many GPUs earlier seats took of a node, which, and what they left of its NUMA nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A domain that takes a number of pods, with its places; ``others``: other domains take pods of the role as well."""

    turn: Turn
    domain: Domain
    places: Sequence[int]
    others: bool

    def best(self, pods: int, effort: Effort) -> tuple[Chosen, bool]:
        """Return the best nodes for so many *pods*, and whether they are proven to be; none where there are none."""
        spread = self.turn.seat.role.spread is Spread.PREFERRED
        # What must stay on one node is searched for as one.
        size = self.turn.seat.whole
        places, pods = self.places, pods // size
        if size > 1:
            places = [width // size for width in places]
        if spread:
            places = evened(places, pods)
            count = min(pods, len(places) - list(places).count(0))
        else:
            count = fewest_nodes(places, pods)
        if not count:
            return [], False
        widest = sorted(places, reverse=True)[:count] if count > 1 else [max(places)]
        slack = sum(widest) - pods
        # A node that has fewer places than the narrowest of the widest by more than the slack is never chosen.
        least = max(widest[-1] - slack, 1)
        groups, sets_exact = _groups(
            self.turn, self._alike(places, least, count), slack, several=self.others or count > 1
        )
        role, objective = self.turn.seat.role, self.turn.board.objective
        goal = Goal(count, pods, objective, role.gpus * pods * size)
        found = search(groups, goal, effort)
        chosen = found if found is not None else _unproven(groups, goal, spread=spread)
        if size > 1:
            chosen = [(at, replace(offer, workers=offer.workers * size)) for at, offer in chosen]
        return chosen, sets_exact and found is not None

    def _alike(self, places: Sequence[int], least: int, count: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the nodes that have *least* places or more, equal ones together, at most *count* of each, with their places."""
        fleet, penalties, start = self.turn.board.fleet, self.turn.seat.penalties, self.domain.start
        touched = _gpus_taken(self.turn)
        alike: dict[tuple[int, int, int, _TakenGpus], list[int]] = {}
        for index in compress(range(len(places)), map(least.__le__, places)):
            position = start + index
            misses = 0 if penalties is None else penalties[position]
            # Nodes of which others have taken the same GPUs are alike as well.
            taken = touched.get(position, (0, 0, None))
            nodes = alike.setdefault((places[index], fleet.state_ids[position], misses, taken), [])
            if len(nodes) < count:
                nodes.append(position)
        for (width, *_), nodes in alike.items():
            yield width, nodes


def _in_groups(turn: Turn, openings: Openings, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *turn* among the nodes of a large span, which are in few groups."""
    pods = turn.seat.role.pods
    numbers: Counter[int] = Counter(width for width in openings.touched.values() if width)
    for _, width, nodes in openings.groups:
        numbers[width] += len(nodes)
    widths = sorted(numbers, reverse=True)
    if sum(width * numbers[width] for width in widths) < pods:
        return None
    # The fewest nodes are the widest ones, and the last of these are the narrowest.
    spread = turn.seat.role.spread is Spread.PREFERRED
    count = held = narrowest = 0
    for width in widths:
        needed = pods - count if spread else -(-(pods - held) // width)
        narrowest, taken = width, min(numbers[width], needed)
        count, held = count + taken, held + taken * width
        if (count if spread else held) >= pods:
            break
    slack = held - pods
    least = max(narrowest - slack, 1)
    alike = _alike_in_groups(turn, openings, least, count)
    groups, sets_exact = _groups(turn, alike, slack, several=count > 1)
    goal = Goal(count, pods, turn.board.objective, turn.seat.role.gpus * pods)
    found = search(groups, goal, effort)
    chosen = found if found is not None else _unproven(groups, goal, spread=spread)
    return turn.chosen(chosen, exact=sets_exact and found is not None) if chosen else None


def _alike_in_groups(
    turn: Turn, openings: Openings, least: int, count: int
) -> Iterator[tuple[int, list[int]]]:
    """Yield the nodes that have *least* places or more, equal ones together, at most *count* of each, with their places."""
    states, state_ids, taken_of = turn.board.fleet.states, turn.board.fleet.state_ids, _gpus_taken(turn)
    # To pods without GPUs, nodes with as many free GPUs are equally good.
    kinds = range(len(states)) if turn.seat.role.gpus else [state.free for state in states]
    less: dict[tuple[int, int, _TakenGpus], list[int]] = {}
    alike: dict[tuple[int, int], list[int]] = {}
    for state_id, width, nodes in openings.groups:
        if width >= least:
            alike.setdefault((width, kinds[state_id]), []).extend(nodes[:count])
    for position, width in openings.touched.items():
        if width >= least:
            state_id = state_ids[position]
            if position in taken_of:
                less.setdefault((width, state_id, taken_of[position]), []).append(position)
            else:
                alike.setdefault((width, kinds[state_id]), []).append(position)
    for (width, *_), nodes in less.items():
        yield width, sorted(nodes)[:count]
    # In fabric order, as if each node had been looked at.
    merged = [(sorted(nodes)[:count], width) for (width, _), nodes in alike.items()]
    yield from ((width, nodes) for nodes, width in sorted(merged))


def _groups(
    turn: Turn, alike: Iterable[tuple[int, Sequence[int]]], slack: int, *, several: bool
) -> tuple[list[NodeGroup], bool]:
    """Return the groups of nodes with what each may take, and whether all offers are exact.

    Of the places on the nodes chosen, *slack* stay unused. *several*: the role has pods on other nodes too.
    """
    groups, exact = [], True
    for width, nodes in alike:
        offers = tuple(
            _offer(turn, nodes[0], taken, width, several=several)
            for taken in range(width, max(width - slack, 1) - 1, -1)
        )
        groups.append(NodeGroup(tuple(nodes), offers))
        exact = exact and all(offer.exact for offer in offers)
    return groups, exact


def _gpus_taken(turn: Turn) -> dict[int, _TakenGpus]:
    """Return how many GPUs of a node earlier seats took, and which, by its position; a node of which they took none is left out."""
    return {
        position: (taken.gpus, taken.mask, taken.alignment)
        for position, taken in turn.taken.nodes.items()
        if turn.touches(position)
    }


def _offer(turn: Turn, position: int, taken: int, width: int, *, several: bool) -> Offer:
    """Return what a node gives so many slices of those that stay on one node, counted as one pod each."""
    size = turn.seat.whole
    offer = turn.offer(position, taken * size, width * size, several=several)
    return replace(offer, workers=taken) if size > 1 else offer


def _unproven(groups: Sequence[NodeGroup], goal: Goal, *, spread: bool) -> Chosen:
    """Return a choice where the search for the best one did not end."""
    return _even(groups, goal.workers) if spread else greedy(groups, goal)


def _even(groups: Sequence[NodeGroup], pods: int) -> Chosen:
    """Return a spread over all nodes of *groups*: one pod each, then the rest where the offers allow more."""
    nodes = [(position, group) for group in groups for position in group.nodes]
    nodes.sort(key=lambda entry: (-entry[1].most, entry[0]))
    spare, chosen = pods - len(nodes), []
    for position, group in nodes:
        added = min(spare, group.most - 1)
        spare -= added
        chosen.append((position, next(o for o in group.offers if o.workers == added + 1)))
    return chosen


def _one_each(turn: Turn, span: Domain, places: Sequence[int]) -> list[tuple[Domain, int]]:
    """Return the best node of as many domains as there are pods, where each takes one; none where too few do."""
    pods = turn.seat.role.pods
    goal = Goal(1, 1, turn.board.objective, turn.seat.role.gpus)
    rated = []
    for part in turn.board.parts(turn.seat.apart or 0, span):
        nodes = [position for position in range(part.start, part.end) if places[position - span.start]]
        if nodes:
            offers = [
                turn.offer(position, 1, places[position - span.start], several=pods > 1) for position in nodes
            ]
            ranks = [
                (goal.merit(offer.busbw, offer.inside, offer.damage), position)
                for offer, position in zip(offers, nodes, strict=True)
            ]
            rated.append(min(ranks))
    if len(rated) < pods:
        return []
    return [(Domain((), position, position + 1), 1) for _, position in sorted(rated)[:pods]]
