"""The notations of flags as click types: each reads its text once, with an error that names the flag."""

from abc import abstractmethod
from typing import Any, TypeVar

import click

from arena_topo.cli.command import argument, option, switch, text
from arena_topo.errors import UsageError

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
            return value  # type: ignore[no-any-return]  # a default, which is declared beside the type
        return self.read(checked_text(value, name := flag_name(param)), name)

    @abstractmethod
    def read(self, text: str, flag: str) -> Value:
        """Return the value of *text*, which *flag* was given. Raises ``UsageError``."""


def flag_name(param: click.Parameter | None) -> str:
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
    """A duration as Go writes it, such as ``30s`` or ``1h30m``, in seconds; *bare_seconds* takes ``90`` as well."""

    name = "duration"
    empty_is_default = True

    def __init__(self, *, bare_seconds: bool = False, least: float = 0.0) -> None:
        self._bare_seconds = bare_seconds
        self._least = least

    def read(self, text: str, flag: str) -> float:
        """Return the seconds."""
        from arena_topo.model.notation.durations import parse_duration

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


class Namespace(Notation[str]):
    """The name of a namespace, or nothing."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        if text:
            from arena_topo.model.job.validation import check_namespace

            check_namespace(text)
        return text


class JobType(Notation[str]):
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
        "-T", "--type", type=JobType(), help="Kind of the job, such as mpijob or pytorchjob; any by default."
    )


class JobName(Notation[str]):
    """The name of a job in the cluster, which may have its kind before it, as in kubectl: ``mpijob/vgg16``."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return the name alone."""
        del flag
        from arena_topo.kinds.names import named_job

        return named_job(text)


def job_name() -> str:
    """Return the argument that names one job; every command that takes a job's name declares it so, or ``job_names``."""
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
