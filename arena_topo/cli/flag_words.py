"""The words of a command line, as click's parser will read them: which is a flag, and which is a flag's value.

Arena's and kubectl's flags are Go's: a flag that is true or false may stand alone or have its value after an equals
sign, never in the next word. click knows flags that stand alone, and flags that always have a value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""The spellings of Go's ``strconv.ParseBool``."""


@dataclass(frozen=True, slots=True)
class FlagWord:
    """A flag that has its value in the next word, whether there is one or not.

    ``index`` is the flag's own place among the words. ``-fn ml`` is the flag ``-n``, at the index of ``-fn``.
    """

    name: str
    index: int


@dataclass(frozen=True, slots=True)
class ClickWords:
    """The words as click takes them, and the names of flags that were typed as false."""

    words: list[str]
    switched_off: frozenset[str]


def as_click_takes(options: Sequence[click.Option], words: Sequence[str]) -> ClickWords:
    """Return *words* with Go's flags as click takes them.

    A flag whose type says by ``bare`` what it means alone gets that value, unless the type says by ``may_be`` that the
    next word is one. For ``--gang sh --follow=true -f`` with the flag ``--gang`` of such a type these are
    ``--gang=true sh --follow --follow``: a short flag that stands alone gets its long form.
    """
    bare = {name: option.type for option in options if hasattr(option.type, "bare") for name in option.opts}
    switches = {name for option in options if option.is_flag for name in option.opts}
    with_value = _with_value(options)
    # click looks for long flags that are like a short one before it takes it for what it is.
    longs = {name: _long(options, name) for option in options for name in option.opts if len(name) == 2}
    result: list[str] = []
    off: set[str] = set()
    left = list(words)
    while left and left[0] != "--":
        word = left.pop(0)
        word = longs.get(word, word)
        name, equals, value = word.partition("=")
        if word in bare and not _takes_next(bare[word], left[:1]):
            result.append(f"{word}={getattr(bare[word], 'bare')}")  # noqa: B009  # click's own type has none
        elif _flag_at_end(word, with_value):
            # A value is passed on as it is, whatever it looks like.
            result += [word, *left[:1]]
            del left[:1]
        elif equals and name in switches and value in FALSE:
            off.add(name)
        elif equals and name in switches and value in TRUE:
            result.append(name)
        else:
            result.append(word)
    return ClickWords(result + left, frozenset(off))


def _takes_next(kind: Any, next_word: Sequence[str]) -> bool:
    may_be = getattr(kind, "may_be", None)
    return bool(may_be and next_word and may_be(next_word[0]))


def flags_before_values(options: Sequence[click.Option], words: Sequence[str]) -> Iterator[FlagWord]:
    """Yield the flags of *words* whose value is the next word; what follows ``--`` has no flags.

    For ``-n ml --env=A=b --image i c`` these are ``-n`` and ``--image``.
    """
    with_value = _with_value(options)
    index = 0
    while index < len(words) and words[index] != "--":
        name = _flag_at_end(words[index], with_value)
        if name:
            yield FlagWord(name, index)
        # A value is never looked at, whatever it looks like: click takes it as it is.
        index += 2 if name else 1


def _with_value(options: Sequence[click.Option]) -> set[str]:
    return {name for option in options if not option.is_flag for name in option.opts}


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
