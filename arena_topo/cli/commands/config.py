"""``arena-topo config``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click
from click.core import ParameterSource

from arena_topo.cli.declare import argument, command, output_format, read_setting
from arena_topo.cli.defaults import (
    VARIABLE,
    Defaults,
    Setting,
    arena_config_path,
    key_of,
    profile_path,
    read_defaults,
    unknown_flag,
    variable_of,
)
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.terminal import columns, print_table, say, warn
from arena_topo.errors import UsageError

config = CommandGroup(name="config", help="Show default flag values and where they come from.")

_SECRETS = frozenset({"token"})
_RESERVED = frozenset({VARIABLE, "ARENA_TOPO_DEBUG", "ARENA_TOPO_TEMPLATES"})
"""Variables of ours that are no flag's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigViewFlags:
    """What ``config view`` takes."""

    words: tuple[str, ...] = argument(metavar="[COMMAND]", nargs=-1)
    output: str = output_format("wide", "json", "yaml")
    kube: KubeFlags


@dataclass(frozen=True, slots=True)
class Row:
    """A flag with its value, where that comes from, and which commands have the flag."""

    flag: str
    value: str
    source: str
    commands: str


_Commands = Mapping[str, Sequence[click.Option]]


@command("view", ConfigViewFlags)
def view(flags: ConfigViewFlags) -> None:
    """Show which flags are set, and where: on this command line, by a variable, or in a file.

    What is typed comes first, then the variable ARENA_TOPO_FLAG, then the profile, then Arena's
    configuration, then the flag's own default. With a COMMAND all of its flags are shown, else every flag
    that is set. A flag or a command that does not exist, and a value that its flag does not take, are errors.

    \b
      arena-topo config view
      arena-topo config view submit mpi
      ARENA_TOPO_NAMESPACE=ml arena-topo config view -o json
    """
    context = click.get_current_context()
    commands = dict(_commands(context.find_root()))
    defaults = read_defaults()
    _check(defaults, commands, context)
    wanted = " ".join(flags.words)
    rows = list(_typed(context, wanted))
    if wanted:
        if wanted not in commands:
            raise UsageError(f"there is no command {wanted!r}", hint="arena-topo --help lists the commands")
        rows += _rows_of_command(defaults, wanted, commands[wanted])
    else:
        rows += _rows(defaults, commands)
    counting: dict[tuple[str, str], Row] = {}
    for row in rows:
        # What comes first in the order is what counts.
        counting.setdefault((row.flag, row.commands), row)
    _print(list(counting.values()), flags.output)
    if not counting:
        say(f"no flag is set: {profile_path()} may have lines such as namespace: ml")


config.add_command(view)


def _commands(root: click.Context) -> Iterator[tuple[str, Sequence[click.Option]]]:
    """Yield every command that does something, with its flags."""

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, Sequence[click.Option]]]:
        if isinstance(command, click.Group):
            for name in command.list_commands(root):
                inner = command.get_command(root, name)
                if inner is not None:
                    yield from below(inner, (*words, name))
        else:
            yield " ".join(words), [param for param in command.params if isinstance(param, click.Option)]

    return below(root.command, ())


def _typed(context: click.Context, command: str) -> Iterator[Row]:
    for param in context.command.params:
        if (
            param.name == "output"
            or context.get_parameter_source(param.name or "") != ParameterSource.COMMANDLINE
        ):
            continue
        if isinstance(param, click.Option):
            value = context.params[str(param.name)]
            values = value if isinstance(value, tuple) else (value,)
            yield _row(param, Setting(tuple(map(str, values)), "flag"), command)


def _rows_of_command(defaults: Defaults, name: str, options: Sequence[click.Option]) -> Iterator[Row]:
    for option in options:
        setting = defaults.find(name, option.opts, multiple=option.multiple)
        if setting is None:
            default = option.default if isinstance(option.default, str | int | float) else ""
            written = str(default).lower() if isinstance(default, bool) else str(default)
            setting = Setting((written,), "default")
        yield _row(option, setting, name)


def _rows(defaults: Defaults, commands: _Commands) -> Iterator[Row]:
    """Yield every flag that is set, the strongest first: a variable, then the profile, then Arena's file."""
    by_key = {key_of(option.opts): option for options in commands.values() for option in options}
    names = {name[2:]: option for option in by_key.values() for name in option.opts if name.startswith("--")}
    for option in by_key.values():
        if variable := defaults.variable(option.opts, multiple=option.multiple):
            yield _row(option, variable, "")
    for source in (defaults.profile, defaults.arena):
        for name, section in (*source.commands.items(), ("", source.common)):
            # Two keys of Arena's are no flags.
            yield from (_row(names[key], setting, name) for key, setting in section.items() if key in names)


def _row(option: click.Option, setting: Setting, commands: str) -> Row:
    key = key_of(option.opts)
    value = ",".join(setting.values)
    # Of a secret it is shown whether there is one.
    if value and key in _SECRETS:
        value = "***"
    return Row(f"--{key}", value, setting.origin, commands)


def _check(defaults: Defaults, commands: _Commands, context: click.Context) -> None:
    """Raise ``UsageError`` for the first thing that is set and cannot be meant."""
    everywhere = [(name, option) for name, options in commands.items() for option in options]
    variables = {variable_of(option.opts) for _, option in everywhere}
    for variable in sorted(defaults.env):
        if variable not in variables | _RESERVED and defaults.env[variable]:
            # No error: in a pod, Kubernetes sets such variables for a Service called arena-topo.
            warn(f"${variable} belongs to no flag and is ignored")
    keys = {name[2:] for _, option in everywhere for name in option.opts if name.startswith("--")}
    for key, setting in defaults.profile.common.items():
        if key not in keys:
            raise unknown_flag(
                key,
                setting,
                f"no command has a flag --{key}",
                "arena-topo COMMAND --help-all lists its flags",
                keys,
            )
    for name, section in defaults.profile.commands.items():
        if name not in commands:
            origin = next((setting.origin for setting in section.values()), str(profile_path()))
            raise UsageError(
                f"{origin}: there is no command {name!r}", hint="arena-topo --help lists the commands"
            )
        defaults.profile.check_section(name, [flag for option in commands[name] for flag in option.opts])
    for name, option in everywhere:
        if found := defaults.find(name, option.opts, multiple=option.multiple):
            read_setting(option, replace(found, origin=f"{found.origin}: {name}"), context)


def _print(rows: Sequence[Row], output: str) -> None:
    if output == "wide":
        from arena_topo.output.text import fitted

        table = [["FLAG", "VALUE", "FROM", "FOR"]]
        table += [[row.flag, row.value, row.source, row.commands or "every command"] for row in rows]
        print_table(
            fitted(table, columns(), spare=("FOR",), elide=("VALUE", "FROM")), more="-o json has them"
        )
        return
    from arena_topo.output.text import document

    arena = arena_config_path()
    files = {"profile": str(profile_path()), "arenaConfig": str(arena) if arena else ""}
    flags = [
        {"flag": row.flag, "value": row.value, "from": row.source, "command": row.commands} for row in rows
    ]
    click.echo(document({**files, "flags": flags}, output), nl=False)
