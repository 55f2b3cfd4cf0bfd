"""``arena-topo logs``."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import command, many, option, switch, text
from arena_topo.cli.options.common import KubeFlags, Notation, Whole, duration, job_names, job_type
from arena_topo.cli.terminal import Elapsed, say, wants_colour
from arena_topo.errors import ArenaTopoError, ExitCode, UsageError

if TYPE_CHECKING:
    from arena_topo.jobs.logs.follow import Instances, LogOptions
    from arena_topo.kube.session import Session
    from arena_topo.model.kind import LogLine


def _instant(text: str, flag: str) -> str:
    """Return a time in RFC 3339 in UTC and whole seconds, as the API server takes it."""
    from arena_topo.model.text.quantity import parse_instant

    try:
        return parse_instant(text).strftime("%Y-%m-%dT%H:%M:%SZ") if text else ""
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsFlags:
    """What ``logs`` takes."""

    names: tuple[str, ...] = job_names(required=False)
    selector: str = text(
        "-l",
        "--selector",
        metavar="LABELS",
        help="Print the logs of the jobs that have these labels now, for example team=vision.",
    )
    follow: bool = switch("-f", "--follow", help="Wait for the log to start, and print it as it grows.")
    instance: str = text(
        "-i",
        "--instance",
        metavar="INSTANCES",
        help="Instances whose logs to print, by name or by worker, as in 0-3,7; by default the launcher, or the first pod of a job without one.",
    )
    role: str = text(
        "--role",
        metavar="ROLE",
        help="Print the logs of all instances of this role.",
    )
    every: bool = switch("--all", help="Print the logs of all instances.")
    container: str = text("-c", "--container", metavar="TEXT", help="Container of the instance.")
    tail: int = option(
        "-t",
        "--tail",
        type=Whole(-1, 10**12),
        default=-1,
        metavar="LINES",
        help="Number of lines to print from the end; -1 for all.",
    )
    since: float | None = option(
        "--since",
        type=duration(least=0.001),
        metavar="DURATION",
        help="Only lines newer than this, for example 5m or 1h30m.",
    )
    since_time: str = option(
        "--since-time",
        type=Notation(_instant),
        default="",
        metavar="TIME",
        help="Only lines after this RFC 3339 time.",
    )
    include: tuple[str, ...] = many(
        "--include", type=click.STRING, metavar="REGEX", help="Only lines that match this; any of several."
    )
    exclude: tuple[str, ...] = many(
        "--exclude", type=click.STRING, metavar="REGEX", help="No lines that match this; none of several."
    )
    output: str = option(
        "-o",
        "--output",
        type=click.Choice(["text", "raw", "json"]),
        default="text",
        help="text names the instance before each line where there are several, raw never does, "
        "json prints an object a line; text by default.",
    )
    strip_control: bool = switch(
        "--strip-control", help="Take control characters and colours out of the lines."
    )
    most: int = option(
        "--max-log-requests",
        type=Whole(1, 10_000),
        default=128,
        metavar="COUNT",
        help="How many logs may be followed at once; 128 by default.",
    )
    timestamps: bool = switch("--timestamps", help="Print the time of each line before it.")
    previous: bool = switch("-p", "--previous", help="Print the log of the container's previous run.")
    type: str = job_type()
    kube: KubeFlags


@command("logs", LogsFlags)
def logs(flags: LogsFlags) -> ExitCode:
    """Print the logs of jobs.

    Of each job it is the launcher's log, where the output of all ranks arrives, or in a job without one that
    of the master or the first pod; or that of the instances which are named. With --follow it waits until
    they have started, says what it waits for, continues through restarts, and ends with the jobs.

    \b
      arena-topo logs -f vgg16
      arena-topo logs vgg16 --tail 20
      arena-topo logs -f vgg16 -i 0-3,7 --exclude '^DEBUG'
      arena-topo logs -f vgg16 resnet50
      arena-topo logs -l team=vision --tail 5
      arena-topo logs -f vgg16 --all -o json | jq -r 'select(.worker == 2).line'
    """
    from arena_topo.jobs.logs.follow import LogOptions, Patterns, compiled, parse_instances
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.session import connect
    from arena_topo.output.log_lines import printer

    if flags.follow and flags.previous:
        raise UsageError("--follow and --previous exclude each other: a previous run has ended")
    if bool(flags.names) == bool(flags.selector):
        raise UsageError(
            "logs takes the names of jobs, or -l LABELS: one of the two",
            hint="for example arena-topo logs vgg16",
        )
    if flags.since and flags.since_time:
        raise UsageError("at most one of --since and --since-time may be used")
    instances = parse_instances(flags.instance, flags.role, every=flags.every)
    patterns = Patterns(
        include=compiled("--include", flags.include), exclude=compiled("--exclude", flags.exclude)
    )
    options = LogOptions(
        tail=flags.tail if flags.tail >= 0 else None,
        # The API server takes whole seconds, and 0 would mean all lines.
        since=max(int(flags.since), 1) if flags.since else None,
        since_time=flags.since_time,
        timestamps=flags.timestamps or flags.output == "json",
        previous=flags.previous,
    )
    failures: dict[str, ArenaTopoError] = {}
    session = of_type(connect(flags.kube), flags.type)
    names = tuple(dict.fromkeys(flags.names)) or _with_labels(session, flags.selector)
    if not names:
        return ExitCode.OK
    lines = _lines(flags, names, session, instances, options, failures)
    printed = printer(
        flags.output,
        prefix=not instances.one or len(names) > 1 or bool(flags.selector),
        colour=wants_colour(sys.stdout),
        strip=flags.strip_control,
        timestamps=flags.timestamps,
    )
    for line in patterns.wanted(lines):
        sys.stdout.buffer.write(printed(line))
        # Through a pipe too, anyone who follows a log sees each line as it comes.
        if flags.follow:
            sys.stdout.buffer.flush()
    sys.stdout.buffer.flush()
    return next((error.exit_code for error in failures.values()), ExitCode.OK)


def _with_labels(session: "Session", selector: str) -> tuple[str, ...]:
    """Return the names of the jobs with the labels of *selector*, in the order in which people count."""
    # Few logs are asked for by labels, and what lists jobs takes its time to import.
    from arena_topo.jobs.lists import list_jobs
    from arena_topo.model.text.words import natural_sort_key

    names = tuple(sorted({job.name for job in list_jobs(session, selector=selector)}, key=natural_sort_key))
    if not names:
        say(f"no training jobs with {selector} in namespace {session.namespace}")
    return names


def _lines(
    flags: LogsFlags,
    names: tuple[str, ...],
    session: "Session",
    instances: "Instances",
    options: "LogOptions",
    failures: dict[str, ArenaTopoError],
) -> Iterator["LogLine"]:
    """Return the lines of one instance or of several.

    What fails for one of several is reported, and kept in *failures*.
    """
    from arena_topo.cli.errors import report
    from arena_topo.jobs.logs.many import JobLogs
    from arena_topo.jobs.logs.wait import Waiter

    def keep(error: ArenaTopoError) -> None:
        # What is refused to one is mostly refused to all, in the same words.
        if failures.setdefault(error.message, error) is error:
            report(error)

    log = JobLogs(
        session=session,
        names=names,
        instances=instances,
        container=flags.container,
        options=options,
        waiter=Waiter(say, Elapsed().sleep),
        report=keep,
        most=flags.most,
    )
    return log.follow() if flags.follow else log.read()
