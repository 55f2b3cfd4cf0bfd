"""What happened to a job, and all about it on one page: what ``events`` and ``describe`` print."""

from collections.abc import Sequence
from datetime import datetime

from arena_topo.model.job.job_view import JobEvent, JobView, PlanView
from arena_topo.model.notation.durations import short_duration
from arena_topo.model.notation.printable import printable
from arena_topo.output.job import INSTANCE_HEADINGS, INSTANCE_SPARE, instance_row, job_head, start_line
from arena_topo.output.lines import Fitted, Paint, fitted, tabulate

EVENT_HEADINGS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
"""kubectl's."""

_NONE = "N/A"


def event_row(event: JobEvent, now: datetime) -> tuple[str, ...]:
    """Return the cells of one event."""
    age = short_duration((now - event.last_seen).total_seconds())
    return age, event.kind, event.reason, event.source, event.message


def fitted_events(events: Sequence[JobEvent], now: datetime, width: int | None = None) -> Fitted:
    """Return the table of *events*, in their order, as far as *width* has room for it."""
    rows = [EVENT_HEADINGS, *(event_row(event, now) for event in events)]
    return fitted(rows, width, spare=("TYPE", "LAST SEEN", "REASON"), words=True, least=32)


def job_page(
    job: JobView,
    events: Sequence[JobEvent] | None,
    now: datetime,
    *,
    paint: Paint | None = None,
    width: int | None = None,
) -> str:
    """Return all about *job*: itself, why it does not run, its plan, its instances and its *events*.

    None for *events* says that they may not be read; *width* is the room of the terminal, None for no bound.
    """
    room = None if width is None else width - 2
    more = [
        ("Workers:", str(job.workers)),
        ("GPUs:", f"{job.allocated_gpus} allocated, {job.requested_gpus} requested"),
        (f"{job.kind}:", f"{job.group}/{job.version}"),
    ]
    parts = [job_head(job, wide=True, paint=paint, more=more)]
    if job.message:
        parts.append(f"\nWhy {job.status.value.lower()}:\n  {printable(job.message)}\n")
    if job.advice:
        parts.append(f"\nNext:\n  {printable(job.advice)}\n")
    if job.plan:
        parts.append(_plan_section(job, job.plan, room))
    if start := start_line(job):
        parts.append(f"\nStart:\n  {printable(start)}\n")
    parts.append(_instances_section(job, paint, room))
    if events is None:
        parts.append("\nEvents:\n  you may not list the events of this namespace\n")
    elif not events:
        parts.append("\nEvents:\n  none, or none any more: a cluster keeps them for an hour\n")
    else:
        parts.append("\nEvents:\n" + _section(fitted_events(events, now, room), paint))
    return "".join(parts)


def _plan_section(job: JobView, plan: PlanView, room: int | None) -> str:
    lines = [f"\nPlan:\n  {printable(plan.message)}\n"]
    if plan.workers:
        nodes = {instance.name: instance.node for instance in job.instances}
        rows = [("WORKER", "PLANNED NODE", "PLANNED GPUS", "RUNS ON")]
        rows += [
            (
                worker.name,
                worker.node,
                "any" if worker.gpus is None else ",".join(map(str, worker.gpus)) or "none",
                nodes.get(worker.name) or _NONE,
            )
            for worker in plan.workers
        ]
        lines.append(_section(fitted(rows, room, spare=("PLANNED GPUS",))))
    return "".join(lines)


def _instances_section(job: JobView, paint: Paint | None, room: int | None) -> str:
    if not job.instances:
        return "\nInstances:\n  none\n"
    rows = [(*INSTANCE_HEADINGS, "REASON")]
    rows += [(*instance_row(instance), instance.reason) for instance in job.instances]
    # Where no instance has one, a column for reasons takes room from others.
    if room is not None and not any(instance.reason for instance in job.instances):
        rows = [row[:-1] for row in rows]
    table = fitted(rows, room, spare=(*INSTANCE_SPARE, "NODE"), words=rows[0][-1] == "REASON")
    return "\nInstances:\n" + _section(table, paint)


def _section(table: Fitted, paint: Paint | None = None) -> str:
    """Return *table* below its heading, and what of it is hidden."""
    # Without a reason the line ends with its node.
    lines = [line.rstrip() for line in tabulate(table.rows, paint=paint).splitlines()]
    note = table.note()
    return "".join(f"  {line}\n" for line in (*lines, *([f"({note})"] if note else [])))
