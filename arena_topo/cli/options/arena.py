"""The flags that every command of Arena has, beside those that are kubectl's too."""

import os
from dataclasses import dataclass
from typing import ClassVar

from arena_topo.cli.command import option
from arena_topo.cli.flag_words import FALSE, TRUE
from arena_topo.cli.options.notations import Namespace, Notation
from arena_topo.cli.terminal import Level, show_from
from arena_topo.errors import UsageError

ARENA_NAMESPACE = "arena-system"


class LogLevel(Notation[Level]):
    """What is printed on stderr, by Arena's words: errors always are."""

    name = "text"
    empty_is_default = True

    def read(self, text: str, flag: str) -> Level:
        """Return the level, from which on messages are shown from now on."""
        words = {level.name.lower(): level for level in Level}
        if text not in words:
            raise UsageError(f"{flag}: {text!r} is not a level", hint=f"use one of {', '.join(words)}")
        level = words[text]
        show_from(level)
        if level is Level.DEBUG:
            # For faults of this program, the one place that prints more: cli/errors.py.
            os.environ["ARENA_TOPO_DEBUG"] = "1"
        return level


class Refused(Notation[bool]):
    """A switch of Arena's that is refused, unless it is switched off."""

    name = "true|false"
    bare = "true"

    def __init__(self, why: str, instead: str) -> None:
        self._why = why
        self._instead = instead

    def read(self, text: str, flag: str) -> bool:
        """Return False. Raises ``UsageError`` for true."""
        if text in FALSE:
            return False
        if text not in TRUE:
            raise UsageError(f"{flag}: {text!r} is neither true nor false")
        raise UsageError(f"{flag} is not supported: {self._why}", hint=self._instead)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaFlags:
    """Arena's own flags, which no help page lists: scripts have them, and nobody needs to learn them."""

    of_connection: ClassVar[bool] = True

    log_level: Level = option(
        "--loglevel",
        type=LogLevel(),
        default=Level.INFO,
        metavar="TEXT",
        hidden=True,
        help="What is printed on stderr: debug, info, warn or error.",
    )
    arena_namespace: str = option(
        "--arena-namespace",
        type=Namespace(),
        default=ARENA_NAMESPACE,
        metavar="TEXT",
        hidden=True,
        help="Namespace of Arena's own configuration.",
    )
    trace: bool = option(
        "--trace",
        type=Refused(
            "it traces Arena's Go program",
            "python3 -m cProfile -m arena_topo COMMAND shows where the time goes",
        ),
        default=False,
        hidden=True,
        help="Refused.",
    )
    pprof: bool = option(
        "--pprof",
        type=Refused(
            "it profiles Arena's Go program",
            "python3 -m cProfile -m arena_topo COMMAND shows where the time goes",
        ),
        default=False,
        hidden=True,
        help="Refused.",
    )
    helm_binary: bool = option(
        "--helm-binary",
        type=Refused(
            "arena-topo renders jobs by itself, without Helm", "leave it out, or --helm-binary=false"
        ),
        default=False,
        hidden=True,
        help="Refused.",
    )
