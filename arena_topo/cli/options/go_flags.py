"""Flags as Go programs take them: ``--gang``, ``--gang=true`` and ``--gang=false``, never ``--gang true``."""

from typing import Any

import click

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


class GoBool(click.ParamType[bool]):
    """A bool in the spellings of Go's ``strconv.ParseBool``."""

    name = "true|false"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """Return the bool."""
        if isinstance(value, bool):
            return value
        if value in _TRUE:
            return True
        if value not in _FALSE:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return False


class GoFlags(click.Command):
    """A command whose *go_flags* may stand alone; *bare* is what each then means, ``true`` unless told."""

    def __init__(
        self, *args: Any, go_flags: tuple[str, ...] = (), bare: dict[str, str] | None = None, **rest: Any
    ) -> None:
        super().__init__(*args, **rest)
        self._bare = {**dict.fromkeys(go_flags, "true"), **(bare or {})}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give flags that stand alone their value, so that no argument is taken for it."""
        return super().parse_args(
            ctx, [f"{arg}={self._bare[arg]}" if arg in self._bare else arg for arg in args]
        )
