"""How a command is declared: its flags are the fields of one frozen value, which its function receives.

::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class GetFlags:
        name: str = argument(metavar="JOB")
        output: str | None = option("-o", "--output", type=click.Choice(["wide", "json"]), help="Output format.")
        kube: KubeFlags

    @command("get", GetFlags)
    def get(flags: GetFlags) -> None: ...

A field whose type is such a class itself (``KubeFlags``, ``JobFlags``) brings all flags of that class; a command names in
``parts`` the fields for which it has a subclass, as ``submit`` has one for each kind of job. A field without
a declaration is a value that the command's own click class left in the context's ``params``. The functions below
return fields; their annotations say what click will put there, so that mypy compares it with the field's type.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast, overload

import click
from click.core import ParameterSource, augment_usage_errors

from arena_topo.cli.flag_words import as_click_takes, check_values
from arena_topo.cli.help_page import PageContext, write_connection_note, write_flags
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from arena_topo.cli.defaults.find import Defaults
    from arena_topo.cli.defaults.setting import Setting

Value = TypeVar("Value")
Flags = TypeVar("Flags")

Run = Callable[[Flags], int | None]

_PARAMETER = "click parameter"
_NO_PARTS: Mapping[str, type] = MappingProxyType({})
_DEFAULTS, _ORIGIN, _OFF = "arena_topo.defaults", "arena_topo.origin", "arena_topo.off"
"""Keys of a context's ``meta``: what the user has set, where the value at hand comes from, flags typed as false."""


class FlagOption(click.Option):
    """A flag that may be set for all runs, by a variable or a file: ``arena_topo.cli.defaults``.

    ``is_of_connection``: its class of flags has ``of_connection``, and help lists it once for all commands.
    """

    is_of_connection = False

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """Return what may be typed for the flag."""
        return _completed(self, ctx, incomplete, super().shell_complete)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value of the command line, else the one that the user has set, else the default."""
        value, source = super().consume_value(ctx, opts)
        if source is not ParameterSource.COMMANDLINE and ctx.meta.get(_OFF, frozenset()) & set(self.opts):
            return False, ParameterSource.COMMANDLINE
        if source is not ParameterSource.DEFAULT:
            return value, source
        setting = _setting_of(self, ctx)
        if setting is None:
            return value, source
        ctx.meta[_ORIGIN] = setting.origin
        if not self.multiple and len(setting.values) != 1:
            raise UsageError(
                f"{setting.origin}: {self.opts[0]} takes one value, and {len(setting.values)} are given"
            )
        return (setting.values if self.multiple else setting.values[0]), ParameterSource.DEFAULT_MAP

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as the flag reads it; an error says where a value comes from that was not typed."""
        # click processes each value right after it is consumed.
        origin = ctx.meta.pop(_ORIGIN, "")
        try:
            return super().process_value(ctx, value)
        except click.UsageError as error:
            if not origin:
                raise
            raise UsageError(f"{origin}: {error.format_message()}") from error
        except UsageError as error:
            if not origin:
                raise
            raise UsageError(f"{origin}: {error.message}", hint=error.hint) from error


class FlagArgument(click.Argument):
    """A positional argument whose values a shell completes."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """Return what may be typed for the argument."""
        return _completed(self, ctx, incomplete, super().shell_complete)


def _completed(
    param: click.Parameter,
    ctx: click.Context,
    incomplete: str,
    by_type: Callable[[click.Context, str], list["CompletionItem"]],
) -> list["CompletionItem"]:
    from arena_topo.cli.completion import values

    found = values(param, ctx, incomplete)
    return by_type(ctx, incomplete) if found is None else found


class FlagCommand(click.Command):
    """A command whose flags are Go's, of which none takes another one for its value."""

    context_class = PageContext

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own flags; those of the connection are the same for all commands."""
        params = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [param for param in params if not (isinstance(param, FlagOption) and param.is_of_connection)]
        rows = ((param.opts, param.get_help_record(ctx)) for param in own)
        write_flags(((names, row) for names, row in rows if row), formatter)
        if len(own) < len(params):
            write_connection_note(formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look at the words before click does, who takes any word for a value."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        words = as_click_takes(options, args)
        ctx.meta[_OFF] = words.switched_off
        # An unfinished line is completed as far as it goes.
        if ctx.resilient_parsing:
            return super().parse_args(ctx, words.words)
        with augment_usage_errors(ctx):
            check_values(options, words.words)
        rest = super().parse_args(ctx, words.words)
        # After --help, which prints its page whatever a profile says.
        _defaults(ctx).profile.check_section(
            command_name(ctx), [name for one in options for name in one.opts]
        )
        return rest


def command_name(ctx: click.Context) -> str:
    """Return the words of the command of *ctx* without the program's own, such as ``submit mpi``."""
    return " ".join(ctx.command_path.split()[len(ctx.find_root().command_path.split()) :])


def _setting_of(option: click.Option, ctx: click.Context) -> "Setting | None":
    # A profile that cannot be used is reported when a command runs, not while its line is completed.
    with suppress(*((UsageError,) if ctx.resilient_parsing else ())):
        return _defaults(ctx).find(command_name(ctx), option.opts, multiple=option.multiple)
    return None


def _defaults(ctx: click.Context) -> "Defaults":
    """Return what the user has set, read once for each run."""
    from arena_topo.cli.defaults.find import read_defaults

    if _DEFAULTS not in ctx.meta:
        ctx.meta[_DEFAULTS] = read_defaults()
    defaults: Defaults = ctx.meta[_DEFAULTS]
    return defaults


def command(
    name: str,
    flags: type[Flags],
    *,
    cls: type[FlagCommand] = FlagCommand,
    parts: Mapping[str, type] = _NO_PARTS,
    **attributes: Any,
) -> Callable[[Run[Flags]], click.Command]:
    """Turn a function of one *flags* value into the command *name*; its docstring is the help text, where none is given.

    The function returns an exit code (see ``ExitCode``), or None for success.
    """

    def declared(run: Run[Flags]) -> click.Command:
        def callback(**values: Any) -> int | None:
            return run(_value(flags, values, parts))

        params = _without_shared_names(parameters(flags, parts))
        return cls(name, callback=callback, params=params, **{"help": run.__doc__, **attributes})

    return declared


def _without_shared_names(params: Iterable[click.Parameter]) -> list[click.Parameter]:
    """Return *params*, of which the first has a name that two have: Arena's ``prune -s`` is not kubectl's ``-s``."""
    taken: set[str] = set()
    distinct = []
    for param in params:
        if isinstance(param, click.Option):
            param.opts = [name for name in param.opts if name not in taken]
            taken.update(param.opts)
        distinct.append(param)
    return distinct


def declared(parameter: Callable[[str], click.Parameter]) -> Any:
    """Return a field of flags; *parameter* builds its click parameter from the field's name."""
    return field(metadata={_PARAMETER: parameter})


def argument(**attributes: Any) -> Any:
    """Return a positional argument."""
    return declared(lambda name: FlagArgument([name], **attributes))


@overload
def option(
    *names: str, type: click.ParamType[Value], help: str, default: Value, **attributes: Any
) -> Value: ...
@overload
def option(*names: str, type: click.ParamType[Value], help: str, **attributes: Any) -> Value | None: ...
def option(*names: str, **attributes: Any) -> Any:
    """Return an option of any type; None where it is not given and has no default."""
    # A name without dashes tells click under which name to pass the value: the field's.
    return declared(lambda name: FlagOption([*names, name], **attributes))


def text(
    *names: str,
    help: str,
    metavar: str = "TEXT",
    default: str = "",
    required: bool = False,
    type: click.ParamType[str] = click.STRING,
) -> str:
    """Return an option that takes a text, empty by default."""
    # click takes a default as the value of a required option that is not given, so only one of the two is set.
    rest: dict[str, Any] = (
        {"required": True} if required else {"default": default, "show_default": bool(default)}
    )
    return cast("str", option(*names, type=type, help=help, metavar=metavar, **rest))


def switch(*names: str, help: str) -> bool:
    """Return an option without a value, True where it is given."""
    return option(*names, type=click.BOOL, help=help, default=False, is_flag=True)


def many(*names: str, type: click.ParamType[Value], help: str, metavar: str) -> tuple[Value, ...]:
    """Return an option that may be repeated."""
    values: Any = option(*names, type=type, multiple=True, metavar=metavar, help=f"{help} May be repeated.")
    return values  # type: ignore[no-any-return]  # what click makes of a repeated option


def output_format(*forms: str) -> str:
    """Return ``-o``, which takes one of *forms*; the first is the default."""
    return option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        help=f"Output format; {forms[0]} by default.",
    )


def parameters(flags: type, parts: Mapping[str, type] = _NO_PARTS) -> Iterator[click.Parameter]:
    """Yield the click parameters that the fields of *flags* declare, in their order; *parts* are those of other types."""
    for flag in fields(flags):
        if _is_flags(part := parts.get(flag.name, flag.type)):
            yield from parameters(part)
        elif declared := flag.metadata.get(_PARAMETER):
            parameter = declared(flag.name)
            if isinstance(parameter, FlagOption):
                parameter.is_of_connection = getattr(flags, "of_connection", False)
            yield parameter


def _value(flags: type[Flags], values: Mapping[str, Any], parts: Mapping[str, type] = _NO_PARTS) -> Flags:
    """Return the *flags* whose fields have the *values* that click read, by name; *parts* are those of other types."""
    return flags(
        **{
            flag.name: _value(part, values)
            if _is_flags(part := parts.get(flag.name, flag.type))
            else values[flag.name]
            for flag in fields(flags)  # type: ignore[arg-type]  # every class of flags is a dataclass
        }
    )


def _is_flags(annotation: Any) -> TypeGuard[type]:
    return isinstance(annotation, type) and is_dataclass(annotation)
