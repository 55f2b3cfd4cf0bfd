"""The root group, which imports a command only to run it: its table holds all that the help page says."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import click

from arena_topo.cli.command import Group


class Entry(NamedTuple):
    """A command: where it is (``module:attribute``), what help says of it, and under which heading."""

    target: str
    help: str
    section: str
    aliases: tuple[str, ...] = ()


class LazyGroup(Group):
    """A group that knows its commands by name and loads them one at a time."""

    def __init__(self, *, entries: Mapping[str, Entry], **attributes: Any) -> None:
        super().__init__(aliases={name: entry.aliases for name, entry in entries.items()}, **attributes)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's
        """Import and return a command."""
        entry = self.entries.get(self.canonical(cmd_name))
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the commands under their headings, without importing any."""
        del ctx
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        return sections
