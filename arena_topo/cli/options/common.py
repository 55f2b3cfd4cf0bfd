"""Flags that many commands have, and the types that read their values.

- types of values: ``Whole``, ``Decimal``, ``Duration``, ``_Namespace``, ``JobName``, ``DryRunMode`` and others;
- flags as functions: ``job_name``, ``job_type``, ``wait_limit``, ``refresh_switch``, ``go_flag``;
- the connection: ``KubeFlags``, and ``hoist``, which lets its flags stand before a command;
- forms of output: ``output_form`` and ``print_documents``.
"""

import os
import re
from abc import abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

import click

from arena_topo.cli.declare import FALSE, TRUE, argument, many, option, parameters, switch, text
from arena_topo.cli.terminal import Level, say, show_from, warn
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import REQUEST_TIMEOUT, ConnectionFlags
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
            self.fail(f"{value[:80]!r} is not a valid integer.", param, ctx)
        number = int(value)
        if number > self._most or (self._least is not None and number < self._least):
            low = "" if self._least is None else f"{self._least}<="
            self.fail(f"{number} is not in the range {low}x<={self._most}.", param, ctx)
        return number


class Decimal(click.ParamType[float]):
    """A decimal number, such as 0.5 or 1e3."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a default that is one stays as it is."""
        if isinstance(value, float):
            return value
        if not re.fullmatch(_DECIMAL, value):
            self.fail(f"{value[:80]!r} is not a valid float.", param, ctx)
        return float(value)


# The notations of flags as click types: each reads its text once, with an error that names the flag.

Value = TypeVar("Value")


class Notation(click.ParamType[Value]):
    """A notation whose errors are the project's own, so that they carry a hint."""

    empty_is_default = False
    """Whether an empty text means the flag's default, so that scripts may pass a variable that is not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Value:
        """Return the value of a text; a default that is a value already stays as it is."""
        del ctx
        if self.empty_is_default and value == "" and param:
            value = param.default
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default, which is declared with the type
        return self.read(checked_text(value, name := _flag_name(param)), name)

    @abstractmethod
    def read(self, text: str, flag: str) -> Value:
        """Return the value of *text*, which *flag* was given. Raises ``UsageError``."""


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


class Duration(Notation[float]):
    """A duration in Go's notation, such as ``1h30m``, in seconds; with *bare_seconds* also ``90``."""

    name = "duration"
    empty_is_default = True

    def __init__(self, *, bare_seconds: bool = False, least: float = 0.0) -> None:
        self._bare_seconds = bare_seconds
        self._least = least

    def read(self, text: str, flag: str) -> float:
        """Return the seconds."""
        from arena_topo.model.text.durations import parse_duration

        try:
            is_bare = self._bare_seconds and text.isascii() and text.isdecimal()
            seconds = parse_duration(f"{text}s" if is_bare else text)
        except ValueError as error:
            plain = ", or a number of seconds" if self._bare_seconds else ""
            raise UsageError(
                f"{flag}: {text!r} is not a duration", hint=f"write for example 30s, 5m or 1h30m{plain}"
            ) from error
        if seconds < self._least:
            raise UsageError(f"{flag}: {text} is less than {self._least:g} s")
        return seconds


class _Namespace(Notation[str]):
    """The name of a namespace, or nothing."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        if text:
            from arena_topo.model.validation import check_namespace

            check_namespace(text)
        return text


class _JobType(Notation[str]):
    """A kind of job, by Arena's words."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        if text:
            from arena_topo.kinds.table import KINDS, kinds_called

            if not kinds_called(text):
                known = ", ".join(dict.fromkeys(kind.words[0] for kind in KINDS))
                raise UsageError(
                    f"unsupported job type {text!r}", hint=f"leave it out, or use one of {known}"
                )
        return text


def job_type() -> str:
    """Return Arena's ``--type``, which is checked."""
    return text(
        "-T", "--type", type=_JobType(), help="Kind of the job, such as mpijob or pytorchjob; any by default."
    )


class JobName(Notation[str]):
    """The name of a job, which may have its kind before it, as in kubectl: ``mpijob/vgg16``."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return the name alone."""
        del flag
        from arena_topo.kinds.names import named_job

        return named_job(text)


def job_name() -> str:
    """Return the argument that names one job, as every command declares it that takes one."""
    name: str = argument(metavar="JOB", type=JobName())
    return name


def job_names(*, required: bool = True) -> tuple[str, ...]:
    """Return the argument that names several jobs."""
    several: tuple[str, ...] = argument(
        metavar="JOB..." if required else "[JOB...]", nargs=-1, required=required, type=JobName()
    )
    return several


def wait_limit(help: str = "How long to wait, for example 2m; 0 for no limit.") -> float:
    """Return ``--timeout`` of a command that waits, in seconds."""
    limit: float = option("--timeout", type=Duration(), default=0.0, metavar="DURATION", help=help)
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
    """Who checks a job that is not created: nobody, as it is created; this program; the API server too."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class DryRunMode(Notation[DryRun]):
    """kubectl's ``--dry-run``."""

    name = "mode"
    bare = "bare"

    def read(self, text: str, flag: str) -> DryRun:
        """Return the mode; the flag alone means the client's, as in old versions of kubectl."""
        # The words of the warning and of the error are kubectl's own.
        if text == self.bare:
            warn(f"{flag} is deprecated and can be replaced with {flag}=client")
            return DryRun.CLIENT
        if text not in {mode.value for mode in DryRun}:
            raise UsageError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')
        return DryRun(text)


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


class _LogLevel(Notation[Level]):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaFlags:
    """Arena's own flags, which no help page lists: scripts have them, and nobody needs to learn them."""

    of_connection: ClassVar[bool] = True

    log_level: Level = option(
        "--loglevel",
        type=_LogLevel(),
        default=Level.INFO,
        metavar="TEXT",
        hidden=True,
        help="What is printed on stderr: debug, info, warn or error.",
    )
    arena_namespace: str = option(
        "--arena-namespace",
        type=_Namespace(),
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

    namespace: str = text("-n", "--namespace", type=_Namespace(), help="Namespace to use.")
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
        type=Duration(bare_seconds=True),
        default=REQUEST_TIMEOUT,
        metavar="TEXT",
        help="Limit for one request, for example 30s; a command has ten times that for all of them. "
        "2m by default, 0 for no limit.",
    )
    impersonate_groups: tuple[str, ...] = many(
        "--as-group", type=click.STRING, metavar="TEXT", help="Group to act as."
    )
    insecure: bool = switch("--insecure-skip-tls-verify", help="Do not check the server's certificate.")
    arena: ArenaFlags


def connection_options() -> list[click.Option]:
    """Return the flags of the connection as click has them."""
    return [param for param in parameters(KubeFlags) if isinstance(param, click.Option)]


def hoist(args: list[str]) -> list[str]:
    """Return *args* with the kubectl flags that stand before the command moved behind it.

    ``-n ml --user=ann get vgg16`` becomes ``get -n ml --user=ann vgg16``.
    """
    options = connection_options()
    # Flags that may stand alone have no value in the next word.
    alone = [option for option in options if option.is_flag or hasattr(option.type, "bare")]
    switches = {name for option in alone for name in option.opts}
    with_value = {name for option in options for name in option.opts} - switches
    flags, rest = [], list(args)
    while rest and (rest[0] in switches or rest[0].partition("=")[0] in switches | with_value):
        # Only --flag alone has its value in the next word; --flag=value is one word.
        takes_next = rest[0] in with_value and len(rest) > 1
        count = 2 if takes_next else 1
        flags += rest[:count]
        rest = rest[count:]
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


class OutputNotation(Notation[OutputForm]):
    """One of some words, or ``custom-columns=SPEC``."""

    name = "form"

    def __init__(self, *words: str) -> None:
        self._words = words

    def read(self, text: str, flag: str) -> OutputForm:
        """Return the form, whose columns are checked before anything is asked of a cluster."""
        if text in self._words:
            return OutputForm(text)
        word, _, columns = text.partition("=")
        if word == _COLUMNS:
            from arena_topo.output.text import parse_columns

            parse_columns(columns, flag)
            return OutputForm(word, columns)
        takes = ", ".join((*self._words, f"{_COLUMNS}=..."))
        raise UsageError(f"{flag}: unknown output format {text!r}", hint=f"use one of {takes}")


def output_form(*words: str, help: str) -> OutputForm | None:
    """Return ``-o`` for *words* and for columns; None where it is not given."""
    names = "|".join((*words, _COLUMNS))
    return option(
        "-o", "--output", type=OutputNotation(*words), metavar="FORM", help=f"{help} One of {names}."
    )


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
