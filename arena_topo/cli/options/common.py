"""Flags that many commands have, and the types that read their values.

- types of values: ``Whole``, ``Decimal``, and ``Notation`` for all else: ``duration``, ``JOB_NAME``,
  ``DRY_RUN``;
- flags as functions: ``job_name``, ``job_type``, ``wait_limit``, ``refresh_switch``, ``go_flag``;
- the connection: ``KubeFlags``, and ``hoist``, which lets its flags stand before a command;
- forms of output: ``output_form`` and ``print_documents``.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

import click

from arena_topo.cli.declare import FALSE, TRUE, argument, many, option, parameters, switch, text, value_alone
from arena_topo.cli.terminal import Level, say, show_from, warn
from arena_topo.errors import UsageError
from arena_topo.kube import RECONNECT, REQUEST_TIMEOUT, ConnectionFlags
from arena_topo.model.text.words import printable

# Numbers as users write them: in plain digits, finite, and of a size that means something.
#
# Python reads more than people mean: ``1_0``, ``nan``, ``inf``, digits of other scripts, and whole numbers of
# a million digits.

MOST = 1_000_000
"""The largest count that any flag takes; no cluster has as many nodes, GPUs or lines on a screen."""

_WHOLE = r"[+-]?[0-9]{1,18}"
_DECIMAL = r"[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})([eE][+-]?[0-9]{1,2})?"


class Whole(click.ParamType[int]):
    """A whole number between *least* and *most*."""

    name = "integer"

    def __init__(self, least: int | None = None, most: int = MOST) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; a default that is one stays as it is."""
        if isinstance(value, int):
            return value
        if not re.fullmatch(_WHOLE, value):
            self.fail(f"{value[:80]!r} is not a whole number", param, ctx)
        number = int(value)
        if number > self._most:
            self.fail(f"{number} is more than {self._most}", param, ctx)
        if self._least is not None and number < self._least:
            self.fail(f"{number} is less than {self._least}", param, ctx)
        return number


class Decimal(click.ParamType[float]):
    """A decimal number, such as 0.5 or 1e3."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a default that is one stays as it is."""
        if isinstance(value, float):
            return value
        if not re.fullmatch(_DECIMAL, value):
            self.fail(f"{value[:80]!r} is not a number", param, ctx)
        return float(value)


# The notations of flags as click types: each reads its text once, with an error that names the flag.

Value = TypeVar("Value")


class Notation(click.ParamType[Value]):
    """What *read* makes of a flag's text and its name; its ``UsageError`` is ours, with a hint.

    With *empty_is_default* an empty text means the flag's default, so that scripts may pass a variable that
    is not set. A flag that may stand without a value then has the value *bare*, unless *may_be* says that the
    next word is one.
    """

    name = "text"

    def __init__(
        self,
        read: Callable[[str, str], Value],
        *,
        empty_is_default: bool = False,
        bare: str = "",
        may_be: Callable[[str], bool] | None = None,
    ) -> None:
        self.read, self.empty_is_default = read, empty_is_default
        self.bare, self.may_be = bare, may_be

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Value:
        """Return the value of a text; a default that is a value already stays as it is."""
        del ctx
        if self.empty_is_default and value == "" and param:
            value = param.default
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default, which is declared with the type
        return self.read(checked_text(value, name := _flag_name(param)), name)


def _flag_name(param: click.Parameter | None) -> str:
    """Return the flag of *param* in its long form; arguments are the words of the job's command."""
    opts = param.opts if isinstance(param, click.Option) else []
    return next((name for name in opts if name.startswith("--")), "the command")


def checked_text(text: str, flag: str) -> str:
    """Return *text* when it is UTF-8, as the API needs it, else raise ``UsageError``."""
    # Bytes of the command line that are not UTF-8 arrive as lone surrogates, which nothing can encode.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{flag} has bytes that are not UTF-8 text: {text!a}") from error
    return text


def duration(*, bare_seconds: bool = True, least: float = 0.0) -> Notation[float]:
    """Return the notation of a duration such as ``1h30m``, in seconds; with *bare_seconds* also ``90``."""

    def read(text: str, flag: str) -> float:
        from arena_topo.model.text.quantity import parse_duration

        try:
            is_bare = bare_seconds and text.isascii() and text.isdecimal()
            seconds = parse_duration(f"{text}s" if is_bare else text)
        except ValueError as error:
            plain = ", or a number of seconds" if bare_seconds else ""
            raise UsageError(
                f"{flag}: {text!r} is not a duration", hint=f"write for example 30s, 5m or 1h30m{plain}"
            ) from error
        if seconds < least:
            raise UsageError(f"{flag}: {text} is less than {least:g} s")
        return seconds

    return Notation(read, empty_is_default=True)


def _namespace(text: str, _: str) -> str:
    if text:
        from arena_topo.model.validation import check_namespace

        check_namespace(text)
    return text


def namespace_name() -> Notation[str]:
    """Return the notation of a namespace, which is checked."""
    return Notation(_namespace)


def _kind_of_job(text: str, _: str) -> str:
    if text:
        from arena_topo.kinds.table import KINDS, kinds_called

        if not kinds_called(text):
            known = ", ".join(dict.fromkeys(kind.words[0] for kind in KINDS))
            raise UsageError(f"unsupported job type {text!r}", hint=f"leave it out, or use one of {known}")
    return text


def job_type() -> str:
    """Return Arena's ``--type``, which is checked."""
    return text(
        "-T",
        "--type",
        type=Notation(_kind_of_job),
        help="Kind of the job, such as mpijob or pytorchjob; any by default.",
    )


def _job_named(text: str, _: str) -> str:
    """Return the name of a job, which may have its kind before it, as in kubectl: ``mpijob/vgg16``."""
    from arena_topo.kinds.names import named_job

    return named_job(text)


JOB_NAME = Notation(_job_named)


def job_name() -> str:
    """Return the argument that names one job, as every command declares it that takes one."""
    name: str = argument(metavar="JOB", type=JOB_NAME)
    return name


def job_names(*, required: bool = True) -> tuple[str, ...]:
    """Return the argument that names several jobs."""
    several: tuple[str, ...] = argument(
        metavar="JOB..." if required else "[JOB...]", nargs=-1, required=required, type=JOB_NAME
    )
    return several


def wait_limit(help: str = "How long to wait, for example 2m; 0 for no limit.") -> float:
    """Return ``--timeout`` of a command that waits, in seconds."""
    limit: float = option("--timeout", type=duration(), default=0.0, metavar="DURATION", help=help)
    return limit


def refresh_switch() -> bool:
    """Return Arena's ``--refresh``."""
    return switch("-r", "--refresh", help="Show it again every two seconds, until Ctrl-C.")


def check_refreshed(output: str) -> None:
    """Raise ``UsageError`` for a form of output that is not shown again and again: a document has an end."""
    if output != "wide":
        raise UsageError("--refresh shows a table", hint=f"leave out -o {output}, or --refresh")


# kubectl's ``--dry-run``.


class DryRun(Enum):
    """Whether a job is created, or only checked: by this program, or by the API server too."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


_BARE = "bare"


def _dry_run(text: str, flag: str) -> DryRun:
    """Return the mode; the flag without a value means the client's, as in old versions of kubectl."""
    # The words of the warning and of the error are kubectl's own.
    if text == _BARE:
        warn(f"{flag} is deprecated and can be replaced with {flag}=client")
        return DryRun.CLIENT
    if text not in {mode.value for mode in DryRun}:
        raise UsageError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')
    return DryRun(text)


DRY_RUN = Notation(_dry_run, bare=_BARE)


# Flags as Go programs take them: ``--gang``, ``--gang=true`` and ``--gang=false``, never ``--gang true``.


class _GoBool(click.ParamType[bool]):
    """A bool in the spellings of Go's ``strconv.ParseBool``."""

    name = "true|false"
    bare = "true"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """Return the bool."""
        if isinstance(value, bool):
            return value
        if value in TRUE:
            return True
        if value not in FALSE:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return False


def go_flag(*names: str, help: str, default: bool = False) -> bool:
    """Return a flag that takes true or false as Go's flags do."""
    return option(*names, type=_GoBool(), default=default, metavar="[true|false]", help=help)


# The connection: kubectl's flags, which every command that talks to a cluster has, and those that Arena adds.

_ARENA_NAMESPACE = "arena-system"


def _log_level(text: str, flag: str) -> Level:
    """Show messages from a level on, in Arena's words; errors are always shown."""
    words = {level.name.lower(): level for level in Level}
    if text not in words:
        raise UsageError(f"{flag}: {text!r} is not a level", hint=f"use one of {', '.join(words)}")
    level = words[text]
    show_from(level)
    if level is Level.DEBUG:
        # For faults of this program, the one place that prints more: cli/errors.py.
        os.environ["ARENA_TOPO_DEBUG"] = "1"
    return level


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ArenaFlags:
    """Arena's own flags, hidden from help: accepted for compatibility with Arena scripts."""

    of_connection: ClassVar[bool] = True

    log_level: Level = option(
        "--loglevel",
        type=Notation(_log_level, empty_is_default=True),
        default=Level.INFO,
        metavar="TEXT",
        hidden=True,
        help="What is printed on stderr: debug, info, warn or error.",
    )
    arena_namespace: str = option(
        "--arena-namespace",
        type=Notation(_namespace),
        default=_ARENA_NAMESPACE,
        metavar="TEXT",
        hidden=True,
        help="Namespace of Arena's own configuration.",
    )


# The base's repr hides the token.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class KubeFlags(ConnectionFlags):
    """What the user chose with kubectl's flags; a ``ConnectionFlags`` whose fields declare the flags."""

    of_connection: ClassVar[bool] = True

    namespace: str = text("-n", "--namespace", type=Notation(_namespace), help="Namespace to use.")
    context: str = text("--context", help="Context of the kubeconfig to use.")
    kubeconfig: str = text("--kubeconfig", "--config", help="Path of the kubeconfig file.")
    cluster: str = text("--cluster", help="Cluster of the kubeconfig to use.")
    user: str = text("--user", help="User of the kubeconfig to use.")
    server: str = text("-s", "--server", help="Address of the API server.")
    token: str = text("--token", help="Bearer token for the API server.")
    certificate_authority: str = text(
        "--certificate-authority", help="File with the certificates of the authority that the server uses."
    )
    tls_server_name: str = text(
        "--tls-server-name", help="Name to check the API server's certificate against."
    )
    impersonate: str = text("--as", help="User to act as.")
    request_timeout: float = option(
        "--request-timeout",
        type=duration(),
        default=REQUEST_TIMEOUT,
        metavar="TEXT",
        help="Limit for one request, for example 30s; a command has ten times that for all of them. "
        "2m by default, 0 for no limit.",
    )
    reconnect: float = option(
        "--reconnect",
        type=duration(),
        default=RECONNECT,
        metavar="TEXT",
        help="How long a command that waits continues while the server is away, for example 1h. "
        "5m by default, 0 for not at all.",
    )
    impersonate_groups: tuple[str, ...] = many(
        "--as-group", type=click.STRING, metavar="TEXT", help="Group to act as."
    )
    insecure: bool = switch("--insecure-skip-tls-verify", help="Do not check the server's certificate.")
    arena: ArenaFlags


def connection_options() -> list[click.Option]:
    """Return the flags of the connection as click has them."""
    return [param for param in parameters(KubeFlags) if isinstance(param, click.Option)]


_HELP = ("-h", "--help", "--help-all", "--version")
"""Flags that mean no command, and no cluster."""


def hoist(args: list[str], *, checked: bool = False) -> list[str]:
    """Return *args* with the kubectl flags that stand before the command moved behind it.

    ``-n ml --user=ann get vgg16`` becomes ``get -n ml --user=ann vgg16``. Raises ``UsageError`` where no
    command follows the flags of words that are *checked*: ``-n list`` is a namespace without a command.
    """
    options = connection_options()
    # Flags that need no value have none in the next word.
    alone = [option for option in options if option.is_flag or value_alone(option)]
    switches = {name for option in alone for name in option.opts}
    with_value = {name for option in options for name in option.opts} - switches
    flags, rest = [], list(args)
    while rest and (rest[0] in switches or rest[0].partition("=")[0] in switches | with_value):
        # --flag has its value in the next word; --flag=value is one word.
        takes_next = rest[0] in with_value and len(rest) > 1
        count = 2 if takes_next else 1
        flags += rest[:count]
        rest = rest[count:]
    if rest[:1] and rest[0] in _HELP:
        return rest
    if checked and not rest:
        name = flags[-1]
        if name in with_value and (len(flags) < 2 or flags[-2] not in with_value):
            raise UsageError(f"{name} needs a value, and a command after it", hint="arena-topo -n ml list")
        raise UsageError(
            f"there is no command after {printable(' '.join(flags))}",
            hint="arena-topo --help lists the commands",
        )
    # Without a command to move them behind, click explains what is wrong with the flags as they were typed.
    if not rest or rest[0].startswith("-"):
        return list(args)
    return [rest[0], *flags, *rest[1:]]


# Forms of output: words, and kubectl's custom columns.

_COLUMNS = "custom-columns"


@dataclass(frozen=True, slots=True)
class OutputForm:
    """A form of output, and for ``custom-columns`` its columns as they were typed."""

    word: str
    columns: str = ""


def output_form(*words: str, help: str) -> OutputForm | None:
    """Return ``-o`` for *words* and for columns; None where it is not given."""

    def read(text: str, flag: str) -> OutputForm:
        if text in words:
            return OutputForm(text)
        word, _, columns = text.partition("=")
        # Columns are checked before anything is asked of a cluster.
        if word == _COLUMNS:
            from arena_topo.output.text import parse_columns

            parse_columns(columns, flag)
            return OutputForm(word, columns)
        takes = ", ".join((*words, f"{_COLUMNS}=..."))
        raise UsageError(f"{flag}: unknown output format {text!r}", hint=f"use one of {takes}")

    names = "|".join((*words, _COLUMNS))
    return option("-o", "--output", type=Notation(read), metavar="FORM", help=f"{help} One of {names}.")


def print_documents(form: OutputForm, documents: list[dict[str, object]], *, single: bool = False) -> bool:
    """Print *documents* in *form*, and return True; False where the form is a table or names."""
    from arena_topo.output.text import document

    whole: object = documents[0] if single else documents
    if form.word in ("json", "yaml"):
        click.echo(document(whole, form.word), nl=False)
    elif form.word == _COLUMNS:
        from arena_topo.output.text import parse_columns

        columns = parse_columns(form.columns, "-o")
        click.echo(columns.table(documents), nl=False)
        # Who knows kubectl types .metadata.name, and the documents are flat, as Arena's are.
        if documents and (absent := columns.absent(documents)):
            words = f"nothing has the field of {', '.join(absent)}; the fields are those of -o json, such as .name"
            say(f"hint: {printable(words)}", style="hint")
    else:
        return False
    return True
