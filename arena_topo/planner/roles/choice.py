"""The domain of a gang, and the nodes of its roles one after the other.

The roles choose in turn (``board`` says in which order), each the best nodes given those before it, of the choices that
leave the rest a place. The first of them, the role with the most GPUs, decides between the domains of the closest level
that holds the gang: by its own merit, then by the room that it leaves, at every level.

Whether a domain holds the gang is decided by sums for each role alone, and for all together by placing them. If the
best nodes of one role leave no place for another, every choice is tried where that is short (``every_choice``); where it
is not, the tightest roles are placed first, and the result says that it may not be the best.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby, islice
from math import inf
from operator import itemgetter

from arena_topo.model.plan import Objective, Spread
from arena_topo.planner.choice import (
    EFFORT,
    NODES_PER_STEP,
    Chosen,
    DomainBounds,
    Effort,
    NodeGroup,
    Problem,
    greedy,
    search,
)
from arena_topo.planner.fleet import (
    Domain,
    Fleet,
    Goal,
    Room,
    capacity_by_domain,
    domain_at,
    domains_at,
    rooms,
)
from arena_topo.planner.offers import Alignment, Offer, Use
from arena_topo.planner.roles.board import (
    Board,
    Openings,
    RoleChoice,
    RoleMerit,
    Seat,
    Taken,
    Turn,
    evened,
    fewest_nodes,
    sliceable_by_domain,
    sliced,
)
from arena_topo.planner.roles.servers import choose_servers, server_merit

# The nodes of one role, given those of the roles before it: as a gang of one role gets them, within ties and slices.
#
# A choice is compared by, in this order: the most pods on one node, where the role is spread; the number of nodes, fewest
# or, where it is spread, most; the bandwidth with NICs counted, and inside the nodes; the preferences missed; the damage
# to what stays free.

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


# Every choice of nodes for a role, on clusters small enough: for roles whose best nodes leave the next ones no place.
#
# The roles choose in turn, so a choice that the others cannot follow is no choice. The rest is tried pod count by pod count,
# whichever GPUs they get: a node that has enough GPUs free gives any of them.

Spans = Mapping[int, Domain]
"""Where each seat, by its number, may choose."""
Counts = dict[int, int]
"""Pods by the position of their node."""


class _OutOfEffort(Exception):
    """There were more choices than may be tried."""


def _best_that_leaves_room(turn: Turn, spans: Spans, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *turn* after which all later seats have a place; None where there is none.

    Raises ``_OutOfEffort`` where *effort* does not suffice.
    """
    span = spans[turn.number]
    places = turn.places(span)

    def rank(choice: RoleChoice) -> tuple[object, ...]:
        # Parameter servers are compared by their own rule, once they are spread as far as asked.
        merit = (
            choice.merit if turn.seat.serves is None else (choice.crowd, *server_merit(turn, choice.counts))
        )
        return merit, [position for position, _ in choice.chosen]

    choices = [
        turn.choice(counts, lambda position: places[position - span.start])
        for counts in _every_count(turn, span, places, effort)
    ]
    return next(
        (choice for choice in sorted(choices, key=rank) if _rest_fits(turn, choice, spans, effort)), None
    )


def _rest_fits(turn: Turn, choice: RoleChoice, spans: Spans, effort: Effort) -> bool:
    """Whether all seats after *turn* have a place once it made *choice*."""
    taken = turn.taken.with_counts(turn.seat.demand, turn.board.fleet, choice.counts)
    after = Turn(turn.board, turn.number + 1, {**turn.placed, turn.number: choice}, taken)
    if after.number == len(turn.board.seats):
        return True
    span = spans[after.number]
    places = after.places(span)
    if sum(places) < after.seat.role.pods:
        return False
    return any(
        _rest_fits(after, _bare(counts), spans, effort)
        for counts in _every_count(after, span, places, effort)
    )


def _bare(counts: Counts) -> RoleChoice:
    """Return a choice that is nothing but so many pods on each node."""
    offers = ((position, Offer(count, 0.0, 0.0, 0, 0.0, 0, None)) for position, count in counts.items())
    return RoleChoice(tuple(offers), (), exact=False)


def _every_count(turn: Turn, span: Domain, places: Sequence[int], effort: Effort) -> Iterator[Counts]:
    """Yield every way to put the pods of *turn* onto nodes of *span* that keeps its slices and its spread.

    Raises ``_OutOfEffort``.
    """
    able = [(span.start + index, width) for index, width in enumerate(places) if width]
    left = [0] * (len(able) + 1)
    for index in range(len(able) - 1, -1, -1):
        left[index] = left[index + 1] + able[index][1]

    def extended(index: int, pods: int, counts: Counts) -> Iterator[Counts]:
        if not effort.spend(1):
            raise _OutOfEffort
        if pods == 0:
            yield counts
            return
        if left[index] < pods:
            return
        position, width = able[index]
        for count in range(min(width, pods), -1, -1):
            yield from extended(index + 1, pods - count, {**counts, position: count} if count else counts)

    for counts in extended(0, turn.seat.role.pods, {}):
        if _is_allowed(turn.board, turn.seat, counts):
            yield counts


def _is_allowed(board: Board, seat: Seat, counts: Counts) -> bool:
    if any(count % seat.whole for count in counts.values()):
        return False
    for pods, level in seat.slices:
        if any(count % pods for count in _by_domain(board, level, counts).values()):
            return False
    if seat.role.spread is Spread.REQUIRED and seat.apart:
        return max(_by_domain(board, seat.apart, counts).values()) == 1
    return True


def _by_domain(board: Board, level: int, counts: Counts) -> Counter[int]:
    numbers, by_domain = board.numbers(level), Counter[int]()
    for position, count in counts.items():
        by_domain[numbers[position]] += count
    return by_domain


_MOST_DOMAINS = 6
"""Domains that are planned in full; the bounds rule out the others, or the result says that they do not."""
_LOOKED_AT = 2
"""Domains that are remembered, so that there is one next to the best."""
_MOST_TRIED = 48
"""Domains that are tried until one of them holds all roles."""
_NOWHERE = 1 << 62
"""More room than any domain has."""
_SMALL = 64
_NO_PROMISE = (-inf,)
_MOST_CHOICES = 20_000
"""On fleets of up to so many nodes, so many choices are tried where the roles get into each other's way."""


@dataclass(frozen=True, slots=True, eq=False)
class GangChoice:
    """The choices of all seats, by number, in one domain of ``level``; each seat chose in its span.

    ``rival`` is the domain that was to be tried next to this one, None where there is no other. ``level_exact`` is False where
    a closer level cannot be ruled out, ``exact`` where another domain cannot.
    """

    domain: Domain
    level: int
    choices: Mapping[int, RoleChoice]
    spans: Spans
    rivals: int
    rival: Domain | None
    exact: bool = True
    level_exact: bool = True


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No level has a place for the gang; ``proven`` is False where one may have been overlooked."""

    proven: bool


def choose_gang(board: Board, closest: int, widest: int) -> GangChoice | Unplaced:
    """Return the choice for the gang at the closest level from *closest* to *widest* that holds it."""
    # On one node there is nothing to spread over.
    closest = max(closest, min(1, widest)) if board.is_spread else closest
    # One budget for all domains and levels, so that a fleet that is nearly full takes no longer.
    proven, every = True, Effort(_MOST_CHOICES)
    for level in range(closest, widest + 1):
        search = _LevelSearch(board, level, widest, every)
        found = search.best()
        if found is not None:
            return GangChoice(
                domain=found.domain,
                level=level,
                choices=found.choices,
                spans=search.spans(found.domain),
                rivals=search.rivals,
                rival=next((domain for domain in search.looked_at if domain != found.domain), None),
                exact=search.exact,
                level_exact=proven,
            )
        proven = proven and search.exact
    return Unplaced(proven)


def _holding_nodes(board: Board) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the nodes that each seat that decides the domain has places on, taken by itself, by the id of their state."""
    needed = sum(seat.role.gpus * seat.role.pods for seat in board.deciding)
    seats = [(seat.capacity.places, seat.capacity.by_state, seat.role.pods) for seat in board.deciding]
    for state_id, state in enumerate(board.fleet.states):
        if state.free < needed or any(by_state and by_state[state_id] < pods for _, by_state, pods in seats):
            continue
        able: Sequence[int] = board.fleet.nodes_by_state[state_id]
        for places, by_state, pods in seats:
            if by_state is None:
                able = [position for position in able if places[position] >= pods]
        if able:
            yield state_id, able


def _holding(board: Board, domains: Sequence[Domain], level: int) -> list[int]:
    """Return the numbers of *domains* of *level* in which each seat that decides the domain has places, by itself."""
    numbers = list(range(len(domains)))
    for seat in board.deciding:
        within = capacity_by_domain(seat.capacity, domains)
        numbers = [number for number in numbers if within[number] >= seat.role.pods]
        # Within one domain of its level a slice is kept by any pods.
        if seat.apart or seat.whole > 1 or any(at < level for _, at in seat.slices):
            kept = _kept(board, seat, [domains[number] for number in numbers], level)
            numbers = [number for number, pods in zip(numbers, kept, strict=True) if pods >= seat.role.pods]
    seats = [seat for seat in board.deciding if seat.role.gpus]
    # One seat alone was counted already.
    if len(seats) < 2:
        return numbers
    needed, before = sum(seat.role.gpus * seat.role.pods for seat in seats), board.fleet.free_gpus_before
    return [
        number for number in numbers if before[domains[number].end] - before[domains[number].start] >= needed
    ]


def _kept(board: Board, seat: Seat, domains: Sequence[Domain], level: int) -> list[int]:
    """Return how many pods of *seat* fit into each of *domains* of *level* by its slices, or apart from each other."""
    if seat.slices or seat.whole > 1:
        return sliceable_by_domain(board, seat, level, domains)
    places, apart = seat.capacity.places, seat.apart or 0
    return [
        sum(any(places[part.start : part.end]) for part in board.parts(apart, domain)) for domain in domains
    ]


_Rank = tuple[RoleMerit, Room, int]
"""What domains are compared by: the merit of the first seat, the room of the domain, its place in fabric order."""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    domain: Domain
    choices: Mapping[int, RoleChoice]
    rank: _Rank


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A domain that may hold the gang; ``promise`` begins a merit that the first seat's choice there is no better than.

    ``bounds`` know the rest by the ``number`` of the domain; without them the promise is all there is, ``sets_exact`` or not.
    """

    domain: Domain
    room: Room
    promise: RoleMerit
    sets_exact: bool = True
    bounds: DomainBounds | None = None
    number: int = 0

    def bound(self) -> RoleMerit:
        """Return a merit that the first seat's choice in this domain is no better than."""
        if self.bounds is None:
            return self.promise
        return (*self.promise[:2], *self.bounds.bound(self.number, self.domain))

    def is_exact(self) -> bool:
        """Whether the bound rests on sets of GPUs that are proven to be the best."""
        return self.sets_exact if self.bounds is None else self.bounds.is_exact([self.domain])


class _LevelSearch:
    """The search of one level; ``exact`` is False once something better cannot be ruled out."""

    def __init__(self, board: Board, level: int, widest: int, every: Effort) -> None:
        self._begin()
        self._board = board
        self._level = level
        self._widest = widest
        # The roles that decide the domain choose before all others.
        self._first = board.seats[0]
        self._every = every
        self._firsts: dict[Domain, RoleChoice | None] = {}
        self._effort = Effort(EFFORT + len(board.fleet.nodes) // NODES_PER_STEP)

    def _begin(self) -> None:
        self.exact = True
        self.rivals = 0
        self.looked_at: list[Domain] = []

    def best(self) -> _Placed | None:
        """Return the best placement at this level, None where none was found."""
        if len(self._board.fleet.nodes) > _SMALL:
            # The first seat decides between domains, and mostly the others have a place in the one that it likes best.
            best = self._best_of_domains(self._first_placed)
            placed = best and self._placed(_Candidate(best.domain, best.rank[1], _NO_PROMISE), None)
            if best is None or (placed and placed.rank == best.rank):
                return placed
            self._begin()
        return self._best_of_domains(self._placed)

    def _best_of_domains(
        self, placed_in: Callable[[_Candidate, _Placed | None], _Placed | None]
    ) -> _Placed | None:
        """Return the best of what *placed_in* gives for a domain, and for the best so far; None where it gives nothing."""
        best: _Placed | None = None
        tried = 0
        for candidate in self._candidates():
            if len(self.looked_at) < _LOOKED_AT:
                self.looked_at.append(candidate.domain)
            if best is not None:
                # Candidates come in the order of their promise: where this one cannot win, none of those after it can.
                if candidate.promise > best.rank[0][: len(candidate.promise)]:
                    self.exact = self.exact and candidate.is_exact()
                    break
                if (candidate.bound(), candidate.room, candidate.domain.start) > best.rank:
                    self.exact = self.exact and candidate.is_exact()
                    continue
            if tried >= (_MOST_TRIED if best is None else _MOST_DOMAINS):
                self.exact = False
                break
            tried += 1
            placed = placed_in(candidate, best)
            if placed is not None and (best is None or placed.rank < best.rank):
                best = placed
        return best

    def _first_placed(self, candidate: _Candidate, _best: _Placed | None) -> _Placed | None:
        """Return the placement of the first seat in the domain of *candidate*, None where it has none."""
        domain = candidate.domain
        first = self._choice_of_first(domain)
        if first is None:
            return None
        self.exact = self.exact and first.exact
        return _Placed(domain, {0: first}, (first.merit, candidate.room, domain.start))

    def _choice_of_first(self, domain: Domain) -> RoleChoice | None:
        if domain not in self._firsts:
            self._firsts[domain] = choose_nodes(Turn(self._board, 0, {}, Taken()), domain, self._effort)
        return self._firsts[domain]

    def _candidates(self) -> Iterator[_Candidate]:
        """Yield the domains that may hold the gang, the best promise first, then the tightest, then by name."""
        if self._level == 0:
            yield from islice(self._nodes(), _MOST_TRIED + 1)
            return
        seat, fleet = self._first, self._board.fleet
        domains = domains_at(fleet, self._level)
        numbers = _holding(self._board, domains, self._level)
        self.rivals = len(numbers)
        if not numbers:
            return
        room_of = rooms(fleet, seat.capacity, len(domains[0].path))
        # A role that is spread takes more nodes and not fewer, which these bounds do not know.
        if len(numbers) == 1 or seat.role.spread is Spread.PREFERRED:
            for number in sorted(numbers, key=lambda number: (room_of[number], number)):
                yield _Candidate(domains[number], room_of[number], _NO_PROMISE)
            return
        places, pods = seat.capacity.places, seat.role.pods
        # Slices and ties can only cost nodes, so the fewest without them are a bound.
        counted = sorted(
            (fewest_nodes(places[domains[number].start : domains[number].end], pods), number)
            for number in numbers
        )
        for count, alike in groupby(counted, key=itemgetter(0)):
            yield from self._with_as_many(count, domains, [number for _, number in alike], room_of)

    def _with_as_many(
        self, count: int, domains: Sequence[Domain], numbers: Sequence[int], room_of: Sequence[Room]
    ) -> Iterator[_Candidate]:
        """Yield the *domains* with these *numbers*, which take the first seat on *count* nodes."""
        seat, fleet, objective = self._first, self._board.fleet, self._board.objective
        places = seat.capacity.places
        hardware = fleet.hardware_by_domain[len(domains[0].path)]
        bounds = DomainBounds(
            Problem(fleet, seat.capacity, seat.role.pods, seat.role.gpus, objective=objective),
            count,
            max(max(places[domains[number].start : domains[number].end]) for number in numbers),
            hardware,
        )
        # Bandwidth goes first, and the hardware bounds it. What is left over depends on what is in use.
        if objective is Objective.BANDWIDTH:
            numbers_of = {hardware[number]: number for number in numbers}
            by_hardware = {kinds: bounds.when_empty(number)[:2] for kinds, number in numbers_of.items()}
            promised = [by_hardware[hardware[number]] for number in numbers]
        else:
            promised = [bounds.bound(number, domains[number]) for number in numbers]
        for promise, room, number in sorted(
            zip(promised, map(room_of.__getitem__, numbers), numbers, strict=True)
        ):
            yield _Candidate(domains[number], room, (0, count, *promise), bounds=bounds, number=number)

    def _nodes(self) -> Iterator[_Candidate]:
        """Yield the nodes that hold all deciding seats, the best first."""
        seat, fleet = self._first, self._board.fleet
        role, goal = (
            seat.role,
            Goal(1, seat.role.pods, self._board.objective, seat.role.gpus * seat.role.pods),
        )
        alike: dict[RoleMerit, list[int]] = {}
        inexact: set[RoleMerit] = set()
        for state_id, able in _holding_nodes(self._board):
            self.rivals += len(able)
            for width, nodes in _by_places(able, seat):
                offer = seat.fleet.tables.offer(role.gpus, Use.ONE_NODE, state_id, role.pods, width)
                merit = (0, 1, *goal.merit(offer.inside, offer.inside, offer.damage))
                alike.setdefault(merit, []).extend(nodes)
                if not offer.exact:
                    inexact.add(merit)
        for merit in sorted(alike):
            for room, position in _tightest_first(fleet, seat, sorted(alike[merit])):
                yield _Candidate(
                    Domain((), position, position + 1), room, merit, sets_exact=merit not in inexact
                )

    def _placed(self, candidate: _Candidate, best: _Placed | None) -> _Placed | None:
        """Return the placement in the domain of *candidate*, None where there is none, or none better than *best*."""
        domain = candidate.domain
        spans, first = self.spans(domain), self._choice_of_first(domain)
        if best is not None and first is not None and first.exact:
            # Whatever the others get, the first seat gets nothing better here than by itself.
            limit = first.merit, candidate.room, domain.start
            if limit > best.rank:
                return None
        choices = self._in_turn(spans, first)
        if choices is None:
            return None
        return _Placed(domain, choices, (choices[0].merit, candidate.room, domain.start))

    def spans(self, domain: Domain) -> Spans:
        """Return where each seat may choose once the gang has *domain*."""
        board = self._board
        return {
            number: self._span(seat, domain, decides=seat in board.deciding)
            for number, seat in enumerate(board.seats)
        }

    def _in_turn(self, spans: Spans, first: RoleChoice | None) -> Mapping[int, RoleChoice] | None:
        """Return the choices of all seats in turn, the *first* of which is known; None where no place was found."""
        board = self._board
        choices, failed = ({}, 0) if first is None else self._greedy(spans, {}, first)
        if failed is None and all(choice.exact for choice in choices.values()):
            return choices
        if len(board.fleet.nodes) <= _SMALL:
            try:
                return self._exhaustive(spans)
            except _OutOfEffort:
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
        self, spans: Spans, reserved: Mapping[int, Counts], first: RoleChoice | None = None
    ) -> tuple[Mapping[int, RoleChoice], int | None]:
        """Return the choices in turn, and the number of the seat that found no place, None where all did.

        *reserved* are the pods of later seats for which room is kept, by the position of their node; *first* is the choice
        of the first seat where it is known.
        """
        turn = Turn(self._board, 0, {}, Taken())
        if first is not None:
            turn = turn.after(first)
        while turn.number < len(self._board.seats):
            kept = turn.taken
            for later, counts in reserved.items():
                if later > turn.number:
                    kept = kept.with_counts(self._board.seats[later].demand, self._board.fleet, counts)
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
        """Return the choices in turn, each the best of all that leave the rest a place. Raises ``_OutOfEffort``."""
        turn = Turn(self._board, 0, {}, Taken())
        while turn.number < len(self._board.seats):
            choice = _best_that_leaves_room(turn, spans, self._every)
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
        """Return where the seat would stand by itself; next to others on their node, that is any node of the span."""
        board, seat = self._board, self._board.seats[number]
        if seat.tie and seat.tie[1] == 0:
            other = board.seats[seat.tie[0]].capacity.places
            places = seat.capacity.places
            return {
                position: 1
                for position in range(span.start, span.end)
                if places[position] and other[position]
            }
        freed = replace(board, seats=(replace(seat, tie=None),))
        alone = choose_nodes(Turn(freed, 0, {}, Taken()), span, self._effort)
        return None if alone is None else alone.counts


def _by_places(nodes: Sequence[int], seat: Seat) -> Iterable[tuple[int, Sequence[int]]]:
    """Return *nodes* of one state with the places that count for what they offer *seat*: with GPUs, none do."""
    if seat.role.gpus:
        return [(0, nodes)]
    by_places: dict[int, list[int]] = {}
    for position in nodes:
        by_places.setdefault(seat.capacity.places[position], []).append(position)
    return by_places.items()


def _tightest_first(fleet: Fleet, seat: Seat, nodes: Sequence[int]) -> Iterator[tuple[Room, int]]:
    """Yield *nodes*, in fabric order, with the room of their finest domain: the tightest first, those in none last."""
    left, nowhere = list(nodes), Room()
    # A node that is in no domain of a tier is taken after those that are: the next coarser tier compares such nodes.
    for depth in range(len(fleet.tiers), 0, -1):
        room_of, domains = rooms(fleet, seat.capacity, depth), fleet.domains[depth - 1]
        for number in sorted(range(len(domains)), key=lambda number: (room_of[number], number)):
            first = bisect_left(left, domains[number].start)
            last = bisect_left(left, domains[number].end, first)
            yield from (((*nowhere, *room_of[number]), position) for position in left[first:last])
            del left[first:last]
        if not left:
            return
        nowhere = (*nowhere, _NOWHERE)
    yield from ((nowhere, position) for position in left)
