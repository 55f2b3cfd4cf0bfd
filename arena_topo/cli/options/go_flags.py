"""Flags as Go programs take them: ``--gang``, ``--gang=true`` and ``--gang=false``, never ``--gang true``."""

from typing import Any

import click

from arena_topo.cli.command import FlagCommand, option

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


class GoFlags(FlagCommand):
    """A command whose flags may stand alone where their type says by ``bare`` what they mean then.

    A type that has ``may_be`` takes the next word for its value all the same where that says so.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give flags that stand alone their value, so that no argument is taken for it."""
        # click would otherwise take the next word for the value: "sh" in "--gang sh".
        types = {
            name: param.type for param in self.params if hasattr(param.type, "bare") for name in param.opts
        }
        words = list(args)
        for index, word in enumerate(args):
            if word in types and not _takes_next(types[word], args[index + 1 : index + 2]):
                words[index] = f"{word}={getattr(types[word], 'bare')}"  # noqa: B009  # click's type has none
        return super().parse_args(ctx, words)


def _takes_next(kind: click.ParamType[Any], next_word: list[str]) -> bool:
    may_be = getattr(kind, "may_be", None)
    return bool(may_be and next_word and may_be(next_word[0]))
