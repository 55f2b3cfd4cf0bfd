"""``arena-topo list``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import command, option, switch, text
from arena_topo.cli.options.common import (
    KubeFlags,
    Notation,
    OutputForm,
    job_type,
    output_form,
    print_documents,
)
from arena_topo.cli.terminal import columns, print_out, print_table, say, status_paint
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.kube.session import Session
    from arena_topo.model.job_view import JobStatus, JobView
    from arena_topo.output.text import Fitted

_TABLES = ("", "wide")


def _statuses(text: str, flag: str) -> "tuple[JobStatus, ...]":
    from arena_topo.model.job_view import JobStatus

    known = {status.value.lower(): status for status in JobStatus}
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise UsageError(f"{flag}: {word!r} is not a status", hint=f"use one of {', '.join(known)}")
    return tuple(known[word] for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFlags:
    """What ``list`` takes."""

    all_namespaces: bool = switch(
        "-A", "--all-namespaces", "--allNamespaces", help="List the jobs of all namespaces."
    )
    selector: str = text(
        "-l", "--selector", metavar="LABELS", help="Only jobs with these labels, for example team=vision."
    )
    statuses: "tuple[JobStatus, ...]" = option(
        "--status",
        type=Notation(_statuses),
        default=(),
        metavar="STATUS",
        help="Only jobs with this status, such as running or pending; several are separated by commas.",
    )
    type: str = job_type()
    watch: bool = switch("-w", "--watch", help="Print a line for each job that changes, until Ctrl-C.")
    sort_by: str = text(
        "--sort-by",
        metavar="PATH",
        help="Sort by a field of -o json, for example .requestGPUs; newest first by default.",
    )
    output: OutputForm | None = output_form(
        "wide",
        "json",
        "yaml",
        "name",
        help="Output format; wide adds workers, priority and what a job waits for.",
    )
    kube: KubeFlags


@command("list", ListFlags)
def list_command(flags: ListFlags) -> None:
    """List jobs.

    A terminal shows what fits it. In a pipe and with -o wide the columns are Arena's; NODE is the address of
    the node of the launcher, or of a job's first pod.

    \b
      arena-topo list -A
      arena-topo list --status=running,pending
      arena-topo list -l team=vision --sort-by=.requestGPUs
      arena-topo list -o custom-columns=NAME:.name,GPUS:.requestGPUs
      arena-topo list -o json | jq -r '.[].name'
    """
    from arena_topo.jobs.lists import list_jobs
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.session import connect

    form = flags.output or OutputForm("")
    if flags.watch and flags.statuses:
        raise UsageError(
            "--watch shows how the status of jobs changes", hint="leave out --status, or --watch"
        )
    if flags.watch and form.word not in _TABLES:
        raise UsageError(f"--watch prints a table, not {form.word}", hint="leave out -o, or -o wide")
    session = of_type(connect(flags.kube), flags.type)
    if flags.watch:
        _watch(session.patient(), flags, form)
        return
    # Sorting may ask for any field of the document.
    whole = form.word not in (*_TABLES, "name") or bool(flags.sort_by)
    jobs = list_jobs(session, all_namespaces=flags.all_namespaces, selector=flags.selector, whole=whole)
    if flags.statuses:
        jobs = [job for job in jobs if job.status in flags.statuses]
    if whole or form.word == "wide":
        from arena_topo.jobs.queue import with_queues

        jobs = with_queues(session, jobs)
    jobs = _sorted(jobs, flags.sort_by)
    if form.word == "name":
        click.echo("".join(f"{job.full_name}\n" for job in jobs), nl=False)
    elif form.word in _TABLES:
        if jobs:
            _print_table(jobs, flags, wide=form.word == "wide")
        else:
            where = "in any namespace" if flags.all_namespaces else f"in namespace {session.namespace}"
            only = "" if not flags.statuses else " " + " or ".join(one.value for one in flags.statuses)
            say(f"no training jobs{only} {where}")
    else:
        from arena_topo.output.job import job_document

        print_documents(form, [job_document(job) for job in jobs])


def _print_table(jobs: "Sequence[JobView]", flags: ListFlags, *, wide: bool) -> None:
    print_table(_fitted(jobs, flags, wide=wide))


def _fitted(jobs: "Sequence[JobView]", flags: ListFlags, *, wide: bool, watched: bool = False) -> "Fitted":
    """Return the table of *jobs*: Arena's for programs and where it is *wide*, else one for the terminal.

    *watched*: further lines will follow it.
    """
    from arena_topo.output.job import fitted_jobs, job_list_rows
    from arena_topo.output.text import fitted

    width = columns()
    if wide or width is None:
        return fitted(job_list_rows(jobs, namespaces=flags.all_namespaces, wide=wide), None)
    return fitted_jobs(jobs, width, namespaces=flags.all_namespaces, all_columns=watched)


def _watch(session: "Session", flags: ListFlags, form: OutputForm) -> None:
    """Print the table, and then a line for each job whose cells change, its duration apart, until Ctrl-C."""
    from arena_topo.jobs.lists import newest_first
    from arena_topo.jobs.watch import JobWatch
    from arena_topo.output.job import job_row, short_job_row
    from arena_topo.output.text import aligned, column_widths, cut_off

    wide, width = form.word == "wide", columns()
    watch = JobWatch(session, all_namespaces=flags.all_namespaces, selector=flags.selector)
    before = watch.views()
    jobs = _sorted(newest_first(before.values()), flags.sort_by)
    table = _fitted(jobs, flags, wide=wide, watched=True)
    print_table(table)
    widths = column_widths(table.rows)

    def line(job: "JobView", *, deleted: bool = False) -> str:
        for_people = not wide and width is not None
        row = (
            short_job_row(job, namespaces=flags.all_namespaces)
            if for_people
            else job_row(job, namespaces=flags.all_namespaces, wide=wide)
        )
        cells = ["DELETED" if deleted and cell == job.status.value else cell for cell in row]
        cells = [cells[place] for place in table.kept]
        if for_people:
            cells[-1] = cut_off(cells[-1], max((width or 0) - sum(widths), 0))
        return aligned(cells, widths, paint=status_paint())

    while watch.wait():
        now = watch.views()
        for key in sorted(before.keys() | now.keys()):
            if key not in now:
                print_out(line(before[key], deleted=True))
            elif key not in before or _seen(now[key]) != _seen(before[key]):
                print_out(line(now[key]))
        before = now


def _seen(job: "JobView") -> tuple[object, ...]:
    """Return what a new line is printed for."""
    address = job.chief.node_ip if job.chief else ""
    return job.uid, job.status, job.allocated_gpus, job.message, address


def _sorted(jobs: "Sequence[JobView]", path: str) -> "list[JobView]":
    if not path:
        return list(jobs)
    from arena_topo.output.job import job_document
    from arena_topo.output.text import parse_path

    chosen = parse_path(path, "--sort-by")
    documents = [job_document(job) for job in jobs]
    # As in kubectl: an order by something that no job has would look like one.
    if jobs and not any(map(chosen.values, documents)):
        raise UsageError(
            f"--sort-by: no job has a field {path}",
            hint="the fields are those of -o json, such as .name or .requestGPUs",
        )
    pairs = zip(jobs, documents, strict=True)
    return [job for job, _ in sorted(pairs, key=lambda pair: chosen.sort_key(pair[1]))]
