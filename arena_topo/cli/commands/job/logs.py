"""``arena-topo logs``."""

import sys

import click

from arena_topo.cli.options.job_type import type_option
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.notation.durations import parse_duration, parse_instant


@click.command()
@click.argument("name", metavar="JOB")
@click.option("-f", "--follow", is_flag=True, help="Wait for the log to start, and print it as it grows.")
@click.option(
    "-i", "--instance", default="", metavar="TEXT", help="Instance to print; the launcher by default."
)
@click.option("-c", "--container", default="", metavar="TEXT", help="Container of the instance.")
@click.option(
    "-t", "--tail", type=int, default=-1, metavar="LINES", help="Lines of the end to print; -1 for all."
)
@click.option(
    "--since", default="", metavar="DURATION", help="Only lines newer than this, for example 5m or 1h30m."
)
@click.option("--since-time", default="", metavar="TIME", help="Only lines after this RFC 3339 time.")
@click.option("--timestamps", is_flag=True, help="Print the time of every line before it.")
@click.option("-p", "--previous", is_flag=True, help="Print the log of the container's previous run.")
@type_option
@kube_options
def logs(
    name: str,
    follow: bool,
    instance: str,
    container: str,
    tail: int,
    since: str,
    since_time: str,
    timestamps: bool,
    previous: bool,
    connection: ConnectionFlags,
) -> None:
    """Print the log of a job.

    Following waits until the container has started, says what it waits for, and ends when the container does.

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

    if follow and previous:
        raise UsageError("--follow and --previous exclude each other: a past run grows no more")
    options = LogOptions(
        tail=tail if tail >= 0 else None,
        since=_since(since, since_time),
        since_time=_since_time(since_time),
        timestamps=timestamps,
        previous=previous,
    )
    session, wanted = connect(connection), LogTarget(instance, container)
    lines = (
        follow_log(session, name, wanted, options, Waiter(say))
        if follow
        else read_log(session, name, wanted, options)
    )
    for line in lines:
        sys.stdout.buffer.write(line)
        if follow:
            sys.stdout.buffer.flush()
    sys.stdout.buffer.flush()


def _since(text: str, since_time: str) -> int | None:
    if not text:
        return None
    if since_time:
        raise UsageError("at most one of --since and --since-time may be used")
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise UsageError(
            f"--since: {text!r} is not a duration", hint="write for example 5s, 2m, 3h or 1h1m1s"
        )
    return max(int(seconds), 1)


def _since_time(text: str) -> str:
    try:
        return parse_instant(text).strftime("%Y-%m-%dT%H:%M:%SZ") if text else ""
    except ValueError as error:
        raise UsageError(f"--since-time: {error}") from error
