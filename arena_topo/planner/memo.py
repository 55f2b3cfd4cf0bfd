"""The planner's only cache: the results of a pure function, typed and bounded."""

from collections.abc import Callable, Hashable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Memo(dict[Key, Result]):
    """The results of a pure function of one argument: ``memo[key]`` computes a result once and keeps it.

    A full memo forgets everything and starts again. That costs time and changes no result, so an answer never
    depends on what is kept. Reading a kept result is a plain lookup, cheap enough for the innermost loops.

    >>> squares = Memo(lambda number: number * number, limit=2)
    >>> squares[2], squares[3], squares[4]
    (4, 9, 16)
    >>> dict(squares)
    {4: 16}
    """

    __slots__ = ("_compute", "_limit")

    def __init__(self, compute: Callable[[Key], Result], *, limit: int) -> None:
        """Take the function and the largest number of results to keep."""
        super().__init__()
        self._compute = compute
        self._limit = limit

    def __missing__(self, key: Key) -> Result:
        """Compute the result for *key* and keep it."""
        result = self._compute(key)
        if len(self) >= self._limit:
            self.clear()
        self[key] = result
        return result
