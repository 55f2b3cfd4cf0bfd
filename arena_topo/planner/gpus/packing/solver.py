"""How many channels fit at once into links of limited capacity: an integer packing by depth-first search."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Arc = tuple[int, int]
Channel = tuple[Arc, ...]
"""The arcs that a channel takes, one unit of each; an arc may come twice."""

_MOST_STEPS = 10_000
_MOST_COMPARED = 2_000


def fill(channels: Iterable[Channel], capacities: Mapping[Arc, int], bound: int) -> tuple[int, bool]:
    """Return how many of *channels* (each as often as wanted) fit into *capacities*, and whether that is proven.

    *bound* is a number that cannot be passed. Not proven means that the search ended early, with a packing
    that may not be the largest.
    """
    fields = _Fields.of(capacities)
    lengths = {fields.taken(channel): len(channel) for channel in channels}
    shortest_first = sorted(lengths, key=lambda taken: (lengths[taken], taken))
    search = _Search(_minimal(shortest_first, fields.guards), lengths, fields.guards, bound)
    search.go(search.channels, fields.full, sum(capacities.values()), 0)
    return search.most, search.steps < _MOST_STEPS or search.most >= bound


@dataclass(frozen=True, slots=True)
class _Fields:
    """Capacities in one integer: a field an arc, with a guard bit above it.

    Taking a channel is a subtraction, and an overdrawn arc clears its guard: one step for all arcs.
    """

    shift: Mapping[Arc, int]
    guards: int
    full: int

    @classmethod
    def of(cls, capacities: Mapping[Arc, int]) -> "_Fields":
        # a channel takes no arc more often than its capacity, so one guard bit never borrows further
        width = max(capacities.values(), default=1).bit_length() + 1
        shift = {arc: at * width for at, arc in enumerate(capacities)}
        guards = sum(1 << (at + width - 1) for at in shift.values())
        return cls(shift, guards, guards + sum(capacities[arc] << at for arc, at in shift.items()))

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

    def go(self, channels: Sequence[int], left: int, units: int, depth: int) -> None:
        """Add channels to the *depth* chosen ones, in order; *units* of capacity are *left*."""
        self.steps += 1
        self.most = max(self.most, depth)
        fitting = [taken for taken in channels if (left - taken) & self.guards == self.guards]
        for at, taken in enumerate(fitting):
            if self.most >= self.bound or self.steps >= _MOST_STEPS:
                return
            if depth + units // self.lengths[taken] <= self.most:  # all that follow are at least as long
                return
            self.go(fitting[at:], left - taken, units - self.lengths[taken], depth + 1)


def _minimal(channels: Sequence[int], guards: int) -> Sequence[int]:
    """Return *channels*, shortest first, without those that take all that another takes, and more."""
    if len(channels) > _MOST_COMPARED:
        return channels
    kept: list[int] = []
    for taken in channels:
        if not any(((taken | guards) - other) & guards == guards for other in kept):
            kept.append(taken)
    return kept
