"""``arena-topo get``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.command import command, switch
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.options.notations import job_name, job_type
from arena_topo.cli.options.output_form import OutputForm, output_form, print_documents
from arena_topo.cli.terminal import columns, print_out, say, status_paint
from arena_topo.errors import UsageError
from arena_topo.model.notation.printable import printable

if TYPE_CHECKING:
    from arena_topo.kube.session import Session
    from arena_topo.model.job.job_view import Instance, JobView

_TABLES = ("", "wide")


@dataclass(frozen=True, slots=True, kw_only=True)
class GetFlags:
    """What ``get`` takes."""

    name: str = job_name()
    type: str = job_type()
    output: OutputForm | None = output_form(
        "wide",
        "json",
        "yaml",
        "name",
        help="Output format; wide adds when the job was created and when it ended.",
    )
    events: bool = switch("-e", "--events", help="Show what happened to the job and its pods.")
    gpus: bool = switch("-g", "--gpus", help="Show how busy the GPUs are, as Prometheus has measured it.")
    watch: bool = switch(
        "-w", "--watch", help="Print a line for each instance that changes, until the job has ended."
    )
    kube: KubeFlags


@command("get", GetFlags)
def get(flags: GetFlags) -> None:
    """Show a job and its instances.

    \b
      arena-topo get vgg16 --type mpijob
      arena-topo get vgg16 -o json | jq -r .status
      arena-topo get vgg16 -o jsonpath='{.instances[?(@.chief==true)].node}'
    """
    from arena_topo.jobs.lookup import fetch_job_view, of_type
    from arena_topo.kube.session import connect

    session, form = of_type(connect(flags.kube), flags.type), flags.output or OutputForm("")
    if flags.watch:
        _watch(session, flags, form)
        return
    job = fetch_job_view(session, flags.name)
    # As kubectl prints it, for pipes into kubectl.
    if form.word == "name":
        click.echo(job.full_name)
    elif form.word in _TABLES:
        _print_job(session, job, flags, wide=form.word == "wide")
    else:
        from arena_topo.manifest.fresh import as_submitted
        from arena_topo.output.job import job_document

        # With its manifest a saved job can be run again after it was deleted.
        shown = {**job_document(job), "manifest": as_submitted(job.manifest)}
        print_documents(form, [shown], single=True)


def _print_job(session: "Session", job: "JobView", flags: GetFlags, *, wide: bool) -> None:
    from arena_topo.output.job import fitted_instances, job_table, start_line

    instances = fitted_instances(job, None if wide else columns())
    print_out(job_table(job, wide=wide, paint=status_paint(), instances=instances))
    if note := instances.note("-o wide shows them"):
        say(note)
    if flags.gpus or flags.events:
        from arena_topo.cli.commands.arena.job_details import print_events, print_gpus

        # In Arena's order.
        if flags.gpus:
            print_gpus(session, job)
        if flags.events:
            print_events(session, job)
    # What follows is not part of the table, which scripts may read: it goes to stderr.
    if job.message:
        say(f"\n{job.status.value.lower()}: {printable(job.message)}")
    if job.plan:
        say(f"plan: {printable(job.plan.message)}", style="warning" if job.plan.moved else "")
    if start := start_line(job):
        say(f"start: {printable(start)}")
    if job.advice:
        say(f"hint: {printable(job.advice)}", style="hint")


def _watch(session: "Session", flags: GetFlags, form: OutputForm) -> None:
    """Print the job, and then its status and each instance when they change, until it has ended or is deleted."""
    from arena_topo.jobs.lookup import job_not_found, with_queue
    from arena_topo.jobs.reading.watch import JobWatch
    from arena_topo.output.job import fitted_instances, instance_row
    from arena_topo.output.lines import aligned, column_widths

    if form.word not in _TABLES:
        raise UsageError(f"--watch prints a table, not {form.word}", hint="leave out -o, or -o wide")
    name = flags.name
    watch, key = JobWatch(session, name=name), (session.namespace, name)
    job = watch.views().get(key)
    if job is None:
        raise job_not_found(session, name)
    # What Kueue says of it is printed once: the lines that follow show what changes of the job itself.
    _print_job(session, with_queue(session, job), flags, wide=form.word == "wide")
    table = fitted_instances(job, None if form.word == "wide" else columns())
    widths = column_widths(table.rows)
    while not job.status.is_final:
        watch.wait()
        before, job = job, watch.views().get(key)
        if job is None:
            say(f"the job {name} was deleted")
            return
        if job.status is not before.status:
            print_out(f"Status: {job.status.value}\n")
            if job.message:
                say(f"{job.status.value.lower()}: {printable(job.message)}")
        known = {instance.name: instance for instance in before.instances}
        for instance in job.instances:
            if instance.name not in known or _seen(instance) != _seen(known.pop(instance.name)):
                cells = [cell for place, cell in enumerate(instance_row(instance)) if place in table.kept]
                print_out(aligned(("  " + cells[0], *cells[1:]), widths, paint=status_paint()))


def _seen(instance: "Instance") -> tuple[str, str]:
    """Return what a new line is printed for."""
    return instance.status, instance.node
