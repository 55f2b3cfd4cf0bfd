"""What a set of free GPUs is worth: the sum, over k, of the best bus bandwidth that k GPUs of it can have.

GPUs that may be exchanged without changing a link (twins) are counted and not told apart: a set is then a *state*,
the number of members of each class, and 65,536 sets of a 16-GPU box with two GPUs under each switch are 6,561.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from arena_topo.planner.gpus.canonical import Matrix, twins
from arena_topo.planner.gpus.packing import cache

MOST_STATES = 70_000
"""Machines with more states than this are not valued exactly."""
_QUICK = 1_000


class Quality:
    """Values the sets of GPUs of one machine by their masks; each state's busbw is asked for once."""

    def __init__(self, matrix: Matrix, busbw: Callable[[int], float], name: str) -> None:
        """Take the link *matrix*, equal numbers for equal links, and the *busbw* of a mask.

        *name* stands for both: large tables are kept under it.
        """
        classes = twins(matrix)
        names = sorted(set(classes))
        self._members = [[at for at, each in enumerate(classes) if each == name] for name in names]
        radices = [len(members) + 1 for members in self._members]
        *self._strides, self.states = accumulate([1, *radices], mul)
        self._radices = radices
        stride_of = dict(zip(names, self._strides, strict=True))
        self._bytes = _byte_tables([stride_of[each] for each in classes])
        self._busbw = busbw
        self._name = f"worth-{name}"
        self._values: dict[int, float] = {}
        self._worths: list[float] = []
        self._best: list[float] = []

    def state(self, mask: int) -> int:
        """Return the state of the set *mask*."""
        if len(self._bytes) == 1:
            return self._bytes[0][mask]
        total = 0
        for table in self._bytes:
            total += table[mask & 255]
            mask >>= 8
        return total

    def busbw(self, mask: int) -> float:
        """Return the busbw of the set *mask*."""
        return self._value(self.state(mask), mask)

    def worth(self, mask: int) -> float:
        """Return the sum over k of the best busbw of k GPUs among *mask*."""
        if not self._worths:
            self._weigh()
        return self._worths[self.state(mask)]

    def best(self, size: int) -> float:
        """Return the best busbw that *size* GPUs can have on the empty machine."""
        if not self._worths:
            self._weigh()
        return self._best[size]

    def _value(self, state: int, mask: int) -> float:
        value = self._values.get(state)
        if value is None:
            value = self._values[state] = self._busbw(mask)
        return value

    def _weigh(self) -> None:
        if self.states <= _QUICK:
            self._weigh_all()
        elif cache.load(self._name, self._take) is None:
            self._weigh_all()
            values = [self._values[state] for state in range(self.states)]
            cache.store(self._name, {"values": values, "worths": self._worths, "best": self._best})

    def _take(self, table: Mapping[str, Any]) -> bool:
        """Take a kept table; raises ``ValueError`` when it is not whole."""
        size = sum(map(len, self._members))
        values = _floats(table.get("values"), self.states)
        worths, best = _floats(table.get("worths"), self.states), _floats(table.get("best"), size + 1)
        self._values, self._worths, self._best = dict(enumerate(values)), worths, best
        return True

    def _weigh_all(self) -> None:
        """Find the worth of every state, from the best busbw by size of the states with one GPU less."""
        size = sum(map(len, self._members))
        none = [0.0] * (size + 1)
        best: list[list[float]] = [none]
        worths = [0.0]
        self._values[0] = 0.0
        digits = [0] * len(self._radices)
        for state in range(1, self.states):
            _count_up(digits, self._radices)
            below = [
                best[state - stride] for digit, stride in zip(digits, self._strides, strict=True) if digit
            ]
            row = list(map(max, *below)) if len(below) > 1 else below[0].copy()
            row[sum(digits)] = self._value(state, self._lowest(digits))
            best.append(row)
            worths.append(round(sum(row), 3))
        self._worths, self._best = worths, best[-1]

    def _lowest(self, digits: Sequence[int]) -> int:
        """Return the lowest set with so many members of each class."""
        return sum(
            1 << member
            for members, digit in zip(self._members, digits, strict=True)
            for member in members[:digit]
        )


def _floats(column: object, length: int) -> list[float]:
    if not isinstance(column, list) or len(column) != length or {*map(type, column)} != {float}:
        raise ValueError("the table is not whole")
    return column


def _count_up(digits: list[int], radices: Sequence[int]) -> None:
    """Add one to a number in mixed radix, its lowest digit first."""
    for at, radix in enumerate(radices):
        if digits[at] + 1 < radix:
            digits[at] += 1
            return
        digits[at] = 0


def _byte_tables(strides: Sequence[int]) -> list[list[int]]:
    """Return, for each eight positions, the sum of strides of every combination of them."""
    tables = []
    for start in range(0, len(strides), 8):
        sums = [0]
        for stride in strides[start : start + 8]:
            sums += [each + stride for each in sums]
        tables.append(sums + [0] * (256 - len(sums)))
    return tables
