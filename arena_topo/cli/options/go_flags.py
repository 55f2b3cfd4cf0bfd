"""Flags as Go programs take them: ``--gang``, ``--gang=true`` and ``--gang=false``, never ``--gang true``."""

from typing import Any

import click

from arena_topo.cli.command import option
from arena_topo.cli.flag_words import FALSE, TRUE


class GoBool(click.ParamType[bool]):
    """A bool in the spellings of Go's ``strconv.ParseBool``."""

    name = "true|false"
    bare = "true"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """Return the bool."""
        if isinstance(value, bool):
            return value
        if value in TRUE:
            return True
        if value not in FALSE:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return False


def go_flag(*names: str, help: str, default: bool = False) -> bool:
    """Return a flag that takes true or false as Go's flags do."""
    return option(*names, type=GoBool(), default=default, metavar="[true|false]", help=help)
