"""Groups of commands that import a command only to run it: the table holds what help needs to say."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import click

from arena_topo.cli.options.kube_hoisting import hoist


class Entry(NamedTuple):
    """A command: where it is (``module:attribute``), what help says of it, and under which heading."""

    target: str
    help: str
    section: str = "Commands"
    aliases: tuple[str, ...] = ()


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads them one at a time.

    kubectl's flags may stand before the command, as Arena's may: they are handed on to it.
    """

    def __init__(self, *, entries: Mapping[str, Entry], **attributes: Any) -> None:
        super().__init__(**attributes)
        self._entries = entries
        self._aliases = {alias: name for name, entry in entries.items() for alias in entry.aliases}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the commands in the order of the table."""
        return list(self._entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's
        """Import and return a command."""
        name = self._aliases.get(cmd_name, cmd_name)
        if name not in self._entries:
            return None
        module, _, attribute = self._entries[name].target.partition(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move kubectl's flags behind the command before the rest is parsed."""
        return super().parse_args(ctx, hoist(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the command by its own name, also where an alias was typed."""
        _, command, rest = super().resolve_command(ctx, args)
        return (command.name if command else None), command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, without importing any."""
        del ctx
        for section in dict.fromkeys(entry.section for entry in self._entries.values()):
            rows = [
                (", ".join((name, *entry.aliases)), entry.help)
                for name, entry in self._entries.items()
                if entry.section == section
            ]
            with formatter.section(section):
                formatter.write_dl(rows)

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The table."""
        return self._entries


def names(group: LazyGroup) -> Sequence[str]:
    """Return every name that *group* answers to, aliases included."""
    return [name for key, entry in group.entries.items() for name in (key, *entry.aliases)]
