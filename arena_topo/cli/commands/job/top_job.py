"""``arena-topo top job``."""

from dataclasses import dataclass

import click

from arena_topo.cli.command import command, output_format, switch, text
from arena_topo.cli.commands.cluster.top_watch import check_shown_alone, watch_cluster, watch_switch
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import check_refreshed, job_names, job_type, refresh_switch
from arena_topo.cli.terminal import columns, print_page, print_table, shown_again, status_paint
from arena_topo.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopJobFlags:
    """What ``top job`` takes."""

    names: tuple[str, ...] = job_names(required=False)
    all_namespaces: bool = switch(
        "-A", "--all-namespaces", "--allNamespaces", help="Show the jobs of all namespaces."
    )
    instance: str = text("-i", "--instance", metavar="TEXT", help="Only this instance of the job.")
    type: str = job_type()
    output: str = output_format("wide", "json", "yaml")
    refresh: bool = refresh_switch()
    watch: bool = watch_switch()
    kube: KubeFlags


@command("job", TopJobFlags)
def job(flags: TopJobFlags) -> int | None:
    """Show the GPUs of jobs, or of the instances of one job.

    Those that request most GPUs stand first.

    \b
      arena-topo top job -A
      arena-topo top job vgg16
    """
    if len(flags.names) > 1:
        raise UsageError("top job shows one job, or all of them", hint="arena-topo top job lists all jobs")
    if flags.instance and not flags.names:
        raise UsageError(
            "--instance is one of a job: name the job too", hint="arena-topo top job JOB -i INSTANCE"
        )
    if flags.watch:
        check_shown_alone(flags.output, flags.names, refresh=flags.refresh)
        return watch_cluster(flags.kube, "jobs")
    if flags.refresh:
        check_refreshed(flags.output)
        shown_again(lambda: _show_jobs(flags))
    _show_jobs(flags)
    return None


def _show_jobs(flags: TopJobFlags) -> None:
    from arena_topo.jobs.lookup import fetch_job_view, of_type
    from arena_topo.jobs.reading.job_list import list_jobs
    from arena_topo.kube.session import connect
    from arena_topo.output.job_list import SPARE, by_gpus, top_job_table, top_jobs_rows, top_jobs_total
    from arena_topo.output.lines import WIDER, fitted

    session, table = of_type(connect(flags.kube), flags.type), flags.output == "wide"
    jobs = (
        [fetch_job_view(session, flags.names[0])]
        if flags.names
        else list_jobs(session, all_namespaces=flags.all_namespaces, whole=not table)
    )
    if not table:
        from arena_topo.output.documents import document
        from arena_topo.output.job import job_document

        click.echo(document([job_document(one) for one in by_gpus(jobs)], flags.output), nl=False)
    elif flags.names:
        print_page(top_job_table(jobs[0], instance=flags.instance, paint=status_paint(), width=columns()))
    else:
        rows = top_jobs_rows(jobs, namespaces=flags.all_namespaces)
        print_table(fitted(rows, columns(), spare=SPARE), more=WIDER)
        print_page(top_jobs_total(jobs))
