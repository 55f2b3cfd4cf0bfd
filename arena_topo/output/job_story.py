"""What happened to a job, and all about it on one page: what ``events`` and ``describe`` print."""

from collections.abc import Sequence
from datetime import datetime

from arena_topo.model.job.job_view import JobEvent, JobView, PlanView
from arena_topo.model.notation.durations import short_duration
from arena_topo.model.notation.printable import printable
from arena_topo.output.job import INSTANCE_HEADINGS, instance_row, job_head
from arena_topo.output.lines import Paint, tabulate

EVENT_HEADINGS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
"""kubectl's."""

_NONE = "N/A"


def event_row(event: JobEvent, now: datetime) -> tuple[str, ...]:
    """Return the cells of one event."""
    age = short_duration((now - event.last_seen).total_seconds())
    return age, event.kind, event.reason, event.source, event.message


def events_table(events: Sequence[JobEvent], now: datetime, *, paint: Paint | None = None) -> str:
    """Return the table of *events*, in their order."""
    return tabulate([EVENT_HEADINGS, *(event_row(event, now) for event in events)], paint=paint)


def job_page(
    job: JobView, events: Sequence[JobEvent] | None, now: datetime, *, paint: Paint | None = None
) -> str:
    """Return all about *job*: itself, why it does not run, its plan, its instances and its *events*.

    None for *events* says that they may not be read.
    """
    more = [
        ("Workers:", str(job.workers)),
        ("GPUs:", f"{job.allocated_gpus} allocated, {job.requested_gpus} requested"),
        ("MPIJob:", f"kubeflow.org/{job.version}"),
    ]
    parts = [job_head(job, wide=True, paint=paint, more=more)]
    if job.message:
        parts.append(f"\nWhy {job.status.value.lower()}:\n  {printable(job.message)}\n")
    if job.advice:
        parts.append(f"\nNext:\n  {printable(job.advice)}\n")
    if job.plan:
        parts.append(_plan_section(job, job.plan))
    parts.append(_instances_section(job, paint))
    if events is None:
        parts.append("\nEvents:\n  you may not list the events of this namespace\n")
    elif not events:
        parts.append("\nEvents:\n  none, or none any more: a cluster keeps them for an hour\n")
    else:
        table = events_table(events, now, paint=paint)
        parts.append("\nEvents:\n" + _indented(table))
    return "".join(parts)


def _plan_section(job: JobView, plan: PlanView) -> str:
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
        lines.append(_indented(tabulate(rows)))
    return "".join(lines)


def _instances_section(job: JobView, paint: Paint | None) -> str:
    if not job.instances:
        return "\nInstances:\n  none\n"
    rows = [(*INSTANCE_HEADINGS, "REASON")]
    rows += [(*instance_row(instance), instance.reason) for instance in job.instances]
    # Without a reason the line ends with its node.
    table = "".join(f"{line.rstrip()}\n" for line in tabulate(rows, paint=paint).splitlines())
    return "\nInstances:\n" + _indented(table)


def _indented(table: str) -> str:
    return "".join(f"  {line}\n" for line in table.splitlines())
