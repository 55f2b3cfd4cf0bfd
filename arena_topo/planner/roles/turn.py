"""A role's turn to choose: what the roles before it have chosen, and what that leaves to it of each node."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter

from arena_topo.model.plan.demand import Objective
from arena_topo.model.plan.roles import Spread
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.node_state import Offer, Use, offer_of
from arena_topo.planner.nodes.objective import Goal
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.taken import Taken

RoleMerit = tuple[float, ...]
"""The rank of a role's choice, the lowest best: crowding, nodes, and what ``Goal.merit`` compares by its objective."""

# Above every damage of a gang: thousandths of GB/s take 50 bits, and GPUs left free 30 more.
_MISS_BITS = 80


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
        places = list(seat.capacity.places[span.start : span.end])
        self.taken.lower(places, span, seat.demand, fleet)
        if seat.beside:
            number, level = seat.beside
            numbers = self.board.numbers[level]
            beside = {numbers[position] for position, _ in self.placed[number].chosen}
            for index, position in enumerate(range(span.start, span.end)):
                if numbers[position] not in beside:
                    places[index] = 0
        return places

    def offer(self, position: int, pods: int, places: int, *, several: bool) -> Offer:
        """Return what the node at *position*, which has so many *places*, gives so many *pods*.

        *several*: the role has pods on other nodes too.
        """
        fleet, gpus, seat = self.board.fleet, self.seat.role.gpus, self.seat
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
        """Whether earlier seats took GPUs of the node at *position*, so that it offers less than its equals."""
        taken = self.taken.nodes.get(position)
        return taken is not None and taken.gpus > 0

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
    """Return *places*, which hold *pods*, with no more on a node than an even spread needs.

    >>> evened([4, 4, 1, 0], 5)
    [2, 2, 1, 0]
    """
    most = 1
    while sum(min(width, most) for width in places) < pods:
        most += 1
    return [min(width, most) for width in places]
