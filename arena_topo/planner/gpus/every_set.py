"""What holds of every set of GPUs of one machine, all sets at once.

A machine of 16 GPUs has 65,536 sets, and to look at each of them by itself takes a second. Three ways to look at all of them:

* a list by mask, doubled GPU by GPU: what holds without the next GPU, then what holds with it;
* a number with a bit for each set (a *plane*), so that one operation on two planes is done for all sets;
* numbers whose bits are levels that are reached, so that the larger of two of them is what both together have.
"""

from collections.abc import Sequence
from operator import or_

_NONE = 1 << 30
"""More links than any GPU has."""


def fewest_of_every_set(counts: Sequence[Sequence[int]]) -> list[int]:
    """Return, by mask, the fewest links to the others that any member has; *counts* are the links between two GPUs.

    >>> fewest_of_every_set([[0, 2, 1], [2, 0, 0], [1, 0, 0]])  # two links 0-1, one link 0-2
    [0, 0, 0, 2, 0, 1, 0, 1]
    """
    by_gpu = []
    for gpu, row in enumerate(counts):
        links = [0]
        for other, count in enumerate(row):
            # A GPU bounds only the sets that it is in.
            links = [_NONE] * len(links) + links if other == gpu else links + [count + of for of in links]
        by_gpu.append(links)
    return [0, *list(map(min, *by_gpu))[1:]] if len(by_gpu) > 1 else [0, 0]


def joined_of_every_set(adjacent: Sequence[int]) -> bytes:
    """Return, by mask, 1 where the GPUs of a set are connected among themselves; *adjacent* has the neighbours of each as a mask.

    >>> list(joined_of_every_set([0b010, 0b101, 0b010]))  # the chain 0-1-2: all but its ends alone
    [0, 1, 1, 1, 1, 0, 1, 1]
    """
    size = len(adjacent)
    within = [_with(gpu, size) for gpu in range(size)]
    # From its lowest member, each set is walked along the links until no walk gets further.
    reached, lower = [], 0
    for sets in within:
        reached.append(sets & ~lower)
        lower |= sets
    is_growing = True
    while is_growing:
        is_growing = False
        for gpu, neighbours in enumerate(adjacent):
            near = reached[gpu]
            for other in range(size):
                if neighbours >> other & 1:
                    near |= reached[other]
            if (near := near & within[gpu]) != reached[gpu]:
                reached[gpu], is_growing = near, True
    joined = lower
    for sets, walked in zip(within, reached, strict=True):
        joined &= walked | ~sets
    return _spread(joined, 1 << size)


def _with(gpu: int, size: int) -> int:
    """Return the plane of the sets of *size* GPUs that hold *gpu*: of two GPUs, 0b1010 for the first and 0b1100 for the second."""
    plane, width = ((1 << (1 << gpu)) - 1) << (1 << gpu), 2 << gpu
    while width < 1 << size:
        plane |= plane << width
        width *= 2
    return plane


_BITS = [bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256)]


def _spread(plane: int, count: int) -> bytes:
    """Return the first *count* bits of *plane*, one a byte."""
    return b"".join(map(_BITS.__getitem__, plane.to_bytes(-(-count // 8), "little")))[:count]


def best_by_size(
    rates: Sequence[float], sizes: Sequence[int], strides: Sequence[int], radices: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Return what each set is worth, the sum over k of the best of its subsets of k GPUs, and the best rate of each size.

    Sets are numbers in mixed radix: a digit for each class of GPUs that may be exchanged, with its stride. *rates* and *sizes*
    are those of each set; rates have three decimals.

    With the rates 0, 1 and 3, a pair at 3 has reached two levels, which are worth 1 and 2 more; it is the number 0b11 shifted
    to the place of pairs, and the set of three GPUs that holds it and a pair at 1 has 0b11 | 0b01 = 0b11 there.

    >>> best_by_size([0.0, 0.0, 0.0, 45.0], [0, 1, 1, 2], [1, 2], [2, 2])
    ([0.0, 0.0, 0.0, 45.0], [0.0, 0.0, 45.0])
    """
    levels = sorted({*rates, 0.0})
    most, width = max(sizes), len(levels)
    number_of = {rate: number for number, rate in enumerate(levels)}
    reached = [((1 << number_of[rate]) - 1) << size * width for rate, size in zip(rates, sizes, strict=True)]
    for stride, radix in zip(strides, radices, strict=True):
        block = stride * radix
        for start in range(0, len(reached), block):
            # One member more of the class each time, on top of all that fewer of them have.
            for first in range(start + stride, start + block, stride):
                last = first + stride
                reached[first:last] = map(or_, reached[first:last], reached[first - stride : first])
    # Levels with the same step are counted together: on most machines those are the links, one after the other.
    masks: dict[int, int] = {}
    for number in range(1, width):
        step = round((levels[number] - levels[number - 1]) * 1000)
        masks[step] = masks.get(step, 0) | sum(1 << number - 1 + size * width for size in range(most + 1))
    steps = list(masks.items())
    worth = [
        sum([step * (levels_of & mask).bit_count() for step, mask in steps]) / 1000 for levels_of in reached
    ]
    best = [levels[(reached[-1] >> size * width & (1 << width) - 1).bit_count()] for size in range(most + 1)]
    return worth, best
