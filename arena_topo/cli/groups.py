"""Groups of commands. The root imports a command only to run it; the groups below it are imported whole.

The root is what every start pays for, so this module imports nothing but click and the way commands are
declared. A name that no group has may be one that is refused: ``arena_topo.cli.refused`` says what to use
instead.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import click

from arena_topo.cli.declare import CONNECTION, PageContext


class CommandGroup(click.Group):
    """A group of commands in the order in which they were added, some of which have aliases.

    ``of_file`` is the command that takes -f where no command is named.

    kubectl's flags may stand before the command, as Arena's may: they are passed on to it.
    """

    context_class = PageContext

    def __init__(
        self, *, aliases: Mapping[str, Sequence[str]] | None = None, of_file: str = "", **attributes: Any
    ) -> None:
        super().__init__(**attributes)
        self._of_file = of_file
        self._aliases = aliases or {}
        self._by_alias = {alias: name for name, others in self._aliases.items() for alias in others}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands, in order and without aliases."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name or an alias."""
        return super().get_command(ctx, self.canonical(cmd_name)) or _refused(ctx, cmd_name)

    def spellings(self, ctx: click.Context) -> list[str]:
        """Return the names and the aliases of all commands."""
        return [*self.list_commands(ctx), *self._by_alias]

    def canonical(self, name: str) -> str:
        """Return the command's own name for one of its aliases."""
        return self._by_alias.get(name, name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move kubectl's flags behind the command before the rest is parsed."""
        # Arena's programs take "help COMMAND" for "COMMAND --help".
        if args[:1] == ["help"] and "help" not in self.list_commands(ctx):
            args = [*args[1:], "--help"]
        # Of the names of commands that are written like flags, click would say that there is no such flag.
        args = [self.canonical(args[0]), *args[1:]] if args else args
        # A lone flag is --help or --version, which start faster without kubectl's flags.
        if len(args) > 1 and args[0].startswith("-"):
            from arena_topo.cli.options.common import hoist

            args = hoist(args)
        # As with kubectl, a file says by itself what is in it.
        if self._of_file and args and args[0].startswith("-") and any(map(_names_file, args)):
            args = [self._of_file, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the command by its own name, also where an alias was typed."""
        _, command, rest = super().resolve_command(ctx, args)
        return (command.name if command else None), command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their aliases, under their headings."""
        for section, rows in self.sections(ctx).items():
            with formatter.section(section):
                formatter.write_dl(
                    [(", ".join((name, *self._aliases.get(name, ()))), text) for name, text in rows]
                )

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return for each heading the names of its commands and what help says of them."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return {
            "Commands": [
                (name, command.get_short_help_str(limit=200)) for name, command in commands if command
            ]
        }


def _names_file(arg: str) -> bool:
    return arg.startswith("-f") or arg.partition("=")[0] == "--file"


def _refused(ctx: click.Context, name: str) -> click.Command | None:
    """Return a command that refuses *name* and all that follows; None for a name that nobody knows."""
    from arena_topo.cli.refused import refusal

    own = len(ctx.find_root().command_path.split())
    error = refusal(" ".join([*ctx.command_path.split()[own:], name]))
    if error is None:
        return None

    def refuse(**_: Any) -> None:
        raise error

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        help=error.message,
        add_help_option=False,
    )


class Entry(NamedTuple):
    """A command: where it is (``module:attribute``), what help says of it, and under which heading."""

    target: str
    help: str
    section: str
    aliases: tuple[str, ...] = ()


class LazyGroup(CommandGroup):
    """The root group, which knows its commands by name and imports them one at a time.

    Its table holds all that the help page says of them.
    """

    def __init__(self, *, entries: Mapping[str, Entry], **attributes: Any) -> None:
        super().__init__(aliases={name: entry.aliases for name, entry in entries.items()}, **attributes)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands in the order of the table."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        entry = self.entries.get(self.canonical(cmd_name))
        if entry is None:
            return _refused(ctx, cmd_name)
        module, _, attribute = entry.target.partition(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, and the flags that all of them have."""
        from arena_topo.cli.options.common import connection_options

        super().format_options(ctx, formatter)
        rows = [row for option in connection_options() if (row := option.get_help_record(ctx))]
        with formatter.section(f"{CONNECTION}, before or after a command"):
            formatter.write_dl(rows)

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the commands under their headings, without importing any."""
        del ctx
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            sections.setdefault(entry.section, []).append((name, entry.help))
        return sections
