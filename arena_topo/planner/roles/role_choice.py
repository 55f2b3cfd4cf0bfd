"""The nodes of one role, given those of the roles before it: as a gang of one role gets them, within ties and slices.

A choice is compared by, in this order: the most pods on one node, where the role is spread; the number of nodes, fewest
or, where it is spread, most; the bandwidth with NICs counted, and inside the nodes; the preferences missed; the damage
to what stays free.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import add

from arena_topo.model.plan.roles import Spread
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.objective import Goal
from arena_topo.planner.nodes.search import Effort, greedy, search
from arena_topo.planner.nodes.slack import Chosen, NodeGroup
from arena_topo.planner.roles.slices import fewest_nodes, sliced
from arena_topo.planner.roles.turn import RoleChoice, Turn, evened

_MANY = 512
"""In a domain of more nodes, kinds are counted before any node is looked at."""


def choose_nodes(turn: Turn, span: Domain, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *turn* in *span*, None where there is none."""
    seat, size = turn.seat, turn.seat.whole
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
        groups, sets_exact = self._groups(places, count, pods)
        role, objective = self.turn.seat.role, self.turn.board.objective
        goal = Goal(count, pods, objective, role.gpus * pods * size)
        found = search(groups, goal, effort)
        chosen = found if found is not None else (_even(groups, pods) if spread else greedy(groups, goal))
        if size > 1:
            chosen = [(at, replace(offer, workers=offer.workers * size)) for at, offer in chosen]
        return chosen, sets_exact and found is not None

    def _groups(self, places: Sequence[int], count: int, pods: int) -> tuple[list[NodeGroup], bool]:
        """Return the nodes that can be among the *count* chosen, equal ones in one group, and whether all offers are exact."""
        widest = sorted(places, reverse=True)[:count] if count > 1 else [max(places)]
        slack = sum(widest) - pods
        # A node that has fewer places than the narrowest of the widest by more than the slack is never chosen.
        least = max(widest[-1] - slack, 1)
        several = self.others or count > 1
        groups, exact = [], True
        for width, nodes in self._alike(places, least, count):
            offers = tuple(
                self._offer(nodes[0], taken, width, several=several)
                for taken in range(width, max(width - slack, 1) - 1, -1)
            )
            groups.append(NodeGroup(tuple(nodes), offers))
            exact = exact and all(offer.exact for offer in offers)
        return groups, exact

    def _alike(self, places: Sequence[int], least: int, count: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the nodes that have *least* places or more, equal ones together, at most *count* of each, with their places."""
        fleet, penalties, start = self.turn.board.fleet, self.turn.seat.penalties, self.domain.start
        touched = {
            position: (taken.gpus, taken.mask)
            for position, taken in self.turn.taken.nodes.items()
            if taken.gpus
        }
        if penalties is None and len(places) > _MANY:
            yield from self._of_each_kind(places, least, count, touched)
            return
        alike: dict[tuple[int, int, int, tuple[int, int]], list[int]] = {}
        for index in compress(range(len(places)), map(least.__le__, places)):
            position = start + index
            misses = 0 if penalties is None else penalties[position]
            # Nodes of which others have taken the same GPUs are alike as well.
            taken = touched.get(position, (0, 0))
            nodes = alike.setdefault((places[index], fleet.state_ids[position], misses, taken), [])
            if len(nodes) < count:
                nodes.append(position)
        for (width, *_), nodes in alike.items():
            yield width, nodes

    def _of_each_kind(
        self, places: Sequence[int], least: int, count: int, touched: Mapping[int, tuple[int, int]]
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield the same for a large domain, which has few kinds of nodes: each kind's first nodes are looked for."""
        fleet, start, end = self.turn.board.fleet, self.domain.start, self.domain.end
        ids: Sequence[int] = fleet.state_ids[start:end]
        # To pods without GPUs, nodes with as many free GPUs are equally good.
        if self.turn.seat.role.gpus:
            alike: Sequence[int] = range(len(fleet.states))
        else:
            alike = [state.free for state in fleet.states]
        # A kind and its places as one number, because ten thousand pairs take their time.
        base = max(places) + 1
        scaled = [base * kind for kind in alike]
        kinds = list(map(add, map(scaled.__getitem__, ids), places))
        left_of: dict[tuple[int, int, tuple[int, int]], list[int]] = {}
        for position, taken in touched.items():
            if start <= position < end:
                kinds[position - start] = -1
                if (width := places[position - start]) >= least:
                    left_of.setdefault((width, fleet.state_ids[position], taken), []).append(position)
        for (width, *_), nodes in left_of.items():
            yield width, sorted(nodes)[:count]
        for kind, number in Counter(kinds).items():
            width = kind % base
            if kind >= 0 and width >= least:
                nodes, index = [], -1
                for _ in range(min(number, count)):
                    index = kinds.index(kind, index + 1)
                    nodes.append(start + index)
                yield width, nodes

    def _offer(self, position: int, taken: int, width: int, *, several: bool) -> Offer:
        """Return what a node gives so many slices of those that stay on one node, counted as one pod each."""
        size = self.turn.seat.whole
        offer = self.turn.offer(position, taken * size, width * size, several=several)
        return replace(offer, workers=taken) if size > 1 else offer


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
