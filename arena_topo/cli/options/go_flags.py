"""Flags as Go programs take them: ``--gang``, ``--gang=true`` and ``--gang=false``, never ``--gang true``."""

from typing import Any

import click

from arena_topo.cli.command import option

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


class GoBool(click.ParamType[bool]):
    """A bool in the spellings of Go's ``strconv.ParseBool``."""

    name = "true|false"
    bare = "true"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """Return the bool."""
        if isinstance(value, bool):
            return value
        if value in _TRUE:
            return True
        if value not in _FALSE:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return False


def go_flag(*names: str, help: str, default: bool = False) -> bool:
    """Return a flag that takes true or false as Go's flags do."""
    return option(*names, type=GoBool(), default=default, metavar="[true|false]", help=help)


class GoFlags(click.Command):
    """A command whose flags may stand alone where their type says by ``bare`` what they mean then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give flags that stand alone their value, so that no argument is taken for it."""
        # click would otherwise take the next word for the value: "sh" in "--gang sh".
        bare = {
            name: param.type.bare
            for param in self.params
            if hasattr(param.type, "bare")
            for name in param.opts
        }
        return super().parse_args(ctx, [f"{arg}={bare[arg]}" if arg in bare else arg for arg in args])
