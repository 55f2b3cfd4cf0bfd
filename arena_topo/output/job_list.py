"""Many jobs as Arena prints them: the tables of ``list`` and of ``top job``, and rows for what changes.

Source: kubeflow/arena 0.15.5, pkg/training/list.go and top_job.go.
"""

from collections.abc import Sequence

from arena_topo.model.job.job_view import Instance, JobStatus, JobView
from arena_topo.model.notation.durations import short_duration
from arena_topo.output.job import job_head, queue_line
from arena_topo.output.lines import Paint, fitted

_NONE = "N/A"
_HEADINGS = ("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE")
SPARE = ("TRAINER", "NODE", "GPU(Allocated)", "DURATION", "AGE", "GPU(Requested)")
"""The headings of columns that go where there is no room, the first first."""
_WIDE = ("WORKERS", "PRIORITY", "REASON")
_TOP = (
    "NAME",
    "STATUS",
    "GPU(Request)",
    "NODE",
    "GPU(DeviceIndex)",
    "GPU(DutyCycle)",
    "GPU_MEMORY(Used/Total)",
)
_TOP_RULES = (
    "----",
    "------",
    "------------",
    "----",
    "----------------",
    "--------------",
    "---------------",
)
"""Arena's, whose last one is shorter than its heading."""
_TOP_SPARE = ("GPU_MEMORY(Used/Total)", "GPU(DutyCycle)", "NODE", "GPU(DeviceIndex)")


def job_list_rows(
    jobs: Sequence[JobView], *, namespaces: bool = False, wide: bool = False
) -> list[tuple[str, ...]]:
    """Return Arena's table of *jobs*; *wide* has more columns behind Arena's, *namespaces* one before them."""
    rows = [job_row(job, namespaces=namespaces, wide=wide) for job in jobs]
    return [headings(namespaces=namespaces, wide=wide), *rows]


def headings(*, namespaces: bool, wide: bool) -> tuple[str, ...]:
    """Return the headings of the table."""
    return (*(("NAMESPACE",) if namespaces else ()), *_HEADINGS, *(_WIDE if wide else ()))


def job_row(job: JobView, *, namespaces: bool = False, wide: bool = False) -> tuple[str, ...]:
    """Return the cells of *job*."""
    active = job.status in (JobStatus.PENDING, JobStatus.RUNNING)
    cells = (
        job.name,
        job.status.value,
        job.kind.upper(),
        short_duration(job.duration),
        str(job.requested_gpus),
        str(job.allocated_gpus) if active else _NONE,
        _chief_address(job),
    )
    more = (str(job.workers), job.priority or _NONE, queue_line(job) or job.message or _NONE)
    return (*((job.namespace,) if namespaces else ()), *cells, *(more if wide else ()))


def _chief_address(job: JobView) -> str:
    # Arena prints the address of the chief's node here, and the name of the node for get.
    return (job.chief.node_ip if job.chief else "") or _NONE


def top_jobs_rows(jobs: Sequence[JobView], *, namespaces: bool = False) -> list[tuple[str, ...]]:
    """Return the table of *jobs*, those that request most GPUs first."""
    first = ("NAMESPACE",) if namespaces else ()
    titles = (*first, "NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE")
    rows: list[tuple[str, ...]] = [titles]
    for job in by_gpus(jobs):
        row = list(job_row(job, namespaces=namespaces))
        # Unlike list, top job prints a number for jobs that have ended too.
        row[-2] = str(job.allocated_gpus)
        rows.append(tuple(row))
    return rows


def top_jobs_total(jobs: Sequence[JobView]) -> str:
    """Return the line below the table: how many of the GPUs of running jobs are allocated."""
    running = [job for job in jobs if job.status is JobStatus.RUNNING]
    allocated, requested = (
        sum(job.allocated_gpus for job in running),
        sum(job.requested_gpus for job in running),
    )
    return f"\nTotal Allocated/Requested GPUs of Training Jobs: {allocated}/{requested}\n"


def by_gpus(jobs: Sequence[JobView]) -> list[JobView]:
    """Return *jobs*, those that request most GPUs first."""
    return sorted(jobs, key=lambda job: -job.requested_gpus)


def top_job_table(
    job: JobView, *, instance: str = "", paint: Paint | None = None, width: int | None = None
) -> str:
    """Return the GPUs of each instance of *job*, or of one *instance*, as far as *width* has room for them."""
    rows: list[tuple[str, ...]] = [_TOP, _TOP_RULES]
    rows += [_top_row(job, one) for one in job.instances if instance in ("", one.name)]
    table = fitted([("  " + row[0], *row[1:]) for row in rows], width, spare=_TOP_SPARE)
    head = job_head(job, wide=True, paint=paint)
    counts = f"  Allocated/Requested GPUs of Job: {job.allocated_gpus}/{job.requested_gpus}\n"
    return f"{head}\nInstances:\n{table.text(paint=paint)}\nGPUs:\n{counts}"


def _top_row(job: JobView, instance: Instance) -> tuple[str, ...]:
    planned = (
        next((worker.gpus for worker in job.plan.workers if worker.name == instance.name), None)
        if job.plan
        else None
    )
    # Which GPUs a pod got is known where a plan enforces them; how busy they are, nothing here measures.
    indices = ",".join(map(str, planned)) if planned and job.plan and job.plan.gpu_enforcement else _NONE
    return (
        instance.name,
        instance.status,
        str(instance.gpus),
        instance.node_ip or _NONE,
        indices,
        _NONE,
        _NONE,
    )
