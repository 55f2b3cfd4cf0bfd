"""The domain of a gang, and the nodes of its roles one after the other.

The roles choose in turn (``board`` says in which order), each the best nodes given those before it, of the choices that
leave the rest a place. The first of them, the role with the most GPUs, decides between the domains of the closest level
that holds the gang: by its own merit, then by the room that it leaves, at every level.

Whether a domain holds the gang is decided by sums for each role alone, and for all together by placing them. If the
best nodes of one role leave no place for another, every choice is tried where that is short (``every_choice``); where it
is not, the tightest roles are placed first, and the result says that it may not be the best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import groupby
from math import inf

from arena_topo.model.plan.roles import Spread
from arena_topo.planner.nodes.bounds import DomainBounds
from arena_topo.planner.nodes.domain_choice import EFFORT, NODES_PER_STEP
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.levels import Room, capacity_by_domain, domain_at, domains_at, rooms
from arena_topo.planner.nodes.node_choice import Problem
from arena_topo.planner.nodes.node_state import Use, damage
from arena_topo.planner.nodes.search import Effort
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.every_choice import Counts, OutOfEffort, Spans, best_that_leaves_room
from arena_topo.planner.roles.role_choice import choose_nodes
from arena_topo.planner.roles.servers import choose_servers
from arena_topo.planner.roles.slices import fewest_nodes, sliceable
from arena_topo.planner.roles.taken import Taken
from arena_topo.planner.roles.turn import RoleChoice, RoleMerit, Turn

_MOST_DOMAINS = 6
"""Domains that are planned in full; the bounds rule out the others, or the result says that they do not."""
_MOST_TRIED = 48
"""Domains that are tried until one of them holds all roles."""
_SMALL = 64
_NO_RATES = (-(1 << 30), -(1 << 30), -inf, -inf)
_MOST_CHOICES = 20_000
"""On fleets of up to so many nodes, so many choices are tried where the roles get into each other's way."""


@dataclass(frozen=True, slots=True, eq=False)
class GangChoice:
    """The choices of all seats, by number, in one domain of ``level``.

    ``level_exact`` is False where a closer level cannot be ruled out, ``exact`` where another domain cannot.
    """

    domain: Domain
    level: int
    choices: Mapping[int, RoleChoice]
    rivals: int
    exact: bool = True
    level_exact: bool = True


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No level has a place for the gang; ``proven`` is False where one may have been overlooked."""

    proven: bool


def choose_gang(board: Board, closest: int, widest: int) -> GangChoice | Unplaced:
    """Return the choice for the gang at the closest level from *closest* to *widest* that holds it."""
    # One budget for all domains and levels, so that a fleet that is nearly full takes no longer.
    proven, every = True, Effort(_MOST_CHOICES)
    for level in range(closest, widest + 1):
        search = _LevelSearch(board, level, widest, every)
        found = search.best()
        if found is not None:
            return GangChoice(
                found.domain, level, found.choices, search.rivals, search.exact, level_exact=proven
            )
        proven = proven and search.exact
    return Unplaced(proven)


def holding(board: Board, level: int) -> list[Domain]:
    """Return the domains of *level* in which each seat that decides the domain has places, taken by itself."""
    fleet = board.fleet
    if level == 0:
        # Mostly some role has more pods than any node takes, and no node has to be looked at.
        if any(max(seat.capacity.places, default=0) < seat.role.pods for seat in board.deciding):
            return []
        able = [True] * len(fleet.nodes)
        for seat in board.deciding:
            pods = seat.role.pods
            able = [well and places >= pods for well, places in zip(able, seat.capacity.places, strict=True)]
        return [Domain((), position, position + 1) for position, well in enumerate(able) if well]
    domains = domains_at(fleet, level)
    numbers = list(range(len(domains)))
    for seat in board.deciding:
        within = capacity_by_domain(seat.capacity, domains)
        numbers = [number for number in numbers if within[number] >= seat.role.pods]
        # Within one domain of its level a slice is kept by any pods.
        if seat.apart or seat.whole > 1 or any(at < level for _, at in seat.slices):
            numbers = [number for number in numbers if _kept(board, seat, domains[number]) >= seat.role.pods]
    return [domains[number] for number in numbers if _has_gpus(board, domains[number])]


def _kept(board: Board, seat: Seat, domain: Domain) -> int:
    """Return how many pods of *seat* fit into *domain* by its slices, or apart from each other."""
    if seat.slices or seat.whole > 1:
        return sliceable(board, seat, domain)
    places, parts = seat.capacity.places, board.parts(seat.apart or 0, domain)
    return sum(any(places[part.start : part.end]) for part in parts)


def _has_gpus(board: Board, domain: Domain) -> bool:
    """Whether *domain* has as many free GPUs as the deciding seats ask for together."""
    seats = [seat for seat in board.deciding if seat.role.gpus]
    # One seat alone was counted already.
    if len(seats) < 2:
        return True
    states, ids = board.fleet.states, board.fleet.state_ids[domain.start : domain.end]
    free = sum(states[state_id].free for state_id in ids)
    return free >= sum(seat.role.gpus * seat.role.pods for seat in seats)


_Rank = tuple[RoleMerit, Room, int]
"""What domains are compared by: the merit of the first seat, the room of the domain, its place in fabric order."""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    domain: Domain
    choices: Mapping[int, RoleChoice]
    rank: _Rank


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A domain that may hold the gang; ``rates`` is the beginning of the best merit that the first seat can have there.

    ``bounds`` know the rest by the ``number`` of the domain; without them ``damage`` is it, ``sets_exact`` or not.
    """

    domain: Domain
    room: Room
    rates: tuple[int, int, float, float]
    damage: int = 0
    sets_exact: bool = True
    bounds: DomainBounds | None = None
    number: int = 0

    def bound(self) -> RoleMerit:
        """Return a merit that the first seat's choice in this domain is no better than."""
        if self.bounds is None:
            return (*self.rates, self.damage)
        *_, stranded, loss = self.bounds.bound(self.number, self.domain)
        return (*self.rates, damage(int(stranded), loss))

    def is_exact(self) -> bool:
        """Whether the bound rests on sets of GPUs that are proven to be the best."""
        return self.sets_exact if self.bounds is None else self.bounds.is_exact([self.domain])


class _LevelSearch:
    """The search of one level; ``exact`` is False once something better cannot be ruled out."""

    def __init__(self, board: Board, level: int, widest: int, every: Effort) -> None:
        self.exact = True
        self.rivals = 0
        self._board = board
        self._level = level
        self._widest = widest
        # The roles that decide the domain choose before all others.
        self._first = board.seats[0]
        self._every = every
        self._effort = Effort(EFFORT + len(board.fleet.nodes) // NODES_PER_STEP)

    def best(self) -> _Placed | None:
        """Return the best placement at this level, None where none was found."""
        best: _Placed | None = None
        tried = 0
        for candidate in self._candidates():
            if best is not None:
                # Candidates come in the order of their rates: where this one cannot win, none of those after it can.
                if candidate.rates > best.rank[0][:4]:
                    self.exact = self.exact and candidate.is_exact()
                    break
                if (candidate.bound(), candidate.room, candidate.domain.start) > best.rank:
                    self.exact = self.exact and candidate.is_exact()
                    continue
            if tried >= (_MOST_TRIED if best is None else _MOST_DOMAINS):
                self.exact = False
                break
            tried += 1
            placed = self._placed(candidate, best)
            if placed is not None and (best is None or placed.rank < best.rank):
                best = placed
        return best

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield the domains that may hold the gang, the best rates first, then the tightest, then by name."""
        domains = holding(self._board, self._level)
        self.rivals = len(domains)
        if not domains:
            return
        if self._level == 0:
            yield from self._nodes(domains)
            return
        seat, fleet = self._first, self._board.fleet
        of_level = domains_at(fleet, self._level)
        tier = len(domains[0].path)
        room_of = dict(zip(of_level, rooms(fleet, seat.capacity, tier), strict=True))
        # A role that is spread takes more nodes and not fewer, which these bounds do not know.
        if len(domains) == 1 or seat.role.spread is Spread.PREFERRED:
            yield from (
                _Candidate(domain, room_of[domain], _NO_RATES)
                for domain in sorted(domains, key=lambda domain: (room_of[domain], domain.start))
            )
            return
        places = seat.capacity.places
        # Slices and ties can only cost nodes, so the fewest without them are a bound.
        counted = sorted(
            ((fewest_nodes(places[domain.start : domain.end], seat.role.pods), domain) for domain in domains),
            key=lambda entry: (entry[0], entry[1].start),
        )
        for count, alike in groupby(counted, key=lambda entry: entry[0]):
            yield from self._with_as_many(count, [domain for _, domain in alike], room_of)

    def _with_as_many(
        self, count: int, domains: Sequence[Domain], room_of: dict[Domain, Room]
    ) -> Iterator[_Candidate]:
        """Yield the *domains*, which take the first seat on *count* nodes."""
        seat, fleet = self._first, self._board.fleet
        numbers = {domain: number for number, domain in enumerate(domains_at(fleet, self._level))}
        places = seat.capacity.places
        bounds = DomainBounds(
            Problem(fleet, seat.capacity, seat.role.pods, seat.role.gpus),
            count,
            max(max(places[domain.start : domain.end]) for domain in domains),
            fleet.hardware_by_domain[len(domains[0].path)],
        )
        ordered = sorted(
            (bounds.when_empty(numbers[domain])[:2], room_of[domain], domain.start, domain)
            for domain in domains
        )
        for (busbw, inside), room, _, domain in ordered:
            yield _Candidate(domain, room, (0, count, busbw, inside), bounds=bounds, number=numbers[domain])

    def _nodes(self, domains: Sequence[Domain]) -> Iterator[_Candidate]:
        """Yield the nodes that hold all deciding seats, the best first."""
        seat, fleet = self._first, self._board.fleet
        room_of = rooms(fleet, seat.capacity, len(fleet.tiers))
        numbers, places = self._board.numbers[1], seat.capacity.places

        def rank(domain: Domain) -> tuple[RoleMerit, Room, int, Domain, bool]:
            position, number = domain.start, numbers[domain.start]
            offer = fleet.tables.offer(
                seat.role.gpus, Use.ONE_NODE, fleet.state_ids[position], seat.role.pods, places[position]
            )
            # A node that is in no domain is taken after those that are.
            room = room_of[number] if number >= 0 else (1 << 62,)
            return (0, 1, -offer.inside, -offer.inside, offer.damage), room, position, domain, offer.exact

        for merit, room, _, domain, exact in nsmallest(_MOST_TRIED + 1, map(rank, domains)):
            yield _Candidate(domain, room, merit[:4], merit[4], exact)

    def _placed(self, candidate: _Candidate, best: _Placed | None) -> _Placed | None:
        """Return the placement in the domain of *candidate*, None where there is none, or none better than *best*."""
        board, domain = self._board, candidate.domain
        spans = {
            number: self._span(seat, domain, decides=seat in board.deciding)
            for number, seat in enumerate(board.seats)
        }
        if best is not None:
            # Whatever the others get, the first seat gets nothing better here than by itself.
            first = choose_nodes(Turn(board, 0, {}, Taken()), domain, self._effort)
            if first is not None and first.exact and (first.merit, candidate.room, domain.start) > best.rank:
                return None
        choices = self._in_turn(spans)
        if choices is None:
            return None
        return _Placed(domain, choices, (choices[0].merit, candidate.room, domain.start))

    def _in_turn(self, spans: Spans) -> Mapping[int, RoleChoice] | None:
        """Return the choices of all seats in turn; None where no place was found."""
        board = self._board
        choices, failed = self._greedy(spans, {})
        if failed is None and all(choice.exact for choice in choices.values()):
            return choices
        if len(board.fleet.nodes) <= _SMALL:
            try:
                return self._exhaustive(spans)
            except OutOfEffort:
                pass
        self.exact = False
        return choices if failed is None else self._with_reservations(spans, failed)

    def _span(self, seat: Seat, domain: Domain, *, decides: bool) -> Domain:
        fleet = self._board.fleet
        if decides:
            return domain
        # Parameter servers exchange data, so they keep to a level that is required; launchers do not.
        if seat.serves is None or self._widest == 0 or self._widest > len(fleet.tiers):
            return domain if seat.serves is not None and self._widest == 0 else fleet.cluster
        return domain_at(fleet.domains[len(fleet.tiers) - self._widest], domain.start) or domain

    def _greedy(
        self, spans: Spans, reserved: Mapping[int, Counts]
    ) -> tuple[Mapping[int, RoleChoice], int | None]:
        """Return the choices in turn, and the number of the seat that found no place, None where all did.

        *reserved* are the pods of later seats for which room is kept, by the position of their node.
        """
        turn = Turn(self._board, 0, {}, Taken())
        while turn.number < len(self._board.seats):
            kept = turn.taken
            for later, counts in reserved.items():
                if later > turn.number:
                    kept = kept.with_counts(self._board.seats[later].demand, counts)
            limited = replace(turn, taken=kept)
            span = spans[turn.number]
            choice = (
                choose_nodes(limited, span, self._effort)
                if turn.seat.serves is None
                else choose_servers(limited, span)
            )
            if choice is None:
                return turn.placed, turn.number
            turn = turn.after(choice)
        return turn.placed, None

    def _exhaustive(self, spans: Spans) -> Mapping[int, RoleChoice] | None:
        """Return the choices in turn, each the best of all that leave the rest a place. Raises ``OutOfEffort``."""
        turn = Turn(self._board, 0, {}, Taken())
        while turn.number < len(self._board.seats):
            choice = best_that_leaves_room(turn, spans, self._every)
            if choice is None:
                return None
            turn = turn.after(choice)
        return turn.placed

    def _with_reservations(self, spans: Spans, failed: int | None) -> Mapping[int, RoleChoice] | None:
        """Return choices for which room was kept for the seats that found none; None where that does not help."""
        reserved: dict[int, Counts] = {}
        while failed is not None and failed not in reserved:
            kept = self._reservation(failed, spans[failed])
            if kept is None:
                return None
            reserved[failed] = kept
            choices, failed = self._greedy(spans, reserved)
            if failed is None:
                return {number: replace(choice, exact=False) for number, choice in choices.items()}
        return None

    def _reservation(self, number: int, span: Domain) -> Counts | None:
        """Return where the seat would stand by itself; beside others on their node, that is any node of the span."""
        board, seat = self._board, self._board.seats[number]
        if seat.beside and seat.beside[1] == 0:
            other = board.seats[seat.beside[0]].capacity.places
            places = seat.capacity.places
            return {
                position: 1
                for position in range(span.start, span.end)
                if places[position] and other[position]
            }
        freed = Board(board.fleet, (replace(seat, beside=None),))
        alone = choose_nodes(Turn(freed, 0, {}, Taken()), span, self._effort)
        return None if alone is None else alone.counts
