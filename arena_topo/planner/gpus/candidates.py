"""The sets of k GPUs that have to be compared: all, or one of each kind where GPUs are interchangeable."""

from collections.abc import Iterator, Sequence
from itertools import combinations


class Candidates:
    """Lists sets of one machine. *kinds* are its GPUs by interchangeability, each kind in order of position."""

    def __init__(self, kinds: Sequence[Sequence[int]]) -> None:
        self._kinds = kinds
        self._all: dict[int, list[int]] = {}

    def all_of(self, k: int) -> list[int]:
        """Return every set of *k* GPUs of the machine."""
        known = self._all.get(k)
        if known is None:
            positions = sorted(at for kind in self._kinds for at in kind)
            known = self._all[k] = [sum(1 << at for at in chosen) for chosen in combinations(positions, k)]
        return known

    def count(self, free: int, k: int) -> int:
        """Return how many sets ``within`` yields."""
        ways = [1] + [0] * k
        for kind in self._kinds:
            size = sum(free >> at & 1 for at in kind)
            ways = [sum(ways[at - taken] for taken in range(min(size, at) + 1)) for at in range(k + 1)]
        return ways[k]

    def within(self, free: int, k: int) -> Iterator[int]:
        """Yield sets of *k* GPUs among *free*: of those that differ by interchangeable GPUs, the lowest."""
        kinds = [_lowest_sets(free, kind) for kind in self._kinds]
        room = [0]
        for sets in reversed(kinds):
            room.append(room[-1] + len(sets) - 1)
        room.reverse()

        def choose(at: int, missing: int, chosen: int) -> Iterator[int]:
            if missing == 0:
                yield chosen
            elif missing <= room[at]:
                for taken, mask in enumerate(kinds[at][: missing + 1]):
                    yield from choose(at + 1, missing - taken, chosen | mask)

        return choose(0, k, 0)


def _lowest_sets(free: int, kind: Sequence[int]) -> list[int]:
    """Return the lowest sets of 0, 1, 2, ... free GPUs of a kind."""
    sets = [0]
    for at in kind:
        if free >> at & 1:
            sets.append(sets[-1] | 1 << at)
    return sets
