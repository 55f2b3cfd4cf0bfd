"""``arena-topo exec`` and ``arena-topo attach``: a command in a running instance."""

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from arena_topo.cli.declare import FlagCommand, argument, command, switch, text
from arena_topo.cli.options.common import KubeFlags, checked_text, job_name, job_type
from arena_topo.cli.terminal import say, warn
from arena_topo.errors import ConnectionFailed, UsageError

if TYPE_CHECKING:
    from arena_topo.kube.remote import RemoteProcess


class _KubectlShort(FlagCommand):
    """A command that takes kubectl's ``-it``, though ``-i`` names an instance here, as it does in Arena."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read ``-it`` and ``-ti`` before the command as ``--stdin --tty``."""
        end = args.index("--") if "--" in args else len(args)
        words = [
            word for arg in args[:end] for word in (["--stdin", "--tty"] if arg in ("-it", "-ti") else [arg])
        ]
        return super().parse_args(ctx, [*words, *args[end:]])


def _instance() -> str:
    return text(
        "-i",
        "--instance",
        help="Instance to use, by name or worker number; by default the launcher, or the first pod of a job without one.",
    )


def _container() -> str:
    return text("-c", "--container", help="Container of the instance.")


def _words(**attributes: Any) -> tuple[str, ...]:
    words: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED, **attributes)
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecFlags:
    """What ``exec`` takes."""

    name: str = job_name()
    words: tuple[str, ...] = _words(metavar="-- COMMAND...", required=True)
    instance: str = _instance()
    container: str = _container()
    stdin: bool = switch("--stdin", help="Pass stdin to the command. -it is --stdin --tty, as in kubectl.")
    tty: bool = switch("-t", "--tty", help="Give the command a terminal.")
    type: str = job_type()
    kube: KubeFlags


@command("exec", ExecFlags, cls=_KubectlShort)
def exec_command(flags: ExecFlags) -> int:
    """Run a command in an instance of a job.

    The exit code is that of the command.

    \b
      arena-topo exec vgg16 -i 2 -- nvidia-smi
      arena-topo exec vgg16 -it -- bash
    """
    return _run(
        flags.kube, flags.name, flags.instance, flags.container, flags.words, stdin=flags.stdin, tty=flags.tty
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachFlags:
    """What ``attach`` takes."""

    name: str = job_name()
    words: tuple[str, ...] = _words(metavar="[-- COMMAND...]")
    instance: str = _instance()
    container: str = _container()
    type: str = job_type()
    kube: KubeFlags


@command("attach", AttachFlags, cls=FlagCommand)
def attach(flags: AttachFlags) -> int:
    """Open a shell in an instance of a job.

    It is Arena's command: exec with a terminal, of sh where no other command is given.

    \b
      arena-topo attach vgg16
      arena-topo attach vgg16 -i vgg16-worker-2 -- bash
    """
    words = flags.words or ("sh",)
    return _run(
        flags.kube, flags.name, flags.instance, flags.container, words, stdin=True, tty=True, greet=True
    )


def _run(
    kube: KubeFlags,
    name: str,
    instance: str,
    container: str,
    words: Sequence[str],
    *,
    stdin: bool,
    tty: bool,
    greet: bool = False,
) -> int:
    from arena_topo.jobs.logs.follow import parse_instances
    from arena_topo.jobs.logs.many import running_instance
    from arena_topo.kube.remote import Starter
    from arena_topo.kube.resources import PODS
    from arena_topo.kube.session import connect

    instances = parse_instances(instance, "", every=False)
    if not instances.one:
        raise UsageError(f"--instance: {instance!r} names several, and a command runs in one")
    command_words = [checked_text(word, "the command") for word in words]
    session = connect(kube)
    pod, chosen = running_instance(session, name, instances, container)
    # As in kubectl: a script may pipe into a command that usually has a terminal.
    if tty and not _is_terminal():
        warn("stdin is not a terminal: the command runs without one")
        tty = False
    if greet:
        say(f"Hello! Arena attach the container {chosen} of instance {pod['metadata']['name']}")
    path = PODS.path(session.namespace, pod["metadata"]["name"])
    process = Starter(kube).start(path, command_words, container=chosen, tty=tty, stdin=stdin)
    return _run_to_the_end(process, stdin=stdin, tty=tty)


# A command in a container at the user's terminal: raw mode, the window's size, input, output, and the exit
# code.

_CHUNK = 32 * 1024


def _run_to_the_end(process: "RemoteProcess", *, stdin: bool, tty: bool) -> int:
    """Connect the user's streams with *process* until it has ended, and return its exit code."""
    from arena_topo.kube.remote import Channel

    try:
        with _terminal(raw=tty) as resized:
            if tty:
                _tell_size(process)
            if stdin or tty:
                # A thread of its own: a process that neither reads nor is read would else hold both ends up.
                own = (process, sys.stdin.fileno() if stdin else None, resized)
                threading.Thread(target=_pass_input, args=own, daemon=True).start()
            for channel, data in process.output():
                stream = sys.stderr.buffer if channel is Channel.STDERR else sys.stdout.buffer
                stream.write(data)
                stream.flush()
        return process.exit_code()
    finally:
        process.close()


def _is_terminal() -> bool:
    """Whether stdin is a terminal, which raw mode needs."""
    return os.isatty(sys.stdin.fileno())


def _pass_input(process: "RemoteProcess", typed: int | None, resized: int | None) -> None:
    """Pass on what is typed, and the window's size when *resized* says so: one thread sends everything."""
    watched = [handle for handle in (typed, resized) if handle is not None]
    # The process may have ended meanwhile, which the other end reports.
    with suppress(ConnectionFailed, OSError):
        while watched:
            ready, _, _ = select.select(watched, [], [])
            if resized is not None and resized in ready:
                # Its end is that of the terminal's use.
                if not os.read(resized, _CHUNK):
                    return
                _tell_size(process)
            if typed is None or typed not in ready:
                continue
            if data := os.read(typed, _CHUNK):
                process.write(data)
            else:
                process.end_input()
                watched.remove(typed)


def _tell_size(process: "RemoteProcess") -> None:
    with suppress(ConnectionFailed, OSError):
        size = os.get_terminal_size(sys.stdin.fileno())
        process.resize(size.columns, size.lines)


@contextmanager
def _terminal(*, raw: bool) -> Iterator[int | None]:
    """Hand every key to the remote terminal, Ctrl-C too; yield what becomes readable when it is resized."""
    if not raw:
        yield None
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def resized(_: int, __: FrameType | None) -> None:
        # A handler interrupts whatever runs, also somebody who sends: it only leaves word.
        with suppress(BlockingIOError):
            os.write(writer, b"\0")

    handler = signal.signal(signal.SIGWINCH, resized)
    try:
        tty.setraw(handle)
        yield reader
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
        os.close(writer)
