"""``arena-topo logs``."""

import sys
from dataclasses import dataclass

import click

from arena_topo.cli.command import command, option, switch, text
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import Duration, Notation, job_name, job_type
from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError


class Instant(Notation[str]):
    """A time in RFC 3339, in UTC and whole seconds, as the API server takes it."""

    name = "time"

    def read(self, text: str, flag: str) -> str:
        """Return the time."""
        from arena_topo.model.notation.durations import parse_instant

        try:
            return parse_instant(text).strftime("%Y-%m-%dT%H:%M:%SZ") if text else ""
        except ValueError as error:
            raise UsageError(f"{flag}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsFlags:
    """What ``logs`` takes."""

    name: str = job_name()
    follow: bool = switch("-f", "--follow", help="Wait for the log to start, and print it as it grows.")
    instance: str = text(
        "-i", "--instance", metavar="TEXT", help="Instance whose log to print; the launcher by default."
    )
    container: str = text("-c", "--container", metavar="TEXT", help="Container of the instance.")
    tail: int = option(
        "-t",
        "--tail",
        type=click.INT,
        default=-1,
        metavar="LINES",
        help="Number of lines to print from the end; -1 for all.",
    )
    since: float | None = option(
        "--since",
        type=Duration(least=0.001),
        metavar="DURATION",
        help="Only lines newer than this, for example 5m or 1h30m.",
    )
    since_time: str = option(
        "--since-time",
        type=Instant(),
        default="",
        metavar="TIME",
        help="Only lines after this RFC 3339 time.",
    )
    timestamps: bool = switch("--timestamps", help="Print the time of each line before it.")
    previous: bool = switch("-p", "--previous", help="Print the log of the container's previous run.")
    type: str = job_type()
    kube: KubeFlags


@command("logs", LogsFlags)
def logs(flags: LogsFlags) -> None:
    """Print the log of a job.

    With --follow it waits until the container has started, says what it waits for, and ends when the container does.

    \b
      arena-topo logs -f vgg16
      arena-topo logs vgg16 --tail 20
      arena-topo logs vgg16 -i vgg16-worker-2
    """
    from arena_topo.jobs.logs.follow import LogOptions
    from arena_topo.jobs.logs.follow import follow as follow_log
    from arena_topo.jobs.logs.follow import read as read_log
    from arena_topo.jobs.logs.wait import LogTarget, Waiter
    from arena_topo.kube.session import connect

    if flags.follow and flags.previous:
        raise UsageError("--follow and --previous exclude each other: a previous run has ended")
    if flags.since and flags.since_time:
        raise UsageError("at most one of --since and --since-time may be used")
    options = LogOptions(
        tail=flags.tail if flags.tail >= 0 else None,
        # The API server takes whole seconds, and 0 would mean all lines.
        since=max(int(flags.since), 1) if flags.since else None,
        since_time=flags.since_time,
        timestamps=flags.timestamps,
        previous=flags.previous,
    )
    session, target = connect(flags.kube), LogTarget(flags.instance, flags.container)
    lines = (
        follow_log(session, flags.name, target, options, Waiter(say))
        if flags.follow
        else read_log(session, flags.name, target, options)
    )
    # Logs are bytes of any encoding, and pass through as they are.
    for line in lines:
        sys.stdout.buffer.write(line)
        # Through a pipe too, whoever follows a log sees each line as it comes.
        if flags.follow:
            sys.stdout.buffer.flush()
    sys.stdout.buffer.flush()
