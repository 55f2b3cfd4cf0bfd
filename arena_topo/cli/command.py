"""Commands of one frozen value of flags (see ``arena_topo.cli.flags``), and groups of commands."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from arena_topo.cli.flags import parameters, value_of

Flags = TypeVar("Flags")
Run = Callable[[Flags], int | None]


def command(
    name: str, flags: type[Flags], *, cls: type[click.Command] = click.Command, **attributes: Any
) -> Callable[[Run[Flags]], click.Command]:
    """Turn a function of one *flags* value into the command *name*; its docstring is the help text.

    The function returns an exit code (see ``ExitCode``), or None for success.
    """

    def declared(run: Run[Flags]) -> click.Command:
        def callback(**values: Any) -> int | None:
            return run(value_of(flags, values))

        return cls(name, callback=callback, params=list(parameters(flags)), help=run.__doc__, **attributes)

    return declared


class Group(click.Group):
    """A group of commands in the order in which they were added, some of which have aliases.

    kubectl's flags may stand before the command, as Arena's may: they are passed on to it.
    """

    def __init__(self, *, aliases: Mapping[str, Sequence[str]] | None = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._aliases = aliases or {}
        self._by_alias = {alias: name for name, others in self._aliases.items() for alias in others}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands, in order and without aliases."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name or an alias."""
        return super().get_command(ctx, self.canonical(cmd_name))

    def canonical(self, name: str) -> str:
        """Return the command's own name for one of its aliases."""
        return self._by_alias.get(name, name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move kubectl's flags behind the command before the rest is parsed."""
        # A lone flag is --help or --version, which start faster without kubectl's flags.
        if len(args) > 1 and args[0].startswith("-"):
            from arena_topo.cli.options.kube import hoist

            args = hoist(args)
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
        return {"Commands": [(name, each.get_short_help_str(limit=200)) for name, each in commands if each]}
