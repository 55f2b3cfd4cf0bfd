"""What a misspelt command or flag was meant to be, where that is clear; an unlike word is worse than none.

Two words are like each other when one edit makes one of the other, two edits for words of six letters or more; an edit inserts,
removes or replaces a letter, or swaps two neighbours. ``--wokers`` is like ``--workers``, and ``frob`` is like nothing.
"""

from collections.abc import Iterable

import click

_SHORTEST_PREFIX = 4
"""Letters from which a beginning stands for a whole word."""


def suggestion(error: click.UsageError) -> str:
    """Return the hint for *error*, empty where there is nothing to suggest."""
    if isinstance(error, click.exceptions.NoSuchCommand) and error.ctx:
        like = similar(error.command_name, _commands(error.ctx))
    elif isinstance(error, click.NoSuchOption) and error.ctx:
        like = similar(error.option_name, _flags(error.ctx))
    else:
        return ""
    return f"did you mean {' or '.join(like)}?" if like else ""


def similar(word: str, words: Iterable[str]) -> list[str]:
    """Return those of *words* that are most like *word*: the ones that take the fewest edits, else the ones it begins."""
    bare = word.lstrip("-")
    most = 2 if len(bare) >= 6 else 1
    # A single letter is one edit away from every other.
    candidates = [other for other in words if len(other.lstrip("-")) > 1] if len(bare) > 1 else []
    distances = {other: _edits(bare, other.lstrip("-"), most) for other in candidates}
    nearest = min(distances.values(), default=most + 1)
    if nearest <= most:
        return sorted(other for other, distance in distances.items() if distance == nearest)
    begun = [
        other for other in candidates if len(bare) >= _SHORTEST_PREFIX and other.lstrip("-").startswith(bare)
    ]
    return begun if len(begun) == 1 else []


def _edits(one: str, other: str, most: int) -> int:
    """Return the number of edits from *one* to *other*, or more than *most*."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one):
        last, before, row = before, row, [index + 1]
        for place, wanted in enumerate(other):
            edits = min(before[place + 1] + 1, row[place] + 1, before[place] + (letter != wanted))
            is_swapped = index and place and letter == other[place - 1] and one[index - 1] == wanted
            row.append(min(edits, last[place - 1] + 1) if is_swapped else edits)
    return row[-1]


def _commands(ctx: click.Context) -> list[str]:
    from arena_topo.cli.groups import CommandGroup

    group = ctx.command
    return group.spellings(ctx) if isinstance(group, CommandGroup) else []


def _flags(ctx: click.Context) -> list[str]:
    hidden = [param for param in ctx.command.params if isinstance(param, click.Option) and param.hidden]
    return [name for param in ctx.command.get_params(ctx) if param not in hidden for name in param.opts]
