"""How a command is declared: its flags are the fields of one frozen value, which its function receives.

::

    @dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
    class GetFlags:
        name: str = argument(metavar="JOB")
        output: str | None = option("-o", "--output", type=click.Choice(["wide", "json"]), help="Format.")
        kube: KubeFlags

    @command("get", GetFlags)
    def get(flags: GetFlags) -> None: ...

Flags are neither compared nor printed, and the methods for it would be a twentieth of a dry run's time.
A field whose type is such a class itself (``KubeFlags``, ``MpiFlags``) brings all flags of that class; a
command names in ``parts`` the fields for which it has a subclass, as ``submit`` has one for each kind of job.
A field without a declaration is a value that the command's own click class left in the context's ``params``.
The functions below return fields; their annotations say what click will put there, so that mypy compares it
with the field's type.

The module has three parts: how words are read, as Go's flags are; how help is laid out; and ``command`` with
the functions that declare flags.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast, overload

import click
from click.core import ParameterSource, augment_usage_errors
from click.exceptions import NoSuchCommand

from arena_topo.errors import UsageError
from arena_topo.model.text.words import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from arena_topo.cli.defaults import Defaults, Setting


# The words of a command line, as click's parser will read them: which is a flag, and which is a flag's value.
#
# Arena's and kubectl's flags are Go's: a flag that is true or false needs no value, and has it after an
# equals sign, never in the next word. click knows flags without a value, and flags that always have one.

TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
"""The spellings of Go's ``strconv.ParseBool``."""


@dataclass(frozen=True, slots=True)
class ClickWords:
    """The words as click takes them, and the names of flags that were typed as false."""

    words: list[str]
    switched_off: frozenset[str]


def as_click_takes(
    options: Sequence[click.Option], words: Sequence[str], *, checked: bool = False
) -> ClickWords:
    """Return *words* with Go's flags as click takes them.

    A flag whose type says by ``bare`` what it means without a value gets that value, unless the type says by
    ``may_be`` that the next word is one. For ``--gang sh --follow=true -f`` with the flag ``--gang`` of such
    a type these are ``--gang=true sh --follow --follow``: a short flag without a value gets its long form.

    Raises click's usage error where words that are *checked* have a flag as the value of another:
    ``--queue --workers=2`` is a queue without a name, and not one that is called ``--workers=2``.
    """
    bare = {name: option for option in options if value_alone(option) for name in option.opts}
    switches = {name for option in options if option.is_flag for name in option.opts}
    with_value = {name for option in options if not option.is_flag for name in option.opts}
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
            result.append(f"{word}={value_alone(bare[word])}")
        elif flag := _flag_at_end(word, with_value):
            if checked and left and left[0].startswith("--"):
                raise click.UsageError(
                    f"{flag} takes a value, and the next word is {left[0]!r}.\n"
                    f"A value that begins with -- is written after an equals sign: {_long(options, flag)}=VALUE"
                )
            # Any other value is passed on as it is, whatever it looks like.
            result += [word, *left[:1]]
            del left[:1]
        elif equals and name in switches and value in FALSE:
            off.add(name)
        elif equals and name in switches and value in TRUE:
            result.append(name)
        else:
            result.append(word)
    return ClickWords(result + left, frozenset(off))


def value_alone(option: click.Option) -> str:
    """Return what *option* means without a value, or nothing if it needs one; click's types cannot say it."""
    return getattr(option.type, "bare", "")


def _takes_next(option: click.Option, next_word: Sequence[str]) -> bool:
    may_be = getattr(option.type, "may_be", None)
    return bool(may_be and next_word and may_be(next_word[0]))


def _flag_at_end(word: str, with_value: set[str]) -> str:
    """Return the flag at the end of *word* that takes the next word, or nothing."""
    if word.startswith("--"):
        return word if word in with_value else ""
    if not word.startswith("-"):
        return ""
    # -fn ml: switches may stand before a flag with a value, and the rest of the word is its value where there
    # is one.
    for place, letter in enumerate(word[1:], start=1):
        if f"-{letter}" in with_value:
            return f"-{letter}" if place == len(word) - 1 else ""
    return ""


def _long(options: Sequence[click.Option], name: str) -> str:
    names = next(option.opts for option in options if name in option.opts)
    return next((long for long in names if long.startswith("--")), name)


# How help looks: flags under headings, the connection's once for all commands, and no word that is broken.
#
# A line that does not fit is broken between words only, so that flags, images and paths can be copied; on
# narrow terminals the text of a flag stands under it. An example that does not fit continues after a
# backslash, as a shell reads it.

_STACKED_BELOW = 70
"""Columns of text; two columns side by side leave too little for words below that."""

_WIDE = 90
"""Columns of text from which on names may take more of a line."""

_FEW = 20
"""Flags that are read at a glance, without headings; longer pages show only those of ``_SHOWN_FIRST``."""

_WORD = r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+"""
"""A word of a shell's line, quoted parts whole."""

CONNECTION = "Connection"

_ROLES = ("worker", "ps", "chief", "evaluator")
_OF_A_ROLE = ("image", "port", "cpu", "cpu-limit", "memory", "memory-limit", "selector")

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Job": (
        "--name",
        "--image",
        "--workers",
        "--min-workers",
        "--max-workers",
        "--grow",
        "--gang",
        "--gang-scheduler",
        "--queue",
        "--priority",
        "--retry",
        "--on-node-loss",
        "--on-hang",
        "--clean-task-policy",
        "--ttl-after-finished",
        "--running-timeout",
        "--mpi-implementation",
        "--shell",
        "--working-dir",
        "--model-name",
        "--model-source",
        "--api-version",
        "--template",
        "--wait",
        "--follow",
        "--file",
    ),
    "Resources": (
        "--gpus",
        "--cpu",
        "--memory",
        "--share-memory",
        "--slots-per-worker",
        "--device",
        "--rdma",
        "--launcher-cpu",
        "--launcher-memory",
    ),
    "Roles": (
        "--ps",
        "--ps-gpus",
        "--chief",
        "--evaluator",
        "--evaluator-gpus",
        "--role-sequence",
        *(f"--{role}-affinity-{what}" for role in ("worker", "ps") for what in ("policy", "constraint")),
        *(f"--{role}-{what}" for role in _ROLES for what in _OF_A_ROLE),
    ),
    "Placement": (
        "--gputopology",
        "--topology-policy",
        "--parallel",
        "--require-topology",
        "--prefer-topology",
        "--spread-evenly",
        "--spares",
        "--topology-levels",
        "--objective",
        "--coalesce",
        "--share-gpus",
        "--pin",
        "--expect-nodes",
        "--selector",
        "--launcher-selector",
        "--toleration",
        "--scheduler",
        "--from",
        "--product",
        "--compare",
        "--when",
    ),
    "Data": (
        "--data",
        "--data-dir",
        "--config-file",
        "--mounts-on-launcher",
        "--sync-mode",
        "--sync-source",
        "--sync-image",
        "--tensorboard",
        "--tensorboard-image",
        "--logdir",
    ),
    "Pod": (
        "--env",
        "--env-from",
        "--label",
        "--annotation",
        "--image-pull-policy",
        "--image-pull-secret",
        "--hostNetwork",
        "--hostIPC",
        "--hostPID",
        "--ssh-auth-mount-path",
    ),
    "Output": ("--ask", "--output", "--dry-run", "--plan", "--save", "--diff", "--why"),
}
"""The headings of a page with many flags; one that stands nowhere comes under "Options"."""

_SHOWN_FIRST = (
    "--name",
    "--image",
    "--runtime",
    "--workers",
    "--gpus",
    "--nproc-per-node",
    "--ps",
    "--chief",
    "--evaluator",
    "--gang",
    "--gputopology",
    "--rdma",
    "--cpu",
    "--memory",
    "--data",
    "--env",
    "--require-topology",
    "--coalesce",
    "--queue",
    "--priority",
    "--from",
    "--compare",
    "--when",
    "--why",
    "--ask",
    "--wait",
    "--follow",
    "--dry-run",
    "--file",
    "--save",
    "--output",
    "--help",
)
"""What a page with many flags shows, in this order; ``--help-all`` adds the others, under headings."""

_WHOLE = "arena_topo.whole_help"
"""Key of a context's ``meta``: whether its help leaves nothing out."""


def shows_all(ctx: click.Context) -> bool:
    """Whether the help of *ctx* is to leave nothing out."""
    return bool(ctx.meta.get(_WHOLE))


def show_all(ctx: click.Context) -> click.Context:
    """Return *ctx*, whose help and that of the commands below leaves nothing out."""
    ctx.meta[_WHOLE] = True
    return ctx


def _print_whole_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(show_all(ctx).get_help())
        ctx.exit()


def help_all() -> click.Option:
    """Return the flag ``--help-all``, which every command takes."""
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        # Pages name it where they leave something out.
        hidden=True,
        callback=_print_whole_help,
        help="Show all flags and exit.",
    )


class _PageFormatter(click.HelpFormatter):
    """Lays help out by the rules above, under ``_SECTIONS``."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line that says how the command is typed."""
        begin = f"{prefix or 'Usage: '}{prog} "
        self.write(_filled(args, self.width, begin, " " * min(len(begin), 11)) + "\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs; those after a backspace keep their lines, which are examples."""
        indent = " " * self.current_indent
        paragraphs = text.strip("\n").split("\n\n")
        self.write("\n".join(_paragraph(each, self.width, indent) for each in paragraphs))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and what is said of each, side by side where there is room."""
        indent, rows = " " * self.current_indent, list(rows)
        if self.width < _STACKED_BELOW:
            for name, text in rows:
                self.write(_filled(name, self.width, indent, indent + "    ") + "\n")
                if text:
                    self.write(_filled(text, self.width, indent + "    ", indent + "    ") + "\n")
            return
        widest = col_max if self.width >= _WIDE else col_max - 4
        column = min(max(len(name) for name, _ in rows), widest) + col_spacing
        hanging = indent + " " * column
        for name, text in rows:
            begin = f"{indent}{name}"
            if len(name) > column - col_spacing:
                self.write(begin + "\n")
                begin = ""
            self.write(_filled(text, self.width, begin.ljust(len(hanging)), hanging).rstrip() + "\n")


class PageContext(click.Context):
    """A context whose help is laid out by ``_PageFormatter``."""

    formatter_class = _PageFormatter


def _write_flags(
    rows: Sequence[tuple[Sequence[str], tuple[str, str]]], formatter: click.HelpFormatter
) -> None:
    """Write flags, each given as its spellings and its row: under headings where they are many."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for names, row in rows:
        heading = _heading(names) if len(rows) > _FEW else "Options"
        sections.setdefault(heading, []).append(row)
    for heading in (*_SECTIONS, "Options"):
        if heading in sections:
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def _write_first_flags(
    rows: Sequence[tuple[Sequence[str], tuple[str, str]]], formatter: click.HelpFormatter, command: str
) -> None:
    """Write the flags that most users need, and how the others of *command* are shown."""
    by_name = {name: row for names, row in rows for name in names}
    first = [by_name[name] for name in _SHOWN_FIRST if name in by_name]
    with formatter.section("Options"):
        formatter.write_dl(first)
    formatter.write_paragraph()
    formatter.write_text(f"{len(rows) - len(first)} more: {command} --help-all")


def _write_connection_note(formatter: click.HelpFormatter) -> None:
    """Say where the connection's flags are listed."""
    with formatter.section(CONNECTION):
        formatter.write_text("-n NAMESPACE, --context NAME and others: arena-topo --help-all lists them.")


def _heading(names: Sequence[str]) -> str:
    return next((heading for heading, flags in _SECTIONS.items() if set(flags) & set(names)), "Options")


def _paragraph(text: str, width: int, indent: str) -> str:
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.strip() == "\b":
        return "\n".join(_example_lines(rest.splitlines(), width, indent)) + "\n"
    return _filled(" ".join(text.split()), width, indent, indent) + "\n"


def _example_lines(lines: Iterable[str], width: int, indent: str) -> Iterator[str]:
    for line in lines:
        own = indent + line[: len(line) - len(line.lstrip())]
        words = re.findall(_WORD, line)
        # An option and its value, as a backslash of the line itself, stay with the word before.
        row, begin = "", own
        for index, word in enumerate(words):
            is_last = index == len(words) - 1
            room = width - len(begin) - (0 if is_last else 2)
            if row and len(row) + 1 + len(word) > room:
                yield f"{begin}{row} \\"
                row, begin = "", own + "    "
            row = f"{row} {word}".lstrip()
        yield f"{begin}{row}".rstrip()


def _filled(text: str, width: int, begin: str, rest: str) -> str:
    return textwrap.fill(
        text,
        width,
        initial_indent=begin,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


# Commands and their flags.

Value = TypeVar("Value")
Flags = TypeVar("Flags")

Run = Callable[[Flags], int | None]

_PARAMETER = "click parameter"
_NO_PARTS: Mapping[str, type] = MappingProxyType({})
_DEFAULTS, _ORIGIN, _OFF = "arena_topo.defaults", "arena_topo.origin", "arena_topo.off"
"""Keys of a context's ``meta``: what the user has set, where a value comes from, flags typed as false."""


class _FlagOption(click.Option):
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
        return _values(self, setting), ParameterSource.DEFAULT_MAP

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value as the flag reads it; errors name the origin of a value that was not typed."""
        # click processes each value right after it is consumed.
        origin = ctx.meta.pop(_ORIGIN, "")
        try:
            return super().process_value(ctx, value)
        except (click.UsageError, UsageError) as error:
            known = _refused(self, value)
            # What click says of a value that was typed comes with the command's usage.
            if not (origin or known):
                raise
            raise _at(origin, known or error) from error


def read_setting(option: click.Option, setting: "Setting", ctx: click.Context) -> Any:
    """Return what *option* makes of *setting*. Raises ``UsageError`` that names where it was set."""
    values = _values(option, setting)
    try:
        return option.type_cast_value(ctx, values)
    except (click.UsageError, UsageError) as error:
        raise _at(setting.origin, _refused(option, values) or error) from error


def _values(option: click.Option, setting: "Setting") -> tuple[str, ...] | str:
    if option.multiple:
        return setting.values
    if len(setting.values) != 1:
        name, count = option.opts[0], len(setting.values)
        raise UsageError(f"{setting.origin}: {name} takes one value, and {count} are given")
    return setting.values[0]


def _refused(option: click.Option, value: Any) -> UsageError | None:
    from arena_topo.cli.refused import refusal

    # Of a value such as jsonpath={.name} the word counts.
    return refusal(f"{_long([option], option.opts[0])}={str(value).partition('=')[0]}")


def _at(origin: str, error: click.UsageError | UsageError) -> UsageError:
    """Return *error* as one of our own, which begins with *origin* where there is one."""
    where = f"{origin}: " if origin else ""
    if isinstance(error, UsageError):
        return UsageError(f"{where}{error.message}", hint=error.hint)
    return UsageError(f"{where}{usage_error(error).message}")


def usage_error(error: click.UsageError) -> UsageError:
    """Return click's *error* in this program's style: the flag, what is wrong, and what to type instead."""
    path = error.ctx.command_path if error.ctx else "arena-topo"
    see, param = f"{path} --help", getattr(error, "param", None)
    name = _shown_name(param) if param else ""
    possible = list(getattr(error, "possibilities", None) or ())
    if isinstance(error, NoSuchCommand | click.NoSuchOption):
        what = "command" if isinstance(error, NoSuchCommand) else "flag"
        word = error.command_name if isinstance(error, NoSuchCommand) else error.option_name
        # The most similar one comes first.
        meant = f"did you mean {possible[0]}?" if possible else f"{see} lists the {what}s"
        return UsageError(f"there is no {what} {printable(word)}", hint=meant)
    if isinstance(error, click.MissingParameter):
        return UsageError(f"{name} is missing", hint=f"see {see}")
    if isinstance(error, click.BadOptionUsage) and "requires an argument" in error.message:
        return UsageError(f"{error.option_name} needs a value", hint=f"see {see}")
    if found := re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", error.message, re.DOTALL):
        return UsageError(f"too many words: {found[1]}", hint=f"see {see}")
    # The first letter alone: names stay as they are.
    text = error.message[:1].lower() + error.message[1:].removesuffix(".")
    return UsageError(f"{name}: {text}" if name else text, hint=f"see {see}")


def _shown_name(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return _long([param], param.opts[0])
    named = re.search("[A-Z]+", param.metavar or "")
    return named[0] if named else param.human_readable_name.upper()


class _FlagArgument(click.Argument):
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
    """A command with Go-style flags; a flag never swallows another flag as its value.

    *declared* returns its parameters. They are built when the command is used: a group has hundreds.
    """

    context_class = PageContext

    def __init__(
        self, name: str, *, declared: Callable[[], list[click.Parameter]], **attributes: Any
    ) -> None:
        super().__init__(name, **attributes)
        self._declared = declared
        # click has none here yet; without them the ones below are found.
        del self.params

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]  # it can be written
        """The parameters, in their order."""
        return self.build_params()

    def build_params(self) -> list[click.Parameter]:
        """Build the parameters."""
        return self._declared()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with those that every command has."""
        return [*super().get_params(ctx), help_all()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own flags; those of the connection are the same for all commands."""
        params = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        own = [param for param in params if not (isinstance(param, _FlagOption) and param.is_of_connection)]
        given = ((param.opts, param.get_help_record(ctx)) for param in own)
        rows = [(names, row) for names, row in given if row]
        if len(rows) > _FEW and not shows_all(ctx):
            _write_first_flags(rows, formatter, ctx.command_path)
        else:
            _write_flags(rows, formatter)
        if len(own) < len(params):
            _write_connection_note(formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Look at the words before click does, who takes any word for a value."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        # An unfinished line is completed as far as it goes.
        with augment_usage_errors(ctx):
            words = as_click_takes(options, args, checked=not ctx.resilient_parsing)
            ctx.meta[_OFF] = words.switched_off
            rest = super().parse_args(ctx, words.words)
        if not ctx.resilient_parsing:
            # After --help, which prints its page whatever a profile says.
            _defaults(ctx).profile.check_section(
                words_of(ctx), [name for one in options for name in one.opts]
            )
        return rest


def words_of(ctx: click.Context) -> str:
    """Return the words of the command of *ctx* without the program's own, such as ``submit mpi``."""
    words: list[str] = []
    # click's own path looks through all flags of all groups, each time.
    while ctx.parent:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(words)


def _setting_of(option: click.Option, ctx: click.Context) -> "Setting | None":
    # A profile that cannot be used is reported when a command runs, not while its line is completed.
    with suppress(*((UsageError,) if ctx.resilient_parsing else ())):
        return _defaults(ctx).find(words_of(ctx), option.opts, multiple=option.multiple)
    return None


def _defaults(ctx: click.Context) -> "Defaults":
    """Return what the user has set, read once for each run."""
    from arena_topo.cli.defaults import read_defaults

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
    """Turn a function of one *flags* value into the command *name*; its docstring is the help text.

    The function returns an exit code (see ``ExitCode``), or None for success.
    """

    def declared(run: Run[Flags]) -> click.Command:
        def callback(**values: Any) -> int | None:
            return run(_value(flags, values, parts))

        def params() -> list[click.Parameter]:
            return _without_shared_names(parameters(flags, parts))

        return cls(name, callback=callback, declared=params, **{"help": run.__doc__, **attributes})

    return declared


def _without_shared_names(params: Iterable[click.Parameter]) -> list[click.Parameter]:
    """Return *params* without second ones of a name: ``prune -s`` is Arena's flag, not kubectl's ``-s``."""
    taken: set[str] = set()
    distinct = []
    for param in params:
        if isinstance(param, click.Option):
            param.opts = [name for name in param.opts if name not in taken]
            taken.update(param.opts)
        distinct.append(param)
    return distinct


def _declared(parameter: Callable[[str], click.Parameter]) -> Any:
    """Return a field of flags; *parameter* builds its click parameter from the field's name."""
    return field(metadata={_PARAMETER: parameter})


def argument(**attributes: Any) -> Any:
    """Return a positional argument."""
    return _declared(lambda name: _FlagArgument([name], **attributes))


@overload
def option(
    *names: str, type: click.ParamType[Value], help: str, default: Value, **attributes: Any
) -> Value: ...
@overload
def option(*names: str, type: click.ParamType[Value], help: str, **attributes: Any) -> Value | None: ...
def option(*names: str, **attributes: Any) -> Any:
    """Return an option of any type; None where it is not given and has no default."""
    # A name without dashes tells click under which name to pass the value: the field's.
    return _declared(lambda name: _FlagOption([*names, name], **attributes))


def text(
    *names: str,
    help: str,
    metavar: str = "TEXT",
    default: str = "",
    required: bool = False,
    type: click.ParamType[str] = click.STRING,
) -> str:
    """Return an option that takes a text, empty by default."""
    # click takes a default as the value of a required option that is not given, so only one of the two is
    # set.
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
    """Yield the click parameters that the fields of *flags* declare, in their order.

    *parts* are those of other types.
    """
    for flag in fields(flags):
        if _is_flags(part := parts.get(flag.name, flag.type)):
            yield from parameters(part)
        elif declared := flag.metadata.get(_PARAMETER):
            parameter = declared(flag.name)
            if isinstance(parameter, _FlagOption):
                parameter.is_of_connection = getattr(flags, "of_connection", False)
            yield parameter


def _value(flags: type[Flags], values: Mapping[str, Any], parts: Mapping[str, type] = _NO_PARTS) -> Flags:
    """Return the *flags* whose fields have the *values* that click read, by name.

    *parts* are those of other types.
    """
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
