"""Numbers as users write them: in plain digits, finite, and of a size that means something.

Python reads more than people mean: ``1_0``, ``nan``, ``inf``, digits of other scripts, and whole numbers of a million digits.
"""

import re
from typing import Any

import click

MOST = 1_000_000
"""The largest count that any flag takes; no cluster has as many nodes, GPUs or lines on a screen."""

_WHOLE = r"[+-]?[0-9]{1,18}"
_DECIMAL = r"[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})([eE][+-]?[0-9]{1,2})?"


class Whole(click.ParamType[int]):
    """A whole number between *least* and *most*."""

    name = "integer"

    def __init__(self, least: int | None = None, most: int = MOST) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; a default that is one stays as it is."""
        if isinstance(value, int):
            return value
        if not re.fullmatch(_WHOLE, value):
            self.fail(f"{value[:80]!r} is not a valid integer.", param, ctx)
        number = int(value)
        if number > self._most or (self._least is not None and number < self._least):
            low = "" if self._least is None else f"{self._least}<="
            self.fail(f"{number} is not in the range {low}x<={self._most}.", param, ctx)
        return number


class Decimal(click.ParamType[float]):
    """A decimal number, such as 0.5 or 1e3."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a default that is one stays as it is."""
        if isinstance(value, float):
            return value
        if not re.fullmatch(_DECIMAL, value):
            self.fail(f"{value[:80]!r} is not a valid float.", param, ctx)
        return float(value)
