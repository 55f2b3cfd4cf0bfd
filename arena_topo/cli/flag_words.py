"""The words of a command line, as click's parser will read them: which is a flag, and which is a flag's value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click


@dataclass(frozen=True, slots=True)
class FlagWord:
    """A flag that has its value in the next word, whether there is one or not.

    ``index`` is the flag's own place among the words. ``-fn ml`` is the flag ``-n``, at the index of ``-fn``.
    """

    name: str
    index: int


def flags_before_values(options: Sequence[click.Option], words: Sequence[str]) -> Iterator[FlagWord]:
    """Yield the flags of *words* whose value is the next word; what follows ``--`` has no flags.

    For ``-n ml --env=A=b --image i c`` these are ``-n`` and ``--image``.
    """
    with_value = {name for option in options if not option.is_flag for name in option.opts}
    index = 0
    while index < len(words) and words[index] != "--":
        name = _flag_at_end(words[index], with_value)
        if name:
            yield FlagWord(name, index)
        # A value is never looked at, whatever it looks like: click takes it as it is.
        index += 2 if name else 1


def _flag_at_end(word: str, with_value: set[str]) -> str:
    """Return the flag at the end of *word* that takes the next word, or nothing."""
    if word.startswith("--"):
        return word if word in with_value else ""
    if not word.startswith("-"):
        return ""
    # -fn ml: switches may stand before a flag with a value, and the rest of the word is its value where there is one.
    for place, letter in enumerate(word[1:], start=1):
        if f"-{letter}" in with_value:
            return f"-{letter}" if place == len(word) - 1 else ""
    return ""


def check_values(options: Sequence[click.Option], words: Sequence[str]) -> None:
    """Raise click's usage error where a flag would take another flag for its value.

    ``--queue --workers=2`` is a queue without a name, and not one that is called ``--workers=2``.
    """
    for flag in flags_before_values(options, words):
        value = words[flag.index + 1] if flag.index + 1 < len(words) else ""
        if value.startswith("--"):
            raise click.UsageError(
                f"{flag.name} takes a value, and the next word is {value!r}.\n"
                f"A value that begins with -- is written after an equals sign: {_long(options, flag.name)}=VALUE"
            )


def _long(options: Sequence[click.Option], name: str) -> str:
    """Return the long form of the flag *name*."""
    names = next(option.opts for option in options if name in option.opts)
    return next((long for long in names if long.startswith("--")), name)
