"""Every choice of nodes for a role, on clusters small enough: for roles whose best nodes leave the next ones no place.

The roles choose in turn, so a choice that the others cannot follow is no choice. The rest is tried pod count by pod count,
whichever GPUs they get: a node that has enough GPUs free gives any of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from arena_topo.model.plan.roles import Spread
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.node_state import Offer
from arena_topo.planner.nodes.search import Effort
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.servers import server_merit
from arena_topo.planner.roles.turn import RoleChoice, Turn

Spans = Mapping[int, Domain]
"""Where each seat, by its number, may choose."""
Counts = dict[int, int]
"""Pods by the position of their node."""


class OutOfEffort(Exception):
    """There were more choices than may be tried."""


def best_that_leaves_room(turn: Turn, spans: Spans, effort: Effort) -> RoleChoice | None:
    """Return the best choice of *turn* after which all later seats have a place; None where there is none.

    Raises ``OutOfEffort`` where *effort* does not suffice.
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
        for counts in every_count(turn, span, places, effort)
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
        _rest_fits(after, _bare(counts), spans, effort) for counts in every_count(after, span, places, effort)
    )


def _bare(counts: Counts) -> RoleChoice:
    """Return a choice that is nothing but so many pods on each node."""
    offers = ((position, Offer(count, 0.0, 0.0, 0, 0.0, 0, None)) for position, count in counts.items())
    return RoleChoice(tuple(offers), (), exact=False)


def every_count(turn: Turn, span: Domain, places: Sequence[int], effort: Effort) -> Iterator[Counts]:
    """Yield every way to put the pods of *turn* onto nodes of *span* that keeps its slices and its spread.

    Raises ``OutOfEffort``.
    """
    able = [(span.start + index, width) for index, width in enumerate(places) if width]
    left = [0] * (len(able) + 1)
    for index in range(len(able) - 1, -1, -1):
        left[index] = left[index + 1] + able[index][1]

    def extended(index: int, pods: int, counts: Counts) -> Iterator[Counts]:
        if not effort.spend(1):
            raise OutOfEffort
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
