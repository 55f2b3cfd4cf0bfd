"""What a set of free GPUs is worth: the sum, over k, of the best bus bandwidth that k GPUs of it can have.

Of three GPUs with 45 GB/s between 0 and 1 and 8 GB/s to 2, the set 0-1-2 is worth 0 + 45 + 8 = 53: one GPU alone has
0, the best pair 45, and all three talk over PCIe at 8. A job that takes GPU 2 leaves 45, a loss of 8; one that takes
GPU 0 leaves 8, a loss of 45. So a single GPU is taken from the slow side.

GPUs that may be exchanged without changing a link (*twins*) are counted and not told apart: a set is then a *state*,
the number of members of each class. A box of 16 GPUs with two under each switch has eight classes of two GPUs and
3 ** 8 = 6,561 states in place of 65,536 sets.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul, or_
from typing import Any

from arena_topo.planner.gpus.canonical import Matrix, twins
from arena_topo.planner.gpus.every_set import best_by_size
from arena_topo.planner.gpus.packing import cache
from arena_topo.planner.memo import Memo

# Sixteen GPUs of which no two are twins have 65,536 states.
_MOST_STATES = 70_000
"""Machines with more states than this are not valued."""
_USUAL = 32
"""On machines of more GPUs than this a state takes so much longer to rate that fewer of them are valued: as many as the
square of the number of GPUs is larger, 1,093 on one of 256."""
_QUICK = 1_000
"""Tables of so few states are computed faster than they are read."""


@dataclass(frozen=True, slots=True)
class _ValueTable:
    """``values`` by state, and ``best_busbw`` by number of GPUs on the empty machine."""

    values: Sequence[float]
    best_busbw: Sequence[float]


class SetValues:
    """Values the sets of GPUs of one machine by their masks; the busbw of each state is computed once.

    ``are_few`` says that the machine has few enough states for ``value`` and ``best_busbw``.
    """

    def __init__(
        self,
        matrix: Matrix,
        busbw: Callable[[int], float],
        name: str,
        every_busbw: Callable[[], Sequence[float]] | None = None,
    ) -> None:
        """Take the link *matrix*, equal numbers for equal links, and the *busbw* of a mask.

        *name* identifies both: large tables are kept under it. *every_busbw* gives the busbw of every mask at once.
        """
        class_of = twins(matrix)
        classes = sorted(set(class_of))
        self._members = [[gpu for gpu, own in enumerate(class_of) if own == name] for name in classes]
        self._radices = [len(members) + 1 for members in self._members]
        *self._strides, self.states = accumulate([1, *self._radices], mul)
        stride_of = dict(zip(classes, self._strides, strict=True))
        self.are_few = self.states * max(len(matrix), _USUAL) ** 2 <= _MOST_STATES * _USUAL**2
        self._bytes = byte_tables([stride_of[name] for name in class_of])
        self._busbw = busbw
        self._every_busbw = every_busbw
        self._busbw_by_state = Memo(self._busbw_of_state, limit=_MOST_STATES)
        self._name = f"worth-{name}"

    def state(self, mask: int) -> int:
        """Return the state of the set *mask*: the numbers of members of each class as digits in mixed radix."""
        # The usual case of at most eight GPUs, in the innermost loop.
        if len(self._bytes) == 1:
            return self._bytes[0][mask]
        state = 0
        for table in self._bytes:
            state += table[mask & 255]
            mask >>= 8
        return state

    def busbw(self, mask: int) -> float:
        """Return the busbw of the set *mask*."""
        return self._busbw_by_state[self.state(mask)]

    def value(self, mask: int) -> float:
        """Return the sum over k of the best busbw of k GPUs among *mask*."""
        return self._table.values[self.state(mask)]

    def best_busbw(self, size: int) -> float:
        """Return the best busbw that *size* GPUs can have on the empty machine."""
        return self._table.best_busbw[size]

    def _busbw_of_state(self, state: int) -> float:
        # Always of the lowest set of a state: packings that are not proven may differ between sets that are alike.
        if self.are_few:
            return self._busbw(self._lowest_masks[state])
        return self._busbw(
            self._lowest([state // s % r for s, r in zip(self._strides, self._radices, strict=True)])
        )

    @cached_property
    def _lowest_masks(self) -> list[int]:
        """The lowest set of every state, all at once: each class of twins multiplies the sets so far."""
        masks = [0]
        for members in self._members:
            lowest = accumulate((1 << gpu for gpu in members), or_, initial=0)
            masks = [mask | added for added in lowest for mask in masks]
        return masks

    @cached_property
    def _table(self) -> _ValueTable:
        if self.states <= _QUICK:
            return self._computed()
        table = cache.load(self._name, self._read)
        if table is None:
            table = self._computed()
            busbw = [self._busbw_by_state[state] for state in range(self.states)]
            cache.store(self._name, {"values": busbw, "worths": table.values, "best": table.best_busbw})
        return table

    def _read(self, document: Mapping[str, Any]) -> _ValueTable:
        """Return a kept table; raises ``ValueError`` when it is incomplete."""
        busbw = _floats(document.get("values"), self.states)
        values = _floats(document.get("worths"), self.states)
        best = _floats(document.get("best"), sum(map(len, self._members)) + 1)
        # The table has the busbw of every state, so no packing is looked up for any of them.
        self._busbw_by_state.update(enumerate(busbw))
        return _ValueTable(values, best)

    def _computed(self) -> _ValueTable:
        """Return the value of every state.

        With one class of two twins (radix 3) there are the states 0, 1 and 2. State 2 holds state 1, whose best busbw by size
        is [0, 0]; it adds its own busbw for size 2, say 45, and is worth 0 + 0 + 45.
        """
        if self._every_busbw and self.states == 1 << len(self._radices):
            self._busbw_by_state.update(enumerate(self._every_busbw()))
        busbw = [self._busbw_by_state[state] for state in range(self.states)]
        sizes = [0]
        for radix in self._radices:
            sizes = [size + more for more in range(radix) for size in sizes]
        return _ValueTable(*best_by_size(busbw, sizes, self._strides, self._radices))

    def _lowest(self, digits: Sequence[int]) -> int:
        """Return the lowest set with so many members of each class."""
        return sum(
            1 << gpu for members, digit in zip(self._members, digits, strict=True) for gpu in members[:digit]
        )


def _floats(column: object, length: int) -> list[float]:
    if not isinstance(column, list) or len(column) != length or {*map(type, column)} != {float}:
        raise ValueError("the table is incomplete")
    return column


def byte_tables(numbers: Sequence[int]) -> list[list[int]]:
    """Return, for each eight positions, the sum of *numbers* of every combination of them.

    >>> [table[:4] for table in byte_tables([1, 10])]
    [[0, 1, 10, 11]]
    """
    tables = []
    for start in range(0, len(numbers), 8):
        sums = [0]
        for number in numbers[start : start + 8]:
            sums += [total + number for total in sums]
        tables.append(sums + [0] * (256 - len(sums)))
    return tables
