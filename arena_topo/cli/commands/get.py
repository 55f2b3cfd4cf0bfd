"""``arena-topo get``."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import command, output_format, switch
from arena_topo.cli.options.common import (
    KubeFlags,
    OutputForm,
    job_name,
    job_names,
    job_type,
    output_form,
    print_documents,
)
from arena_topo.cli.terminal import columns, print_out, print_page, print_table, say, status_paint, warn
from arena_topo.errors import ApiError, DocumentError, ExitCode, UsageError
from arena_topo.model.job_view import JobStatus, JobView
from arena_topo.model.text.words import printable

if TYPE_CHECKING:
    from arena_topo.cluster.gpu_metrics import Prometheus, Uses
    from arena_topo.kube.session import Session
    from arena_topo.model.job_view import Instance

_TABLES = ("", "wide")


@dataclass(frozen=True, slots=True, kw_only=True)
class GetFlags:
    """What ``get`` takes."""

    names: tuple[str, ...] = job_names()
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
def get(flags: GetFlags) -> ExitCode:
    """Show jobs and their instances.

    \b
      arena-topo get vgg16 --type mpijob
      arena-topo get vgg16 resnet50
      arena-topo get vgg16 -o json | jq -r .status
      arena-topo get vgg16 -o custom-columns=NODES:.instances[*].node
    """
    from arena_topo.cli.errors import for_each
    from arena_topo.jobs.lookup import fetch_job_view, of_type
    from arena_topo.kube.session import connect

    form = flags.output or OutputForm("")
    if flags.watch and len(set(flags.names)) > 1:
        raise UsageError("--watch follows one job", hint="arena-topo list --watch follows all of them")
    if flags.watch and form.word not in _TABLES:
        raise UsageError(f"--watch prints a table, not {form.word}", hint="leave out -o, or -o wide")
    session = of_type(connect(flags.kube), flags.type)
    if flags.watch:
        _watch(session.patient(), flags.names[0], flags, form)
        return ExitCode.OK
    documents: list[dict[str, object]] = []

    def shown(name: str) -> None:
        job = fetch_job_view(session, name)
        # As kubectl prints it, for pipes into kubectl.
        if form.word == "name":
            click.echo(job.full_name)
        elif form.word in _TABLES:
            if name != flags.names[0]:
                click.echo()
            _print_job(session, job, flags, wide=form.word == "wide")
        else:
            from arena_topo.output.job import saved_document

            documents.append(saved_document(job))

    code = for_each(flags.names, shown)
    if documents:
        print_documents(form, documents, single=len(set(flags.names)) == 1)
    return code


def _print_job(session: "Session", job: "JobView", flags: GetFlags, *, wide: bool) -> None:
    from arena_topo.output.job import fitted_instances, job_table, start_line

    instances = fitted_instances(job, None if wide else columns())
    print_out(job_table(job, wide=wide, paint=status_paint(), instances=instances))
    if note := instances.note("-o wide shows them"):
        say(note)
    if flags.gpus or flags.events:
        # In Arena's order.
        if flags.gpus:
            _print_gpus(session, job)
        if flags.events:
            _print_events(session, job)
    # What follows is not part of the table, which scripts may read: it goes to stderr.
    if job.message and not (job.plan and job.plan.message == job.message):
        say(f"\n{job.status.value.lower()}: {printable(job.message)}")
    if job.plan:
        say(f"plan: {printable(job.plan.message)}", style="warning" if job.plan.moved else "")
    if job.moved:
        say(printable(job.moved), style="warning")
    if start := start_line(job):
        say(f"start: {printable(start)}")
    _print_silence(session, job)
    if job.advice:
        say(f"hint: {printable(job.advice)}", style="hint")


def _print_silence(session: "Session", job: "JobView") -> None:
    # Scripts that want to know ask why.
    if job.status is not JobStatus.RUNNING or not columns():
        return
    from arena_topo.jobs.progress import no_progress

    if silence := no_progress(session, job):
        say(f"{printable(silence)}", style="warning")
        say(f"hint: arena-topo why {printable(job.name)} tells which rank the others wait for", style="hint")


def _watch(session: "Session", name: str, flags: GetFlags, form: OutputForm) -> None:
    """Print the job, then its status and each instance as they change, until it has ended or is deleted."""
    from arena_topo.jobs.lookup import job_not_found, with_queue
    from arena_topo.jobs.watch import JobWatch
    from arena_topo.output.job import fitted_instances, instance_row
    from arena_topo.output.text import aligned, column_widths

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


# ``arena-topo describe``.


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFlags:
    """What ``describe`` takes."""

    name: str = job_name()
    events: bool = switch("--events", help="Print each event, where alike ones are counted.")
    output: str = output_format("text", "json", "yaml")
    type: str = job_type()
    kube: KubeFlags


@command("describe", DescribeFlags)
def describe(flags: DescribeFlags) -> None:
    """Show all about a job: plan, instances, events, why it waits.

    \b
      arena-topo describe vgg16
      arena-topo describe vgg16 -o json | jq .events
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.session import connect

    session = of_type(connect(flags.kube), flags.type)
    if flags.output == "text":
        print_page(page_of(session, flags.name, all_events=flags.events))
        return
    from arena_topo.jobs.lookup import described_job
    from arena_topo.output.job import described_document
    from arena_topo.output.text import document

    click.echo(document(described_document(*described_job(session, flags.name)), flags.output), nl=False)


def page_of(session: "Session", name: str, *, all_events: bool = False) -> str:
    """Return all about the job *name*, with colours where stdout wants them. Raises ``NotFound``."""
    from arena_topo.jobs.lookup import described_job
    from arena_topo.output.job import job_page

    job, events = described_job(session, name)
    now = session.now()
    return job_page(job, events, now, all_events=all_events, paint=status_paint(), width=columns())


# ``arena-topo events``.


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsFlags:
    """What ``events`` takes."""

    name: str = job_name()
    watch: bool = switch("-w", "--watch", help="Print further events as they come, until Ctrl-C.")
    type: str = job_type()
    kube: KubeFlags


@command("events", EventsFlags)
def events(flags: EventsFlags) -> None:
    """Show what happened to a job and its pods.

    The oldest event stands first. A cluster keeps events for an hour, also those of a job that is gone.

    \b
      arena-topo events vgg16
      arena-topo events vgg16 -w
    """
    from arena_topo.jobs.lookup import of_type
    from arena_topo.jobs.watch import EventWatch
    from arena_topo.kube.session import connect
    from arena_topo.output.job import event_row, fitted_events
    from arena_topo.output.text import WIDER, aligned, column_widths

    session = of_type(connect(flags.kube), flags.type)
    watch = EventWatch(session.patient() if flags.watch else session, flags.name, follow=flags.watch)
    now, paint = session.now(), status_paint()
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
            cells = event_row(event, session.now())
            print_out(aligned([cells[place] for place in table.kept], widths, paint=paint))


# What ``get -e`` and ``get -g`` print below a job's table, and ``top node --metric`` below the nodes'.


def _print_gpus(session: "Session", job: JobView) -> None:
    """Print how busy the GPUs of *job* are; nothing, like Arena, if it has none or has succeeded."""
    from arena_topo.cluster.gpu_metrics import uses_of_pods
    from arena_topo.output.job import gpus_text

    if not job.requested_gpus or job.status is JobStatus.SUCCEEDED:
        return
    pods = [instance.name for instance in job.instances if instance.gpus]
    print_page(gpus_text(job, _measured(session, uses_of_pods, pods), width=columns()))


def print_node_gpus(session: "Session", nodes: Sequence[str]) -> None:
    """Print how busy the GPUs of *nodes* are."""
    from arena_topo.cluster.gpu_metrics import uses_of_nodes
    from arena_topo.output.job import node_gpus_text

    print_page(node_gpus_text(nodes, _measured(session, uses_of_nodes, nodes), width=columns()))


def _measured(
    session: "Session", ask: "Callable[[Prometheus, Sequence[str]], Uses]", names: Sequence[str]
) -> Mapping[str, Mapping[str, tuple[float, float, float]]]:
    """Return what Prometheus says of *names*, nothing where it says nothing: the rest is shown anyway."""
    server = _prometheus(session)
    if server is None:
        return {}
    try:
        found = ask(server, names)
    except DocumentError as error:
        warn(error.message)
        return {}
    return {
        name: {index: (use.duty, use.used, use.total) for index, use in by_index.items()}
        for name, by_index in found.items()
    }


def _print_events(session: "Session", job: JobView) -> None:
    """Print what happened to *job* and its pods."""
    from arena_topo.jobs.status import job_events
    from arena_topo.output.job import events_text

    try:
        events = job_events(session, job)
    except ApiError as error:
        # The sentence is Arena's.
        print_page(f"\nEvents:\n  Get job events failed, due to: {error.message}\n")
        return
    rows = [
        (event.source, event.kind, event.last_seen, f"[{event.reason}] {event.message}") for event in events
    ]
    print_page(events_text(rows, now=session.now(), width=columns()))


def _prometheus(session: "Session") -> "Prometheus | None":
    """Return the Prometheus that Arena would ask: the one that is named, else one in the cluster."""
    from arena_topo.cli.defaults import read_arena_config
    from arena_topo.cluster.gpu_metrics import find_prometheus, named_prometheus

    config = {key: setting.values[0] for key, setting in read_arena_config().common.items()}
    address = os.environ.get("PROMETHEUS_ADDRESS") or config.get("prometheus_address", "")
    token = os.environ.get("PROMETHEUS_TOKEN") or config.get("prometheus_token", "")
    if address:
        return named_prometheus(address, token)
    found = find_prometheus(session)
    if found is None:
        say("no GPU is measured: no Prometheus is found, and PROMETHEUS_ADDRESS names none")
    return found
