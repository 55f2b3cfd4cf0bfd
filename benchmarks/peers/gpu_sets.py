"""How others choose GPUs inside a node: their published rules, written again for comparison.

The rules are those of NVIDIA's go-gpuallocator (policies simple, best effort and static for DGX-1), of HAMi's
topology-aware device plugin, and the largest-bottleneck rule that an engineer of Alibaba Cloud proposed to
Koordinator (issues 1115 and 1116), on which ACK's closed scheduler is taken to rest.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

Scores = Sequence[Sequence[int]]
Rule = Callable[[Sequence[int], int], tuple[int, ...]]
"""From the free GPUs, lowest first, and a number, to the GPUs chosen; empty where the rule gives none."""

SINGLE_SWITCH, HOST_BRIDGE, SAME_CPU, CROSS_CPU, NVLINK = 50, 30, 20, 10, 100
"""go-gpuallocator's score of a pair for each of its links; a pair's links add up."""

STATIC_DGX1V = {
    2: ((0, 3), (1, 2), (4, 7), (5, 6)),
    4: ((0, 1, 2, 3), (4, 5, 6, 7)),
    8: ((0, 1, 2, 3, 4, 5, 6, 7),),
}


def pair_scores(nvlinks: Scores, switched: Sequence[tuple[int, int]]) -> Scores:
    """Return the scores of the pairs of two sockets of GPUs; *switched* pairs share a PCIe switch."""
    size = len(nvlinks)

    def score(a: int, b: int) -> int:
        if (min(a, b), max(a, b)) in switched:
            over_pcie = SINGLE_SWITCH
        else:
            over_pcie = HOST_BRIDGE if a * 2 // size == b * 2 // size else CROSS_CPU
        return over_pcie + NVLINK * nvlinks[a][b]

    return [[score(a, b) if a != b else 0 for b in range(size)] for a in range(size)]


def sum_of_pairs(scores: Scores, chosen: Sequence[int]) -> int:
    """Return the score of a set."""
    return sum(scores[a][b] for a, b in combinations(chosen, 2))


def simple(free: Sequence[int], k: int) -> tuple[int, ...]:
    """Take the first GPUs."""
    return tuple(free[:k]) if 0 < k <= len(free) else ()


def best_effort(scores: Scores, free: Sequence[int], k: int, required: Sequence[int] = ()) -> tuple[int, ...]:
    """Part the free GPUs into sets of *k*, the last maybe smaller, so that the pairs within sets score most.

    Of the best parting the best whole set is taken; the first of equals, each time. A single GPU is the first
    one.
    """
    if k <= 0 or len(free) < k or len(required) > k or not set(required) <= set(free):
        return ()
    if k == 1:
        return tuple(required or free[:1])
    best: tuple[int, list[tuple[int, ...]]] | None = None
    for parting in _partings(free, k):
        whole = [chosen for chosen in parting if len(chosen) == k and set(required) <= set(chosen)]
        total = sum(sum_of_pairs(scores, chosen) for chosen in parting)
        if whole and (best is None or total > best[0]):
            best = total, whole
    return max(best[1], key=lambda chosen: sum_of_pairs(scores, chosen)) if best else ()


def hami(scores: Scores, free: Sequence[int], k: int) -> tuple[int, ...]:
    """Take the set whose pairs score most; a single GPU is the one that scores least with the others."""
    if not 0 < k <= len(free):
        return ()
    if k == 1:
        return (min(free, key=lambda a: sum(scores[a][b] for b in free)),)
    return max(combinations(free, k), key=lambda chosen: sum_of_pairs(scores, chosen))


def min_pair(bandwidth: Sequence[Sequence[float]], free: Sequence[int], k: int) -> tuple[int, ...]:
    """Take the set whose slowest pair is fastest, the first of equals."""
    if not 0 < k <= len(free):
        return ()
    return max(
        combinations(free, k),
        key=lambda chosen: min((bandwidth[a][b] for a, b in combinations(chosen, 2)), default=0.0),
    )


def static(sets: dict[int, tuple[tuple[int, ...], ...]], free: Sequence[int], k: int) -> tuple[int, ...]:
    """Take the first set of a fixed list that is free; a single GPU is the first one."""
    if k == 1:
        return tuple(free[:1])
    return next((chosen for chosen in sets.get(k, ()) if set(chosen) <= set(free)), ())


def _partings(free: Sequence[int], k: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield the ways to part *free* into sets of *k* and one of what remains, in the order of the Go program.

    That order decides between equals: GPUs come before padding, the first that is left is in the next set,
    and one set holds all the padding.
    """
    padding = -len(free) % k

    def part(left: Sequence[int | None]) -> Iterator[list[tuple[int, ...]]]:
        if not left:
            yield []
            return
        for mates in combinations(range(1, len(left)), k - 1):
            chosen = [left[index] for index in (0, *mates)]
            if chosen.count(None) in {0, padding}:
                gpus = tuple(gpu for gpu in chosen if gpu is not None)
                rest = [gpu for index, gpu in enumerate(left) if index and index not in mates]
                yield from ([gpus, *more] for more in part(rest))

    return part([*free, *[None] * padding])
