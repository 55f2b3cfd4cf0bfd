"""The flags of a submit as a YAML file: read by ``submit -f`` and ``plan -f``, written by ``submit --save``.

::

    job: mpi                                  # its kind, which a command such as submit mpi says as well
    name: vgg16
    workers: 4
    gang: true
    env: [NCCL_DEBUG=INFO, LR=1e-3]
    command: mpirun -np 4 python train.py     # one string, for a shell; or the words that would follow --:
    argv: [mpirun, -np, "4", python, train.py]

Keys are flags without their dashes, and values are taken as they are written. What is typed next to the file
comes first; a flag that may be repeated adds to the file's values. Without a kind on the command line -f
takes a manifest as well: ``command_of_file`` tells one from the other.
"""

import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

import click
from click.core import augment_usage_errors

from arena_topo.cli.declare import as_click_takes, parameters, read_setting, words_of
from arena_topo.cli.defaults import Setting, parse_profile, unknown_flag
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.options.job import JobCommand
from arena_topo.cli.snapshot_source import read_text
from arena_topo.errors import UsageError
from arena_topo.files import LARGEST_SETTING

_JOB, _COMMAND, _ARGV = "job", "command", "argv"
"""What a file says next to flags."""
_EXAMPLE = (
    "such a file has a line for each flag, such as workers: 4; arena-topo submit mpi --save FILE writes one"
)
_SNAPSHOT = (
    r"""["']?kind["']?\s*:\s*["']?Snapshot\b"""  # what topology save writes
    r"|^(?:\x1b\[\d+m|\s)*GPU0\b"  # the matrix of nvidia-smi, whose head is underlined
    r"|^=+ ROCm|^P2P|\A\s*<"  # rocm-smi, p2pBandwidthLatencyTest, and NCCL's XML
)
"""What a snapshot or a matrix has, and no description of a job."""
_MANIFEST = r"^(?:apiVersion|kind) *:|^\s*\{"
"""What a manifest has, as YAML or as JSON, and no file of flags."""
_OF_ONE_RUN = frozenset(
    {
        *(
            "--file",
            "--save",
            "--dry-run",
            "--plan",
            "--output",
            "--follow",
            "--wait",
            "--ask",
            "--help",
            "--help-all",
        ),
        *("--from", "--product", "--compare", "--when", "--why"),
    }
)
"""Flags that say what is done with a job, and nothing of the job itself."""


class _Content(Enum):
    """What is in a file."""

    FLAGS = "flags"
    MANIFEST = "a manifest"
    SNAPSHOT = "a snapshot"


def _content(text: str) -> _Content:
    if re.search(_SNAPSHOT, text, re.MULTILINE):
        return _Content.SNAPSHOT
    return _Content.MANIFEST if re.search(_MANIFEST, text, re.MULTILINE) else _Content.FLAGS


def command_of_file(words: Sequence[str], verb: str, kinds: Iterable[str]) -> str:
    """Return the command of *verb* for the file that -f names in *words*: one of *kinds*, or ``manifest``.

    Raises ``UsageError`` for flags whose kind of job nothing says, and for what describes no job.
    """
    file = _named_file(words)
    shown = "stdin" if file == "-" else file
    if not file:
        return "manifest"
    text = read_text(file, "--file", LARGEST_SETTING)
    if file == "-":
        # What was read is put back for the command.
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8")
    content = _content(text)
    if content is _Content.SNAPSHOT:
        raise _is_snapshot(shown, f"arena-topo plan mpi --from {shown}")
    if content is _Content.MANIFEST:
        return "manifest"
    kind = _read(text, shown).get(_JOB)
    known = list(kinds)
    if kind is None:
        raise UsageError(
            f"{shown} is neither a manifest nor flags that --save wrote: it has no apiVersion, and no job: KIND",
            hint=f"name the kind of the job, as in arena-topo {verb} mpi -f {shown}",
        )
    if kind.values[0] not in known:
        raise UsageError(
            f"{kind.origin}: {kind.values[0]!r} is not a kind of job", hint=f"use one of {', '.join(known)}"
        )
    return kind.values[0]


def _named_file(words: Sequence[str]) -> str:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in ("-f", "--file"):
            return value if equals else after
        if word.startswith("-f"):
            return word[2:]
    return ""


def _is_snapshot(shown: str, instead: str) -> UsageError:
    return UsageError(
        f"{shown} is a snapshot or a matrix, which --from takes: -f takes the flags of a job",
        hint=f"for example {instead}",
    )


def _read(text: str, shown: str) -> Mapping[str, Setting]:
    """Return the flags in the *text* of a file."""
    try:
        profile = parse_profile(text, shown)
    except UsageError as error:
        # Its own hint speaks of profiles, which have sections.
        raise UsageError(error.message, hint=_EXAMPLE) from error
    if profile.commands:
        name, settings = next(iter(profile.commands.items()))
        where = next((setting.origin for setting in settings.values()), shown)
        raise UsageError(f"{where}: {name} must be a value, or a list of values")
    return profile.common


class TypedFlags(NamedTuple):
    """The flags as they were typed, by name and in the order of the command's own, and the job's command.

    A named tuple: a dataclass among the fields of a command's flags would be taken for more flags.
    """

    values: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    words: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None

    def document(self, kind: str) -> dict[str, Any]:
        """Return the flags of a job of *kind* as a file says them."""
        flags: dict[str, Any] = {
            _JOB: kind,
            **self._flags,
        }
        if self.argv is not None:
            return {**flags, _ARGV: list(self.argv)}
        return {**flags, _COMMAND: " ".join(self.words)} if self.words else flags

    @property
    def _flags(self) -> dict[str, Any]:
        return {
            name.removeprefix("--"): [_plain(value) for value in values]
            if len(values) > 1
            else _plain(values[0])
            for name, values in self.values.items()
        }


class FileCommand(JobCommand):
    """A command that describes a job, in flags or in a file of them.

    The flags as they were typed become ``typed``.
    """

    def passes_over(self) -> frozenset[str]:
        """Return the flags of a file that are left out: a plan depends on fewer flags than a submit takes."""
        return frozenset()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the flags of the file before those that were typed."""
        ctx.params["typed"] = TypedFlags()
        if not ctx.resilient_parsing and _mentions_file(args):
            if file := str(self._opts(ctx, args)[0].get("file") or ""):
                args = self._with_file(ctx, args, file)
            ctx.params["typed"] = self._typed(ctx, args)
        return super().parse_args(ctx, args)

    def _opts(self, ctx: click.Context, args: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """Return how click splits *args* before any flag reads its text: flags by name, and the rest."""
        words = as_click_takes(self._options(), _before_argv(args)).words
        with augment_usage_errors(ctx):
            opts, _, _ = self.make_parser(ctx).parse_args(words)
        # click marks arguments that are not given by a value of its own.
        given = opts.get("words")
        return opts, list(given) if isinstance(given, list | tuple) else []

    def _options(self) -> list[click.Option]:
        return [param for param in self.params if isinstance(param, click.Option)]

    def _with_file(self, ctx: click.Context, args: Sequence[str], file: str) -> list[str]:
        shown = "stdin" if file == "-" else file
        text, (verb, _, kind) = read_text(file, "--file", LARGEST_SETTING), words_of(ctx).partition(" ")
        content = _content(text)
        if content is _Content.SNAPSHOT:
            raise _is_snapshot(shown, f"arena-topo plan {kind} --from {shown}")
        if content is _Content.MANIFEST:
            raise UsageError(
                f"{shown} is a manifest, and {verb} {kind} takes a file of flags",
                hint=f"arena-topo {'plan -f' if verb == 'plan' else 'submit -f'} {shown} takes it as it is",
            )
        given = _read(text, shown)
        if (stated := given.get(_JOB)) and stated.values[0] != kind:
            raise UsageError(
                f"{stated.origin}: the job is of kind {stated.values[0]}, and the command is {verb} {kind}",
                hint=f"leave the kind out: arena-topo {verb} -f {shown}",
            )
        named = {name: option for option in self._options() for name in option.opts if name.startswith("--")}
        elsewhere, passed_over = _OF_ONE_RUN | _connection(), self.passes_over()
        flags: list[str] = []
        for key, setting in given.items():
            if key in (_JOB, _COMMAND, _ARGV) or f"--{key}" in passed_over:
                continue
            option = named.get(f"--{key}")
            if option is None or option.opts[0] in elsewhere or f"--{key}" in elsewhere:
                raise _unknown(key, setting, [*(set(named) - elsewhere), _JOB, _COMMAND, _ARGV], named)
            read_setting(option, setting, ctx)
            flags += [f"--{key}={value}" for value in setting.values]
        _, words = self._opts(ctx, args)
        # A command that is typed stands for the file's.
        if words or "--" in args:
            return [*flags, *args]
        return [*flags, *args, *_command(given)]

    def _typed(self, ctx: click.Context, args: Sequence[str]) -> TypedFlags:
        opts, words = self._opts(ctx, args)
        elsewhere = _OF_ONE_RUN | _connection()
        values = {
            long: tuple(map(str, given if isinstance(given, list) else [given]))
            for option in self._options()
            if (long := _long(option)) not in elsewhere and (given := opts.get(option.name or "")) is not None
        }
        argv = tuple(args[args.index("--") + 1 :]) if "--" in args else None
        return TypedFlags(
            {name: texts for name, texts in values.items() if texts}, tuple(words), argv or None
        )


def _mentions_file(args: Iterable[str]) -> bool:
    return any(arg.startswith(("-f", "--file", "--save")) for arg in _before_argv(list(args)))


def _before_argv(args: Sequence[str]) -> list[str]:
    return list(args[: args.index("--")] if "--" in args else args)


def _connection() -> frozenset[str]:
    """Return kubectl's flags, but for the namespace: they say where the cluster is, and may be secret."""
    names = (name for option in parameters(KubeFlags) for name in option.opts)
    return frozenset(names) - {"--namespace", "-n"}


def _long(option: click.Option) -> str:
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])


def _command(settings: Mapping[str, Any]) -> list[str]:
    """Return the job's command as it would be typed."""
    command, argv = settings.get(_COMMAND), settings.get(_ARGV)
    if command and argv:
        raise UsageError(f"{argv.origin}: the job's command is given twice, as {_COMMAND} and as {_ARGV}")
    if argv:
        return ["--", *argv.values]
    if not command:
        return []
    if len(command.values) != 1:
        raise UsageError(
            f"{command.origin}: {_COMMAND} is one string", hint=f"words in a list are called {_ARGV}"
        )
    # Behind the dashes a command that begins with one is no flag, but there it would be no shell's.
    if command.values[0].startswith("-"):
        raise UsageError(f"{command.origin}: {_COMMAND} begins with a dash")
    return [command.values[0]]


def _unknown(key: str, setting: Setting, known: Sequence[str], named: Mapping[str, object]) -> UsageError:
    if f"--{key}" in named:
        return UsageError(f"{setting.origin}: {key} says nothing of a job: give it on the command line")
    flags = [name.removeprefix("--") for name in known]
    return unknown_flag(
        key, setting, f"there is no flag {key}", "arena-topo submit mpi --help-all lists the flags", flags
    )


def _plain(text: str) -> str | int | bool:
    """Return *text* as YAML writes it best.

    Numbers and bools that would be read back otherwise stay texts.
    """
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() and text.isascii() and str(int(text[:18])) == text else text
