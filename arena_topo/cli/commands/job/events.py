"""``arena-topo events``."""

from dataclasses import dataclass

from arena_topo.cli.command import command, switch
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type
from arena_topo.cli.terminal import columns, print_out, print_table, say, status_paint


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsFlags:
    """What ``events`` takes."""

    name: str = job_name()
    watch: bool = switch("-w", "--watch", help="Print further events as they come, until Ctrl-C.")
    type: str = job_type()
    kube: KubeFlags


@command("events", EventsFlags)
def events(flags: EventsFlags) -> None:
    """Show what happened to a job, its pods, and what else belongs to it.

    The oldest event stands first. A cluster keeps events for an hour, also those of a job that is gone.

    \b
      arena-topo events vgg16
      arena-topo events vgg16 -w
    """
    from datetime import UTC, datetime

    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.reading.job_events import EventWatch
    from arena_topo.kube.session import connect
    from arena_topo.output.job_story import event_row, fitted_events
    from arena_topo.output.lines import WIDER, aligned, column_widths

    session = of_type(connect(flags.kube), flags.type)
    watch = EventWatch(session, flags.name, follow=flags.watch)
    now, paint = datetime.now(UTC), status_paint()
    if not watch.first and not flags.watch:
        from arena_topo.jobs.lookup import find_job

        # A job that does not exist is told apart from one to which nothing happened.
        find_job(session, flags.name)
        say(f"nothing happened to the job {flags.name} lately")
        return
    table = fitted_events(watch.first, now, columns())
    print_table(table, more=WIDER)
    widths = column_widths(table.rows)
    while flags.watch:
        for event in watch.wait():
            cells = event_row(event, datetime.now(UTC))
            print_out(aligned([cells[place] for place in table.kept], widths, paint=paint))
