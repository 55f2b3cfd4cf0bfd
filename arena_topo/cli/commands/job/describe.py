"""``arena-topo describe``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import command
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type
from arena_topo.cli.terminal import columns, print_page, status_paint

if TYPE_CHECKING:
    from arena_topo.kube.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFlags:
    """What ``describe`` takes."""

    name: str = job_name()
    type: str = job_type()
    kube: KubeFlags


@command("describe", DescribeFlags)
def describe(flags: DescribeFlags) -> None:
    """Show all about a job: its plan, its instances, why it does not run, and its events.

    \b
      arena-topo describe vgg16
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.session import connect

    print_page(page_of(of_type(connect(flags.kube), flags.type), flags.name))


def page_of(session: "Session", name: str) -> str:
    """Return all about the job *name*, with colours where stdout wants them. Raises ``NotFound``."""
    from datetime import UTC, datetime

    from arena_topo.errors import Forbidden
    from arena_topo.jobs.lookup import fetch_job_view
    from arena_topo.jobs.status.events import job_events
    from arena_topo.output.job_story import job_page

    job = fetch_job_view(session, name)
    try:
        events = job_events(session, job)
    # The rest is worth reading without them.
    except Forbidden:
        events = None
    return job_page(job, events, datetime.now(UTC), paint=status_paint(), width=columns())
