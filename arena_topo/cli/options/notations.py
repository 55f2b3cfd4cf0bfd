"""The notations of flags as click types: each reads its text once, with an error that names the flag."""

from abc import abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

import click

from arena_topo.cli.flags import text
from arena_topo.cli.terminal import warn
from arena_topo.errors import UsageError
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.notation.durations import parse_duration, parse_instant
from arena_topo.model.notation.quantity import checked_quantity

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
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{flag} has bytes that are not UTF-8 text: {text!a}") from error
    return text


class Text(Notation[str]):
    """A text that is sent as it is."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        return text


class OneOf(Notation[str]):
    """One of a few words."""

    name = "text"

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        if text not in self._allowed:
            raise UsageError(f"unsupported {flag} {text!r}", hint=f"use one of {', '.join(self._allowed)}")
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
        try:
            seconds = float(text) if self._bare_seconds and text.isdecimal() else parse_duration(text)
        except ValueError as error:
            plain = ", or a number of seconds" if self._bare_seconds else ""
            raise UsageError(
                f"{flag}: {text!r} is not a duration", hint=f"write for example 30s, 5m or 1h30m{plain}"
            ) from error
        if seconds < self._least:
            raise UsageError(f"{flag}: {text} is less than {self._least:g} s")
        return seconds


class WaitLimit(Notation[float | None]):
    """How long to wait: None for not at all, 0 for as long as it takes, else seconds."""

    name = "timeout"
    bare = "true"
    empty_is_default = True

    def read(self, text: str, flag: str) -> float | None:
        """Return the seconds."""
        if text in ("true", "false"):
            return 0.0 if text == "true" else None
        return Duration().read(text, flag)


class Instant(Notation[str]):
    """A time in RFC 3339, in UTC and whole seconds, as the API server takes it."""

    name = "time"

    def read(self, text: str, flag: str) -> str:
        """Return the time."""
        try:
            return parse_instant(text).strftime("%Y-%m-%dT%H:%M:%SZ") if text else ""
        except ValueError as error:
            raise UsageError(f"{flag}: {error}") from error


class Quantity(Notation[str]):
    """A Kubernetes quantity such as ``500m`` or ``64Gi``, or nothing."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*, which is a quantity."""
        return checked_quantity(flag, text) if text else ""


class Pair(Notation[tuple[str, str]]):
    """``NAME=VALUE``; *check* takes the flag, the name and the value."""

    name = "name=value"

    def __init__(self, check: Callable[[str, str, str], None]) -> None:
        self._check = check

    def read(self, text: str, flag: str) -> tuple[str, str]:
        """Return the name and the value."""
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag}: {text!r} is not NAME=VALUE", hint=f"for example {flag}=name=value")
        self._check(flag, name, value)
        return name, value


class LabelKeys(Notation[tuple[str, ...]]):
    """Label keys, separated by commas."""

    name = "keys"

    def read(self, text: str, flag: str) -> tuple[str, ...]:
        """Return the keys."""
        del flag
        return tuple(key.strip() for key in text.split(",") if key.strip())


class NcclVersion(Notation[tuple[int, int]]):
    """A version of NCCL, of which the first two numbers count."""

    name = "x.y"
    empty_is_default = True

    def read(self, text: str, flag: str) -> tuple[int, int]:
        """Return the first two numbers."""
        major, _, rest = text.removeprefix("v").partition(".")
        minor = rest.partition(".")[0]
        if not (major.isdecimal() and minor.isdecimal()):
            raise UsageError(f"{flag}: {text!r} is not a version", hint="write for example 2.7 or 2.28.3")
        return int(major), int(minor)


class MPIJobVersion(Notation[ApiVersion]):
    """A version of MPIJob, with or without its group."""

    name = "text"
    empty_is_default = True

    def read(self, text: str, flag: str) -> ApiVersion:
        """Return the version."""
        short = text.removeprefix("kubeflow.org/")
        if short not in {version.value for version in ApiVersion}:
            raise UsageError(
                f"{flag}: {text!r} is not a version of MPIJob", hint="use v2beta1, v1 or v1alpha1"
            )
        return ApiVersion(short)


class JobType(Notation[str]):
    """Arena's kind of a job, of which this tool has the MPI job."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        if text and text.lower() not in ("mpijob", "mpi", "mj"):
            raise UsageError(
                f"unsupported job type {text!r}: arena-topo runs MPI jobs only",
                hint="leave it out, or --type mpijob",
            )
        return text


def job_type() -> str:
    """Return Arena's ``--type``, which is checked; there is one kind to choose from."""
    return text("-T", "--type", type=JobType(), help="Kind of the job: mpijob.")


class DryRun(Enum):
    """What a dry run asks: nothing, only this program, or the API server too."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class DryRunMode(Notation[DryRun]):
    """kubectl's ``--dry-run``."""

    name = "mode"
    bare = "bare"

    def read(self, text: str, flag: str) -> DryRun:
        """Return the mode; alone it is the client's, as it was in old kubectl."""
        if text == self.bare:
            warn(f"{flag} is deprecated and can be replaced with {flag}=client")
            return DryRun.CLIENT
        if text not in {mode.value for mode in DryRun}:
            raise UsageError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')
        return DryRun(text)
