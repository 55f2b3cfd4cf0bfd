"""Groups of commands. The root imports a command only to run it; the groups below it are imported whole.

The root is what every start pays for, so this module imports nothing but click and the way commands are
declared. A name that no group has may be one that is refused: ``arena_topo.cli.refused`` says what to use
instead.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import click
from click.exceptions import NoSuchCommand

from arena_topo.cli.declare import CONNECTION, PageContext, help_all, shows_all, words_of


class CommandGroup(click.Group):
    """A group of commands in the order in which they were added, some of which have aliases.

    ``of_file`` returns the command that takes the words where they begin with flags and name a file by -f.

    kubectl's flags may stand before the command, as Arena's may: they are passed on to it.
    """

    context_class = PageContext

    def __init__(
        self,
        *,
        aliases: Mapping[str, Sequence[str]] | None = None,
        of_file: Callable[[Sequence[str]], str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(**attributes)
        self._of_file = of_file
        self._aliases = aliases or {}
        self._by_alias = {alias: name for name, others in self._aliases.items() for alias in others}

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with those that every command has."""
        return [*super().get_params(ctx), help_all()]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands, in order and without aliases."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name or an alias."""
        return super().get_command(ctx, self.canonical(cmd_name)) or _refused(ctx, cmd_name)

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
        # --help and --version start faster without kubectl's flags.
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help", "--help-all", "--version"):
            from arena_topo.cli.options.common import hoist

            args = hoist(args, checked=not ctx.resilient_parsing)
        # A file says by itself what is in it: a manifest as with kubectl, or flags of a kind of job.
        if self._of_file and args and args[0].startswith("-") and any(map(_names_file, args)):
            # An unfinished line is completed as far as it goes.
            args = ["manifest" if ctx.resilient_parsing else self._of_file(args), *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the command by its own name, also where an alias was typed."""
        try:
            _, command, rest = super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            # click looks for similar names among the commands that are imported.
            names = (*self.list_commands(ctx), *self._by_alias)
            raise NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None
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
    """Return a command that refuses *name* and all that follows; None for an unknown name."""
    from arena_topo.cli.refused import refusal

    error = refusal(f"{words_of(ctx)} {name}".lstrip())
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
    """A command: where it is (``module:attribute`` of ``commands/``), its help, and its heading.

    Without a heading it is only named, for most users never need it; ``--help-all`` shows its help as well.
    """

    target: str
    help: str
    section: str = ""
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
        return cast("click.Command", getattr(import_module(f"arena_topo.cli.commands.{module}"), attribute))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, and where nothing is to be left out the flags that all of them have."""
        if not shows_all(ctx):
            self.format_commands(ctx, formatter)
            others = ", ".join(name for name, entry in self.entries.items() if not entry.section)
            formatter.write_paragraph()
            formatter.write_text(f"Also {others}. What they do, and flags that all commands have: --help-all")
            return
        from arena_topo.cli.options.common import connection_options

        super().format_options(ctx, formatter)
        rows = [row for option in connection_options() if (row := option.get_help_record(ctx))]
        with formatter.section(f"{CONNECTION}, before or after a command"):
            formatter.write_dl(rows)

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the commands under their headings, without importing any."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in self.entries.items():
            if entry.section or shows_all(ctx):
                sections.setdefault(entry.section or "Other commands", []).append((name, entry.help))
        return sections
