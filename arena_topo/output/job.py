"""A job as Arena prints it: the table of its guides, the wide table of 0.15.5, and the keys of its JSON.

Source: kubeflow/arena 0.15.5, pkg/training/get.go and pkg/apis/types/training.go.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from arena_topo.model.job.job_view import Instance, JobView, PlanView, QueueView
from arena_topo.model.notation.durations import short_duration
from arena_topo.output.lines import Fitted, Paint, fitted, tabulate

_NONE = "N/A"
INSTANCE_HEADINGS: tuple[str, ...] = ("NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE")

INSTANCE_SPARE = ("IS_CHIEF", "AGE", "GPU(Requested)")
"""The headings of columns that go where there is no room, the first first."""


def job_table(
    job: JobView, *, wide: bool = False, paint: Paint | None = None, instances: Fitted | None = None
) -> str:
    """Return the table of *job*; *wide* adds when it was created and when it ended, in local time.

    The guides print the values one blank after the widest label, Arena 0.15.5 two. *instances* is the table of its
    instances where that has less room than it takes.
    """
    table = tabulate((instances or fitted_instances(job, None)).rows, paint=paint)
    return f"{job_head(job, wide=wide, paint=paint)}\nInstances:\n{table}"


def fitted_instances(job: JobView, width: int | None) -> Fitted:
    """Return the table of the instances of *job* as far as *width* has room for it."""
    rule = tuple("-" * len(header) for header in INSTANCE_HEADINGS)
    rows = [INSTANCE_HEADINGS, rule, *map(instance_row, job.instances)]
    return fitted([("  " + row[0], *row[1:]) for row in rows], width, spare=INSTANCE_SPARE)


def job_head(
    job: JobView, *, wide: bool, paint: Paint | None = None, more: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the lines about *job* itself, and *more* behind them."""
    head = [
        ("Name:", job.name),
        ("Status:", job.status.value),
        ("Namespace:", job.namespace),
        ("Priority:", job.priority or _NONE),
        ("Trainer:", job.kind.upper()),
        ("Duration:", short_duration(job.duration)),
    ]
    if wide:
        head += [("CreateTime:", local_time(job.created)), ("EndTime:", local_time(job.ended))]
    head += more
    return tabulate(head, padding=2 if wide else 1, paint=paint)


def instance_row(instance: Instance) -> tuple[str, ...]:
    """Return the cells of one instance."""
    return (
        instance.name,
        instance.status,
        short_duration(instance.age),
        "true" if instance.chief else "false",
        str(instance.gpus),
        instance.node or _NONE,
    )


def local_time(moment: datetime | None) -> str:
    """Return *moment* as Arena prints it, empty where there is none."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def job_document(job: JobView) -> dict[str, Any]:
    """Return *job* under Arena's keys, in Arena's order, for JSON and YAML; what Arena does not have comes after them."""
    chief = job.chief
    # Keys of Arena's that an MPI job has no value for stay, empty, for scripts that read them.
    return {
        "uuid": job.uid,
        "name": job.name,
        "namespace": job.namespace,
        "duration": _seconds(job.duration),
        "status": job.status.value,
        "trainer": job.kind.lower(),
        "tensorboard": "",
        "chiefName": chief.name if chief else "",
        "instances": [_instance_document(instance) for instance in job.instances],
        "priority": job.priority or _NONE,
        "requestGPUs": job.requested_gpus,
        "allocatedGPUs": job.allocated_gpus,
        "creationTimestamp": int(job.created.timestamp()),
        "modelName": "",
        "modelVersion": "",
        "modelSource": "",
        "apiVersion": f"{job.group}/{job.version}",
        "workers": job.workers,
        "endTimestamp": int(job.ended.timestamp()) if job.ended else None,
        "message": job.message,
        "advice": job.advice,
        "plan": _plan_document(job.plan) if job.plan else None,
        "queue": _queue_document(job.queue) if job.queue else None,
    }


def _plan_document(plan: PlanView) -> dict[str, Any]:
    return {
        "message": plan.message,
        "stage": plan.stage,
        "enforcement": plan.enforcement,
        "gpuEnforcement": plan.gpu_enforcement,
        "level": plan.level,
        "domain": plan.domain,
        "moved": list(plan.moved),
        "workers": [
            {
                "name": worker.name,
                "node": worker.node,
                "gpus": None if worker.gpus is None else list(worker.gpus),
            }
            for worker in plan.workers
        ],
        **_standing_document(plan),
    }


def _queue_document(queue: QueueView) -> dict[str, Any]:
    return {
        "name": queue.queue,
        "workload": queue.workload,
        **_standing_document(queue),
    }


def _standing_document(waiting: PlanView | QueueView) -> dict[str, Any]:
    """Return why a job waits, which one it is in its queue, and when it starts."""
    start = None
    if waiting.start:
        # What draws plans takes its time to import, and few jobs wait.
        from arena_topo.output.plan.start_estimate import estimate_document

        start = estimate_document(waiting.start)
    return {"reason": waiting.reason, "position": waiting.position, "start": start}


def start_line(job: JobView) -> str:
    """Return when *job* starts, and after which others; empty for one that does not wait."""
    waiting = job.queue or job.plan
    if waiting is None or waiting.start is None:
        return ""
    from arena_topo.output.plan.start_estimate import after_text, waiting_text

    return ", ".join(filter(None, (waiting_text(waiting.start, job.seen), after_text(waiting.start))))


def queue_line(job: JobView) -> str:
    """Return why *job* has no place, which one it is in the queue, and when it starts; empty where it does not wait for one.

    For example, ``number 2 in the queue, starts in about 40m (25m to 1h10m): 3 nodes have < 8 free GPUs``.
    """
    waiting = job.queue or job.plan
    if waiting is None or waiting.start is None:
        return ""
    from arena_topo.output.plan.start_estimate import waiting_text

    if not waiting.position:
        # Kueue says why, or the plan.
        return job.message if job.queue else job.plan.message if job.plan else ""
    when = waiting_text(waiting.start, job.seen)
    starts = when if waiting.start.unknown else f"starts {when}"
    return f"number {waiting.position} in the queue, {starts}: {waiting.reason}"


def _instance_document(instance: Instance) -> dict[str, Any]:
    return {
        "ip": instance.ip,
        "status": instance.status,
        "name": instance.name,
        "age": _seconds(instance.age),
        "node": instance.node or _NONE,
        "nodeIP": instance.node_ip or _NONE,
        "chief": instance.chief,
        "requestGPUs": instance.gpus,
        "gpuMetrics": {},
        "creationTimestamp": int(instance.created.timestamp()),
        "reason": instance.reason,
    }


def _seconds(duration: float) -> str:
    return f"{int(duration)}s"
