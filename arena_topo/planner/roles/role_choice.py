"""The nodes of one role, given those of the roles before it: as a gang of one role gets them, within ties and slices.

A choice is compared by, in this order: the most pods on one node, where the role is spread; the number of nodes, fewest
or, where it is spread, most; the bandwidth with NICs counted, and inside the nodes; the preferences missed; the damage
to what stays free.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

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
        goal = Goal(count, pods)
        found = search(groups, goal, effort)
        chosen = found if found is not None else (_even(groups, pods) if spread else greedy(groups, goal))
        if size > 1:
            chosen = [(at, replace(offer, workers=offer.workers * size)) for at, offer in chosen]
        return chosen, sets_exact and found is not None

    def _groups(self, places: Sequence[int], count: int, pods: int) -> tuple[list[NodeGroup], bool]:
        """Return the nodes that can be among the *count* chosen, equal ones in one group, and whether all offers are exact."""
        widest = sorted(places, reverse=True)[:count]
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
        touched = [position for position in self.turn.taken.nodes if self.turn.touches(position)]
        if penalties is None and len(places) > _MANY:
            yield from self._of_each_kind(places, least, count, touched)
            return
        alike: dict[tuple[int, int, int, int], list[int]] = {}
        for index in compress(range(len(places)), map(least.__le__, places)):
            position = start + index
            # What others have taken of a node is its own affair.
            own = position if position in touched else -1
            misses = 0 if penalties is None else penalties[position]
            nodes = alike.setdefault((places[index], fleet.state_ids[position], misses, own), [])
            if len(nodes) < count:
                nodes.append(position)
        for (width, *_), nodes in alike.items():
            yield width, nodes

    def _of_each_kind(
        self, places: Sequence[int], least: int, count: int, touched: Sequence[int]
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield the same for a large domain, which has few kinds of nodes: each kind's first nodes are looked for."""
        fleet, start, end = self.turn.board.fleet, self.domain.start, self.domain.end
        ids: Sequence[int] = fleet.state_ids[start:end]
        # To pods without GPUs, nodes with as many free GPUs are equally good.
        if not self.turn.seat.role.gpus:
            free = [state.free for state in fleet.states]
            ids = list(map(free.__getitem__, ids))
        kinds = list(zip(ids, places, strict=True))
        for position in touched:
            if start <= position < end:
                kinds[position - start] = (-1, 0)
                if places[position - start] >= least:
                    yield places[position - start], [position]
        for kind, number in Counter(kinds).items():
            if kind[1] >= least:
                nodes, index = [], -1
                for _ in range(min(number, count)):
                    index = kinds.index(kind, index + 1)
                    nodes.append(start + index)
                yield kind[1], nodes

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
    rated = []
    for part in turn.board.parts(turn.seat.apart or 0, span):
        nodes = [position for position in range(part.start, part.end) if places[position - span.start]]
        if nodes:
            ranks = [
                (*_single(turn.offer(position, 1, places[position - span.start], several=pods > 1)), position)
                for position in nodes
            ]
            rated.append(min(ranks))
    if len(rated) < pods:
        return []
    return [(Domain((), position, position + 1), 1) for *_, position in sorted(rated)[:pods]]


def _single(offer: Offer) -> tuple[float, float, int]:
    return -offer.busbw, -offer.inside, offer.damage
