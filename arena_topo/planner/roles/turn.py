"""A role's turn to choose: what the roles before it have chosen, and what that leaves to it of each node."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter, itemgetter

from arena_topo.model.plan.demand import Objective
from arena_topo.model.plan.roles import Spread
from arena_topo.planner.nodes.alike_nodes import AlikeNodes
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.levels import Capacity, domain_at, domains_at
from arena_topo.planner.nodes.node_state import Offer, Use, offer_of
from arena_topo.planner.nodes.objective import Goal
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.taken import Taken

RoleMerit = tuple[float, ...]
"""The rank of a role's choice, the lowest best: crowding, nodes, and what ``Goal.merit`` compares by its objective."""

# Above every damage of a gang: thousandths of GB/s take 50 bits, and GPUs left free 30 more.
_MISS_BITS = 80


@dataclass(frozen=True, slots=True, eq=False)
class Openings:
    """The nodes of a span with the places that they have left, in groups that no earlier seat touched, and one by one.

    ``groups`` are the id of a state, the places of each node, and the nodes, all that have places; ``touched`` are the
    places of the others. ``places`` are those of the untouched nodes, from the one at ``first`` on.
    """

    span: Domain
    groups: Sequence[tuple[int, int, Sequence[int]]]
    touched: Mapping[int, int]
    places: Sequence[int]
    first: int

    @property
    def total(self) -> int:
        """The places on all nodes."""
        return sum(width * len(nodes) for _, width, nodes in self.groups) + sum(self.touched.values())

    def places_at(self, position: int) -> int:
        """Return the places of the node at *position*, none outside of the span."""
        if not self.span.has(position):
            return 0
        left = self.touched.get(position)
        return self.places[position - self.first] if left is None else left


def openings_of(capacity: Capacity, alike: AlikeNodes, span: Domain, touched: Mapping[int, int]) -> Openings:
    """Return the nodes of *span* in the groups of *capacity*, which are *alike*; *touched* nodes have these places."""
    at: dict[int, list[int]] = {}
    for position in touched:
        at.setdefault(alike.ids[position], []).append(position)
    whole = span.end - span.start == len(alike.ids)
    groups = []
    for group, places in enumerate(capacity.by_group):
        if places:
            nodes = alike.nodes[group] if whole else alike.between(group, span.start, span.end)
            if group in at:
                nodes = without(nodes, at[group])
            if nodes:
                groups.append((alike.state_ids[group], places, nodes))
    return Openings(span, groups, touched, capacity.places, 0)


def openings_among(
    places: Sequence[int], span: Domain, state_ids: Sequence[int], touched: Collection[int]
) -> Openings:
    """Return the nodes of *span* in groups, from the *places* that each of them has left."""
    others = {position: places[position - span.start] for position in touched if span.has(position)}
    groups: dict[tuple[int, int], list[int]] = {}
    nodes = zip(range(span.start, span.end), state_ids[span.start : span.end], places, strict=True)
    for position, state_id, width in compress(nodes, places):
        if position not in others:
            groups.setdefault((state_id, width), []).append(position)
    return Openings(span, [(*key, alike) for key, alike in groups.items()], others, places, span.start)


def without(nodes: Sequence[int], others: Iterable[int]) -> list[int]:
    """Return ascending *nodes* without those *others*, which are among them.

    >>> without([2, 3, 5, 8], [3, 8])
    [2, 5]
    """
    left = list(nodes)
    for position in others:
        del left[bisect_left(left, position)]
    return left


@dataclass(frozen=True, slots=True, eq=False)
class RoleChoice:
    """The nodes of a role by position, in fabric order, each with its offer.

    ``exact`` is False where a better choice, given the roles before it, cannot be ruled out.
    """

    chosen: tuple[tuple[int, Offer], ...]
    merit: RoleMerit
    exact: bool

    @property
    def crowd(self) -> float:
        """The most pods on one node, where the role is spread; else 0."""
        return self.merit[0]

    @property
    def busbw(self) -> float:
        """The lowest busbw of the nodes in GB/s; NICs count where there are several nodes."""
        return min(offer.busbw if len(self.chosen) > 1 else offer.inside for _, offer in self.chosen)

    @property
    def stranded(self) -> int:
        """The GPUs left over on the nodes."""
        return sum(offer.stranded for _, offer in self.chosen)

    @property
    def counts(self) -> dict[int, int]:
        """The pods of the role on each of its nodes."""
        return {position: offer.workers for position, offer in self.chosen}


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The turn of the seat ``number``: ``placed`` are the choices of earlier seats by number, ``taken`` what they take."""

    board: Board
    number: int
    placed: Mapping[int, RoleChoice]
    taken: Taken

    @property
    def seat(self) -> Seat:
        """The seat whose turn it is."""
        return self.board.seats[self.number]

    def after(self, choice: RoleChoice) -> "Turn":
        """Return the turn of the next seat, once this one made *choice*."""
        taken = self.taken.with_pods(self.seat.demand, self.board.fleet, choice.chosen)
        return Turn(self.board, self.number + 1, {**self.placed, self.number: choice}, taken)

    def places(self, span: Domain) -> list[int]:
        """Return the places on each node of *span* that earlier seats leave, within the tie of this one."""
        seat, fleet = self.seat, self.board.fleet
        untouched = seat.capacity.places
        places = list(untouched[span.start : span.end])
        for position, left in self.taken.left(untouched, span, seat.demand, fleet):
            places[position - span.start] = left
        if seat.beside is None:
            return places
        within = [0] * len(places)
        for part in self._beside(*seat.beside):
            start, end = max(part.start - span.start, 0), min(part.end - span.start, len(places))
            within[start:end] = places[start:end]
        return within

    def _beside(self, number: int, level: int) -> Iterator[Domain]:
        """Yield the domains of *level* that hold pods of the seat *number*; a node that is in none is one of its own."""
        fleet, end = self.board.fleet, 0
        domains = domains_at(fleet, level) if level else ()
        for position, _ in self.placed[number].chosen:
            if position >= end:
                part = domain_at(domains, position) or Domain((), position, position + 1)
                end = part.end
                yield part

    def openings(self, span: Domain) -> Openings:
        """Return the nodes of *span* that have ``places``, in groups; no more places than an even spread takes, if it is to be."""
        capacity, fleet, role = self.seat.capacity, self.board.fleet, self.seat.role
        if role.spread is Spread.PREFERRED:
            places = evened(self.places(span), role.pods)
            return openings_among(places, span, fleet.state_ids, self.taken.nodes)
        if self.seat.beside is None and capacity.alike:
            touched = dict(self.taken.left(capacity.places, span, self.seat.demand, fleet))
            return openings_of(capacity, capacity.alike, span, touched)
        return openings_among(self.places(span), span, fleet.state_ids, self.taken.nodes)

    def offer(self, position: int, pods: int, places: int, *, several: bool) -> Offer:
        """Return what the node at *position*, which has so many *places*, gives so many *pods*.

        *several*: the role has pods on other nodes too.
        """
        seat, gpus = self.seat, self.seat.role.gpus
        fleet = seat.fleet
        use = Use.SEVERAL_NODES if several else Use.ONE_NODE
        if self.touches(position):
            offer = offer_of(self.taken.state(fleet, position), gpus, use, pods, places)
        else:
            offer = fleet.tables.offer(gpus, use, fleet.state_ids[position], pods, places)
        # Beside another objective than bandwidth, what a preference is worth has no measure.
        counted = self.board.objective is Objective.BANDWIDTH
        misses = seat.penalties[position] if seat.penalties is not None and counted else 0
        return replace(offer, damage=offer.damage + (misses * pods << _MISS_BITS)) if misses else offer

    def touches(self, position: int) -> bool:
        """Whether earlier seats took GPUs of the node at *position*, or left less of its NUMA nodes than its equals have."""
        taken = self.taken.nodes.get(position)
        return taken is not None and (taken.gpus > 0 or taken.alignment is not None)

    def choice(
        self, counts: Mapping[int, int], places: Callable[[int], int], *, exact: bool = True
    ) -> RoleChoice:
        """Return so many pods on each node as a choice; *places* are those of a node."""
        offers = [
            (position, self.offer(position, count, places(position), several=len(counts) > 1))
            for position, count in counts.items()
        ]
        return self.chosen(offers, exact=exact and all(offer.exact for _, offer in offers))

    def chosen(self, offers: Iterable[tuple[int, Offer]], *, exact: bool) -> RoleChoice:
        """Return nodes with their *offers* as a choice."""
        nodes = tuple(sorted(offers, key=_POSITION))
        taken, role = [offer for _, offer in nodes], self.seat.role
        inside = min(map(_INSIDE, taken))
        busbw = inside if len(taken) == 1 else min(map(_BUSBW, taken))
        crowd, count = 0, len(taken)
        if role.spread is Spread.PREFERRED:
            crowd, count = max(offer.workers for offer in taken), -count
        goal = Goal(len(taken), role.pods, self.board.objective, role.gpus * role.pods)
        return RoleChoice(nodes, (crowd, count, *goal.merit(busbw, inside, sum(map(_DAMAGE, taken)))), exact)


_POSITION: Callable[[tuple[int, Offer]], int] = itemgetter(0)
_INSIDE: Callable[[Offer], float] = attrgetter("inside")
_BUSBW: Callable[[Offer], float] = attrgetter("busbw")
_DAMAGE: Callable[[Offer], int] = attrgetter("damage")


def evened(places: Sequence[int], pods: int) -> list[int]:
    """Return *places* with no more on a node than an even spread of *pods* needs.

    >>> evened([4, 4, 1, 0], 5)
    [2, 2, 1, 0]
    """
    numbers, widest = Counter(places), max(places, default=0)
    most = 1
    while most < widest and sum(min(width, most) * number for width, number in numbers.items()) < pods:
        most += 1
    return [min(width, most) for width in places]
