"""Which set of k free GPUs is the best, and which comes second.

Every set is compared, or one of those that differ by interchangeable GPUs only. Where these are still too many, a good
set is grown instead, GPU by GPU.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby

from arena_topo.model.cluster.hardware import Link, LinkGraph
from arena_topo.planner.gpus.locality import Locality
from arena_topo.planner.gpus.set_values import SetValues
from arena_topo.planner.gpus.zone_rule import ZoneRule
from arena_topo.planner.memo import Memo

# Eight GPUs have 256 sets: rating all of them once is cheaper than grouping them by kind each time.
_SMALL = 8
_MOST_COMPARED = 20_000
_MOST_GPUS_COMPARED = 2_200_000
"""GPUs of the machine, counted once for each set: sets of a large machine take longer to compare."""
_DIRECT_WEIGHT = 1000
"""Any direct link goes before any number of PCIe hops."""
_MOST_WIDENED = 1_000_000
"""Links that are added up while sets are grown. That is enough to grow one from each of a hundred GPUs."""

Rated = tuple[float, int]
"""The busbw of a set, negative so that less is better, and its mask."""


class Ranking:
    """Compares the sets of one machine by the whole objective.

    For up to eight GPUs every set is compared, sorted by busbw once; for more, one set of each kind.
    """

    def __init__(
        self,
        values: SetValues,
        locality: Locality,
        closed_rings: Callable[[int], int],
        kinds: Sequence[Sequence[int]],
        size: int,
    ) -> None:
        """Take what sets are compared by, and the GPUs by interchangeability, each kind in order of position."""
        self._values = values
        self._locality = locality
        self._closed_rings = closed_rings
        self._kinds = kinds
        self._small = size <= _SMALL
        self._most_compared = min(_MOST_COMPARED, _MOST_GPUS_COMPARED // max(size, 1))
        self._sorted: Memo[int, list[Rated]] = Memo(
            lambda k: self._rated(combinations_of(kinds, k)), limit=_SMALL
        )

    def can_compare(self, free: int, k: int) -> bool:
        """Whether there are few enough sets of *k* GPUs among *free*."""
        return self._small or count_of_each_kind(self._kinds, free, k) <= self._most_compared

    def two_best(
        self, free: int, k: int, *, across_nodes: bool = False, rule: ZoneRule | None = None
    ) -> tuple[int, int | None]:
        """Return the best and the second best set of *k* GPUs among *free*, None where there is only one.

        *across_nodes*: the set belongs to a gang over several nodes. Only sets that *rule* allows count.
        """
        if self._small:
            rated = [(rate, mask) for rate, mask in self._sorted[k] if mask & ~free == 0]
        else:
            rated = self._rated(one_of_each_kind(self._kinds, free, k))
        if rule:
            # Interchangeable GPUs are on one NUMA node, so that all sets of a kind are allowed, or none.
            rated = [(rate, mask) for rate, mask in rated if rule.allows(mask)]
        best: list[int] = []
        # Tie-breakers are slow to compute, so only the sets that share the highest rates get them.
        for _, equally_fast in groupby(rated, key=lambda entry: entry[0]):
            masks = sorted(
                (mask for _, mask in equally_fast),
                key=lambda mask: self._tie_breakers(free, mask, across_nodes=across_nodes),
            )
            best += masks[: 2 - len(best)]
            if len(best) == 2:
                return best[0], best[1]
        return best[0], None

    def _rated(self, masks: Iterator[int]) -> list[Rated]:
        return sorted((-self._values.busbw(mask), mask) for mask in masks)

    def _tie_breakers(self, free: int, mask: int, *, across_nodes: bool) -> tuple[object, ...]:
        left = free ^ mask
        return (
            # Between nodes the NICs carry everything: one for each GPU is worth more than what stays free.
            -self._locality.served(mask) if across_nodes else 0,
            -self._values.value(left),
            # Older versions of NCCL, and its low-latency protocols, use closed rings alone.
            -self._closed_rings(mask),
            self._locality.nearness(mask),
            -self._locality.whole_blocks(left),
            self._locality.last_resort(mask),
        )


def combinations_of(kinds: Sequence[Sequence[int]], k: int) -> Iterator[int]:
    """Yield every set of *k* GPUs of the machine."""
    positions = sorted(gpu for kind in kinds for gpu in kind)
    return (sum(1 << gpu for gpu in chosen) for chosen in combinations(positions, k))


def one_of_each_kind(kinds: Sequence[Sequence[int]], free: int, k: int) -> Iterator[int]:
    """Yield sets of *k* GPUs among *free*: of those that differ by interchangeable GPUs, the lowest.

    With the kinds 0-1-2 and 3-4, all free, one set of each kind stands for the ten pairs:

    >>> [f"{mask:05b}" for mask in one_of_each_kind([[0, 1, 2], [3, 4]], 0b11111, 2)]
    ['11000', '01001', '00011']
    """
    lowest = [_lowest_sets(free, kind) for kind in kinds]
    most_from = [0]  # at [i]: how many GPUs the kinds from i on have
    for sets in reversed(lowest):
        most_from.append(most_from[-1] + len(sets) - 1)
    most_from.reverse()

    def extend(kind: int, missing: int, chosen: int) -> Iterator[int]:
        if missing == 0:
            yield chosen
        elif missing <= most_from[kind]:
            for taken, mask in enumerate(lowest[kind][: missing + 1]):
                yield from extend(kind + 1, missing - taken, chosen | mask)

    return extend(0, k, 0)


def count_of_each_kind(kinds: Sequence[Sequence[int]], free: int, k: int) -> int:
    """Return how many sets ``one_of_each_kind`` yields.

    >>> count_of_each_kind([[0, 1, 2], [3, 4]], 0b11111, 2)
    3
    """
    ways = [1] + [0] * k  # at [n]: ways to take n GPUs of the kinds so far
    for kind in kinds:
        size = sum(free >> gpu & 1 for gpu in kind)
        ways = [sum(ways[n - taken] for taken in range(min(size, n) + 1)) for n in range(k + 1)]
    return ways[k]


def _lowest_sets(free: int, kind: Sequence[int]) -> list[int]:
    """Return the lowest sets of 0, 1, 2, ... free GPUs of a kind."""
    sets = [0]
    for gpu in kind:
        if free >> gpu & 1:
            sets.append(sets[-1] | 1 << gpu)
    return sets


def grow(graph: LinkGraph, free: Sequence[int], k: int, busbw: Callable[[int], float]) -> int:
    """Return a good set of *k* of the GPUs *free*, which ascend: the best by *busbw* of the sets grown from each of them.

    On machines of hundreds of GPUs sets are grown from some of them only, evenly spread.
    """
    if k == len(free):
        return sum(1 << gpu for gpu in free)
    weights: Memo[int, list[float]] = Memo(
        lambda gpu: [_weight(link) for link in graph.links[gpu]], limit=graph.size
    )
    seeds = max(1, _MOST_WIDENED // (k * len(free)))
    step = -(-len(free) // seeds)
    sets = dict.fromkeys(_grown_from(seed, weights, free, k) for seed in free[::step])
    return max(sets, key=busbw)


def _grown_from(seed: int, weights: Mapping[int, Sequence[float]], free: Sequence[int], k: int) -> int:
    """Return the set that starts with *seed* and takes, again and again, the GPU with the widest links to the set."""
    left = [gpu for gpu in free if gpu != seed]
    widths = [0.0] * len(left)
    mask, newest = 1 << seed, seed
    for _ in range(k - 1):
        row = weights[newest]
        widths = [width + row[gpu] for width, gpu in zip(widths, left, strict=True)]
        # Of equally wide ones the first.
        place = widths.index(max(widths))
        newest = left.pop(place)
        del widths[place]
        mask |= 1 << newest
    return mask


def _weight(link: Link) -> float:
    return link.bandwidth * (_DIRECT_WEIGHT if link.kind.is_direct else 1)
