"""Which of many sets of GPUs is the best, and which comes second."""

from collections.abc import Iterator
from itertools import groupby

from arena_topo.planner.gpus.candidates import Candidates
from arena_topo.planner.gpus.locality import Locality
from arena_topo.planner.gpus.worth import Quality

_SMALL = 8
_MOST = 20_000

Rated = tuple[float, int]
"""What a set is first compared by, less is better, and its mask."""


class Ranking:
    """Compares the sets of one machine by the whole objective.

    For up to eight GPUs every set is compared, sorted by busbw once; for more, one set of each kind.
    """

    def __init__(self, quality: Quality, locality: Locality, candidates: Candidates, size: int) -> None:
        self._quality = quality
        self._locality = locality
        self._candidates = candidates
        self._small = size <= _SMALL
        self._sorted: dict[int, list[Rated]] = {}

    def can_compare(self, free: int, k: int) -> bool:
        """Whether there are few enough sets of *k* GPUs among *free*."""
        return self._small or self._candidates.count(free, k) <= _MOST

    def two_best(self, free: int, k: int, *, preserving: bool) -> tuple[int, int | None]:
        """Return the best and the second best set of *k* GPUs among *free*, None where there is but one.

        With *preserving* the worth of what stays free goes before busbw.
        """
        rated = self._by_busbw(free, k)
        if preserving:
            rated = sorted((-self._quality.worth(free ^ mask), mask) for _, mask in rated)
        best: list[int] = []
        for _, group in groupby(rated, key=lambda each: each[0]):
            best += sorted((mask for _, mask in group), key=lambda mask: self._rest(free, mask))[
                : 2 - len(best)
            ]
            if len(best) == 2:
                return best[0], best[1]
        return best[0], None

    def _by_busbw(self, free: int, k: int) -> list[Rated]:
        if not self._small:
            return self._sort(self._candidates.within(free, k))
        if k not in self._sorted:
            self._sorted[k] = self._sort(iter(self._candidates.all_of(k)))
        return [each for each in self._sorted[k] if each[1] & ~free == 0]

    def _sort(self, masks: Iterator[int]) -> list[Rated]:
        return sorted((-self._quality.busbw(mask), mask) for mask in masks)

    def _rest(self, free: int, mask: int) -> tuple[object, ...]:
        """Return what sets are compared by that are equal in the first respect."""
        left = free ^ mask
        return (
            -self._quality.worth(left),
            -self._quality.busbw(mask),
            self._locality.near(mask),
            -self._locality.whole(left),
            self._locality.last(mask),
        )
