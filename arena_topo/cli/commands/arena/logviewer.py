"""``arena-topo logviewer``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import command
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type
from arena_topo.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class LogviewerFlags:
    """What ``logviewer`` takes."""

    name: str = job_name()
    type: str = job_type()
    kube: KubeFlags


@command("logviewer", LogviewerFlags)
def logviewer(flags: LogviewerFlags) -> None:
    """Show the address of the page that has a job's log.

    It is a page of kubernetes-dashboard, where the cluster has one: looked for in the job's namespace, in Arena's, in
    kube-system and in kubernetes-dashboard.
    """
    from arena_topo.jobs.log_viewer import log_viewer_url
    from arena_topo.jobs.lookup import fetch_job_view, of_type
    from arena_topo.kinds.table import kind_of
    from arena_topo.kube.session import connect
    from arena_topo.model.job.kind import chief_title
    from arena_topo.model.notation.printable import printable

    session = of_type(connect(flags.kube), flags.type)
    job = fetch_job_view(session, flags.name)
    kind = kind_of(job.manifest)
    if job.chief is None:
        raise NotFound(
            f"{chief_title(kind, job.manifest)} of job {flags.name} does not exist yet, or any more",
            hint=f"see arena-topo get {flags.name}",
        )
    url = log_viewer_url(
        session,
        flags.name,
        job.chief,
        container=kind.container,
        arena_namespace=flags.kube.arena.arena_namespace,
    )
    click.echo(f"Your LogViewer will be available on:\n{printable(url)}")
