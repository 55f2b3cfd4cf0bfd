"""How many channels fit at once into links of limited capacity: an integer packing by depth-first search.

With one unit of capacity on each of the arcs 01, 12 and 23, a channel over 01 and 12 excludes one over 12 and 23,
and leaves no arc for it; the single arcs 01 and 23 fit beside each other. The shortest channels are tried first:

>>> fill([((0, 1), (1, 2)), ((0, 1),), ((2, 3),)], {(0, 1): 1, (1, 2): 1, (2, 3): 1}, bound=3)
(2, True)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Arc = tuple[int, int]
Channel = tuple[Arc, ...]
"""The arcs that a channel takes, one unit of each; an arc may come twice."""

# Steps and not seconds, so that a faster machine does not get another answer.
_MOST_STEPS = 10_000
# Every pair of channels is compared: above this number that costs more than the search saves by it.
_MOST_COMPARED = 2_000


def fill(channels: Iterable[Channel], capacities: Mapping[Arc, int], bound: int) -> tuple[int, bool]:
    """Return how many of *channels* (each any number of times) fit into *capacities*, and whether that is proven.

    *bound* is a number that cannot be exceeded. Not proven means that the search ended early, with a packing
    that may not be the largest.
    """
    fields = _Fields.of(capacities)
    lengths = {fields.taken(channel): len(channel) for channel in channels}
    shortest_first = sorted(lengths, key=lambda taken: (lengths[taken], taken))
    search = _Search(_minimal(shortest_first, fields.guards), lengths, fields.guards, bound)
    search.extend(search.channels, fields.full, sum(capacities.values()), 0)
    return search.most, search.steps < _MOST_STEPS or search.most >= bound


@dataclass(frozen=True, slots=True)
class _Fields:
    """Capacities packed into one integer: a field for each arc, with a guard bit above it.

    Taking a channel is one subtraction for all arcs, and an overdrawn arc clears its guard. Two arcs of capacity 1
    have fields of two bits: full is 0b1111 (guard, 1, guard, 1). Taking the lower arc once leaves 0b1110; taking it
    again leaves 0b1101, in which its guard, bit 1, is clear.
    """

    shift: Mapping[Arc, int]
    guards: int
    full: int

    @classmethod
    def of(cls, capacities: Mapping[Arc, int]) -> "_Fields":
        # A channel takes no arc more often than its capacity, so one guard bit never borrows further.
        width = max(capacities.values(), default=1).bit_length() + 1
        shift = {arc: number * width for number, arc in enumerate(capacities)}
        guards = sum(1 << (lowest + width - 1) for lowest in shift.values())
        return cls(shift, guards, guards + sum(capacities[arc] << lowest for arc, lowest in shift.items()))

    def taken(self, channel: Channel) -> int:
        return sum(1 << self.shift[arc] for arc in channel)


@dataclass(slots=True)
class _Search:
    channels: Sequence[int]
    lengths: Mapping[int, int]
    guards: int
    bound: int
    most: int = 0
    steps: int = 0

    def extend(self, channels: Sequence[int], left: int, units: int, depth: int) -> None:
        """Add channels to the *depth* chosen ones, in order; *units* of capacity are *left*."""
        self.steps += 1
        self.most = max(self.most, depth)
        fitting = [taken for taken in channels if (left - taken) & self.guards == self.guards]
        for index, taken in enumerate(fitting):
            if self.most >= self.bound or self.steps >= _MOST_STEPS:
                return
            # All that follow are at least as long, so no more than this many of them fit.
            if depth + units // self.lengths[taken] <= self.most:
                return
            # The same channel may come again, but none before it: each selection is tried in one order only.
            self.extend(fitting[index:], left - taken, units - self.lengths[taken], depth + 1)


def _minimal(channels: Sequence[int], guards: int) -> Sequence[int]:
    """Return *channels*, shortest first, without those that take all that another takes, and more."""
    if len(channels) > _MOST_COMPARED:
        return channels
    minimal: list[int] = []
    for taken in channels:
        # No guard is borrowed from where *taken* has at least what *other* takes of every arc.
        if not any(((taken | guards) - other) & guards == guards for other in minimal):
            minimal.append(taken)
    return minimal
