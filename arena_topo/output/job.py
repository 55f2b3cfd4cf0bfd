"""Jobs as Arena prints them, one or many, and what Arena has no words for.

| command | what prints it |
|---|---|
| ``get`` | ``job_table``, with ``-e`` ``events_text``, with ``-g`` ``gpus_text`` |
| ``get -o json``, ``list -o json`` | ``job_document`` |
| ``list``, ``top job`` | ``job_list_rows``, ``top_jobs_rows``, ``top_job_table`` |
| ``events``, ``describe`` | ``fitted_events``, ``job_page`` |

Source: kubeflow/arena 0.15.5, pkg/training (get.go, list.go, top_job.go) and pkg/apis/types/training.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from arena_topo.model.job_view import Instance, JobEvent, JobStatus, JobView, MoveView, PlanView, QueueView
from arena_topo.model.text.quantity import short_duration
from arena_topo.model.text.words import plural, printable
from arena_topo.output.text import Fitted, Paint, fitted, tabulate

_NONE = "N/A"
_INSTANCE_HEADINGS: tuple[str, ...] = ("NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE")

_INSTANCE_SPARE = ("IS_CHIEF", "AGE", "GPU(Requested)")
"""The headings of columns that go where there is no room, the first first."""


def job_table(
    job: JobView, *, wide: bool = False, paint: Paint | None = None, instances: Fitted | None = None
) -> str:
    """Return the table of *job*; *wide* adds when it was created and when it ended, in local time.

    The guides print the values one blank after the widest label, Arena 0.15.5 two. *instances* is the table
    of its instances where that has less room than it takes.
    """
    table = tabulate((instances or fitted_instances(job, None)).rows, paint=paint)
    return f"{_job_head(job, wide=wide, paint=paint)}\nInstances:\n{table}"


def fitted_instances(job: JobView, width: int | None) -> Fitted:
    """Return the table of the instances of *job* as far as *width* has room for it."""
    rows = [*_ruled(_INSTANCE_HEADINGS), *map(instance_row, job.instances)]
    return fitted(_indented(rows), width, spare=_INSTANCE_SPARE)


def _indented(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [("  " + row[0], *row[1:]) if row else ("",) for row in rows]


def _ruled(headings: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return *headings* with a rule below each, as Arena's tables begin."""
    return [headings, tuple("-" * len(heading) for heading in headings)]


def _job_head(
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
    """Return *moment* as Arena prints it, empty without one."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""


def job_document(job: JobView) -> dict[str, Any]:
    """Return *job* under Arena's keys, in Arena's order, for JSON and YAML.

    What Arena does not have comes after them.
    """
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
        **({"moves": [_move_document(move) for move in job.moves]} if job.moves else {}),
    }


def _move_document(move: MoveView) -> dict[str, Any]:
    return {
        "at": move.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "reason": move.why,
        "workers": [{"name": name, "from": before, "to": after} for name, before, after in move.workers],
        "waitsFor": move.waits,
        "more": move.more,
    }


def saved_document(job: JobView) -> dict[str, Any]:
    """Return the document of *job* with its manifest, from which it can be run again after it was deleted."""
    from arena_topo.manifest.fresh import as_submitted

    return {**job_document(job), "manifest": as_submitted(job.manifest)}


def described_document(job: JobView, events: Sequence[JobEvent] | None) -> dict[str, Any]:
    """Return the document of *job* with its *events*."""
    listed = [
        {
            "object": event.source,
            "type": event.kind,
            "reason": event.reason,
            "message": event.message,
            "lastSeen": event.last_seen.isoformat(),
        }
        for event in events or ()
    ]
    return {**job_document(job), "events": listed}


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
        from arena_topo.output.plan import estimate_document

        start = estimate_document(waiting.start)
    return {"reason": waiting.reason, "position": waiting.position, "start": start}


def start_line(job: JobView) -> str:
    """Return when *job* starts, and after which others; empty for one that does not wait, or in no queue."""
    waiting = job.queue or job.plan
    if waiting is None or waiting.start is None or not (job.queue or waiting.position):
        return ""
    from arena_topo.output.plan import after_text, waiting_text

    return ", ".join(filter(None, (waiting_text(waiting.start, job.seen), after_text(waiting.start))))


def _queue_line(job: JobView) -> str:
    """Return why *job* is queued, its position, and when it starts; empty if it does not wait.

    For example, ``number 2 in the queue, starts in about 40m (25m to 1h10m): 3 nodes have < 8 free GPUs``.
    """
    waiting = job.queue or job.plan
    if waiting is None or waiting.start is None:
        return ""
    from arena_topo.output.plan import waiting_text

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


# What ``get -e`` and ``get -g`` add to a job's table: its events, and how busy its GPUs are, laid out as by
# Arena's ``printEvents`` and ``displayGPUUsage``.

_MIB = 1024.0 * 1024.0
_GIB = 1024.0 * _MIB
_GPU_HEADERS = (
    "INSTANCE", "NODE(IP)", "GPU(Requested)", "GPU(IndexId)", "GPU(DutyCycle)", "GPU Memory(Used/Total)",
)  # fmt: skip
_GPU_SPARE = ("NODE(IP)", "GPU(Requested)", "GPU Memory(Used/Total)")

EventRow = tuple[str, str, datetime, str]
"""What an event is about, its type, when it was last seen, and its reason with its message."""
UseRow = tuple[float, float, float]
"""How busy a GPU was in percent, the bytes of its memory in use, and those that it has."""


def events_text(events: Sequence[EventRow], *, now: datetime, width: int | None = None) -> str:
    """Return the events as Arena lays them out: a blank line after those of each object.

    Where *width* has no room for that, they are one table, whose messages continue below themselves.
    """
    if not events:
        return "\nEvents:\n  No events for resources\n"
    rows = _ruled(("SOURCE", "TYPE", "AGE", "MESSAGE"))
    for _, about in groupby(events, key=lambda event: event[0]):
        for source, kind, seen, message in about:
            age = short_duration((now - seen).total_seconds())
            rows.append((printable(source), printable(kind), age, printable(message)))
        rows.append(())
    text = tabulate(_indented(rows))
    if width and max(map(len, text.splitlines())) > width:
        table = fitted(_indented(filter(None, rows)), width, spare=("TYPE", "AGE"), words=True)
        text = table.text()
    return f"\nEvents:\n{text}"


def gpus_text(job: JobView, uses: Mapping[str, Mapping[str, UseRow]], *, width: int | None = None) -> str:
    """Return the GPUs of each instance; unmeasured GPUs have the planned index, or N/A.

    Columns for which *width* has no room are left out.
    """
    planned = {worker.name: worker.gpus for worker in job.plan.workers} if job.plan else {}
    rows = _ruled(_GPU_HEADERS)
    for instance in job.instances:
        rows += _gpu_rows(instance, uses.get(instance.name, {}), planned.get(instance.name))
    table = fitted(_indented(rows), width, spare=_GPU_SPARE)
    total = f"  Allocated/Requested GPUs of Job: {job.allocated_gpus}/{job.requested_gpus}\n"
    return f"\nGPUs:\n{table.text()}\n{total}"


def _gpu_rows(
    instance: Instance, uses: Mapping[str, UseRow], planned: Sequence[int] | None
) -> list[tuple[str, ...]]:
    head = (instance.name, instance.node_ip or _NONE, str(instance.gpus))
    if not uses:
        return [(*head, ",".join(map(str, planned)) if planned else _NONE, _NONE, _NONE)]
    # Arena names the instance only on the first of its lines.
    return [
        (
            *(head if number == 0 else ("", "", "")),
            printable(index),
            f"{duty:.1f}%",
            f"{used / _MIB:.1f}/{total / _MIB:.1f}(MiB)",
        )
        for number, (index, (duty, used, total)) in enumerate(uses.items())
    ]


def node_gpus_text(
    nodes: Sequence[str], uses: Mapping[str, Mapping[str, UseRow]], *, width: int | None = None
) -> str:
    """Return the measured GPUs of each of *nodes*, without columns for which *width* has no room."""
    headers = ("NODE", "INDEX", "MEMORY(Used)", "MEMORY(Total)", "DUTY_CYCLE")
    rows: list[tuple[str, ...]] = [headers]
    for node in nodes:
        rows += [
            (node, printable(index), f"{used / _GIB:.1f} GiB", f"{total / _GIB:.1f} GiB", f"{duty:.1f}%")
            for index, (duty, used, total) in uses.get(node, {}).items()
        ]
    if len(rows) == 1:
        return ""
    table = fitted(_indented(rows), width, spare=("MEMORY(Total)",))
    return f"\nGPUs:\n{table.text()}"


# Many jobs: the tables of ``list`` and of ``top job``, and rows for what changes.

_HEADINGS = ("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE")
SPARE = ("TRAINER", "NODE", "GPU(Allocated)", "DURATION", "AGE", "GPU(Requested)")
"""The headings of columns that go where there is no room, the first first."""
_WIDE = ("WORKERS", "PRIORITY", "REASON")
_SHORT_SPARE = ("KIND", "DURATION", "WHERE", "GPUS")
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
    """Return Arena's table of *jobs*.

    *wide* has more columns behind Arena's, *namespaces* one before them.
    """
    rows = [job_row(job, namespaces=namespaces, wide=wide) for job in jobs]
    return [_headings(namespaces=namespaces, wide=wide), *rows]


def _headings(*, namespaces: bool, wide: bool) -> tuple[str, ...]:
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
    more = (str(job.workers), job.priority or _NONE, _queue_line(job) or job.message or _NONE)
    return (*((job.namespace,) if namespaces else ()), *cells, *(more if wide else ()))


def fitted_jobs(
    jobs: Sequence[JobView], width: int, *, namespaces: bool = False, all_columns: bool = False
) -> Fitted:
    """Return the table of *jobs* for people, on a terminal of *width* columns.

    *all_columns*: also those for kinds and reasons that no job of these needs, as further ones may.
    """
    rows = [short_job_row(job, namespaces=namespaces) for job in jobs]
    headings = (
        *(("NAMESPACE",) if namespaces else ()),
        *("NAME", "KIND", "STATUS", "READY", "GPUS", "DURATION", "WHERE", "REASON"),
    )
    hidden = set()
    if not all_columns and len({job.kind for job in jobs}) < 2:
        hidden.add("KIND")
    if not all_columns and not any(row[-1] for row in rows):
        hidden.add("REASON")
    kept = [place for place, heading in enumerate(headings) if heading not in hidden]
    table = fitted(
        [[row[place] for place in kept] for row in (headings, *rows)],
        width,
        spare=_SHORT_SPARE,
        cut="REASON" not in hidden,
        least=20,
    )
    return replace(table, kept=[kept[place] for place in table.kept])


def short_job_row(job: JobView, *, namespaces: bool = False) -> tuple[str, ...]:
    """Return the cells of *job* in the table for people."""
    nodes = {one.node for one in _workers(job) if one.node}
    where = next(iter(nodes)) if len(nodes) == 1 else plural(len(nodes), "node") if nodes else ""
    return (
        *((job.namespace,) if namespaces else ()),
        job.name,
        job.kind,
        job.status.value,
        ready_text(job),
        str(job.requested_gpus),
        short_duration(job.duration),
        where,
        (_queue_line(job) or job.message).removeprefix("waits for a placement: "),
    )


def ready_text(job: JobView) -> str:
    """Return how many of the workers of *job* run: ``3/4``."""
    return f"{sum(one.status == 'Running' for one in _workers(job))}/{job.workers}"


def _workers(job: JobView) -> list[Instance]:
    # The launcher of an MPI job computes nothing; the chief of any other kind is one of its workers.
    return [one for one in job.instances if not (one.chief and job.kind == "MPIJob")]


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
    """Return the GPUs of each instance of *job*, or of one *instance*, as far as *width* has room."""
    rows: list[tuple[str, ...]] = [_TOP, _TOP_RULES]
    rows += [_top_row(job, one) for one in job.instances if instance in ("", one.name)]
    table = fitted(_indented(rows), width, spare=_TOP_SPARE)
    head = _job_head(job, wide=True, paint=paint)
    counts = f"  Allocated/Requested GPUs of Job: {job.allocated_gpus}/{job.requested_gpus}\n"
    return f"{head}\nInstances:\n{table.text(paint=paint)}\nGPUs:\n{counts}"


def _top_row(job: JobView, instance: Instance) -> tuple[str, ...]:
    # Which GPUs a pod got is known where a plan enforces them; how busy they are, nothing here measures.
    enforced = job.plan.workers if job.plan and job.plan.gpu_enforcement else ()
    planned = next((worker.gpus for worker in enforced if worker.name == instance.name), None)
    indices = ",".join(map(str, planned)) if planned else _NONE
    return (
        instance.name,
        instance.status,
        str(instance.gpus),
        instance.node_ip or _NONE,
        indices,
        _NONE,
        _NONE,
    )


# What happened to a job, and all about it on one page: what ``events`` and ``describe`` print.

_EVENT_HEADINGS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
"""kubectl's."""


def event_row(event: JobEvent, now: datetime) -> tuple[str, ...]:
    """Return the cells of one event."""
    age = short_duration((now - event.last_seen).total_seconds())
    return age, event.kind, event.reason, event.source, event.message


def folded_events(events: Sequence[JobEvent]) -> list[JobEvent]:
    """Return one of the *events* of each type and reason, the last, with their number, in the order of these.

    For example, three pods that were scheduled are ``Scheduled x3``.
    """
    by_reason: dict[tuple[str, str], list[JobEvent]] = {}
    for event in events:
        by_reason.setdefault((event.kind, event.reason), []).append(event)
    folded = [
        replace(
            max(alike, key=lambda event: event.last_seen),
            reason=f"{reason} x{len(alike)}" if len(alike) > 1 else reason,
        )
        for (_, reason), alike in by_reason.items()
    ]
    return sorted(folded, key=lambda event: event.last_seen)


def fitted_events(
    events: Sequence[JobEvent], now: datetime, width: int | None = None, *, folded: bool = False
) -> Fitted:
    """Return the table of *events*, in their order, as far as *width* has room for it.

    Those that are *folded* are told apart by their reasons: the object is only that of the last one.
    """
    rows = [_EVENT_HEADINGS, *(event_row(event, now) for event in events)]
    spare = ("TYPE", "OBJECT", "LAST SEEN") if folded else ("TYPE", "LAST SEEN", "REASON")
    return fitted(rows, width, spare=spare, words=True, least=32)


def job_page(
    job: JobView,
    events: Sequence[JobEvent] | None,
    now: datetime,
    *,
    all_events: bool = False,
    paint: Paint | None = None,
    width: int | None = None,
) -> str:
    """Return all about *job*: itself, why it does not run, its plan, its instances and its *events*.

    None for *events* says that they may not be read; those that are alike are one unless *all_events* are
    asked for. *width* is the room of the terminal, None for no bound.
    """
    room = None if width is None else width - 2
    more = [
        ("Workers:", str(job.workers)),
        ("GPUs:", f"{job.allocated_gpus} allocated, {job.requested_gpus} requested"),
        (f"{job.kind}:", f"{job.group}/{job.version}"),
    ]
    parts = [_job_head(job, wide=True, paint=paint, more=more)]
    if job.message:
        parts.append(f"\nWhy {job.status.value.lower()}:\n  {printable(job.message)}\n")
    if job.advice:
        parts.append(f"\nNext:\n  {printable(job.advice)}\n")
    # What keeps it waiting is said already.
    if job.plan and job.plan.message != job.message:
        parts.append(_plan_section(job, job.plan, room))
    if job.moves:
        parts.append(_moves_section(job, room))
    if start := start_line(job):
        parts.append(f"\nStart:\n  {printable(start)}\n")
    parts.append(_instances_section(job, paint, room))
    if events is None:
        parts.append("\nEvents:\n  you cannot list the events of this namespace\n")
    elif not events:
        parts.append("\nEvents:\n  none, or none any more: a cluster keeps them for an hour\n")
    else:
        in_time = sorted(events, key=lambda event: event.last_seen)
        shown = in_time if all_events else folded_events(in_time)
        parts.append("\nEvents:\n" + _section(fitted_events(shown, now, room, folded=not all_events), paint))
        if len(shown) < len(events):
            parts.append(f"  ({len(events)} in all: --events)\n")
    return "".join(parts)


def _plan_section(job: JobView, plan: PlanView, room: int | None) -> str:
    lines = [f"\nPlan:\n  {printable(plan.message)}\n"]
    # Each fact on a line of its own, below the first.
    first, *others = plan.enforced.split("; ") if plan.enforced else [""]
    # By two blanks, so that what is too long continues below itself.
    lines += [f"  enforced:  {first}\n"] * bool(first) + [f"             {fact}\n" for fact in others]
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


def _moves_section(job: JobView, room: int | None) -> str:
    lines = [f"\nMoved:\n  {printable(job.moved)}\n"]
    rows = [("WHEN", "WORKER", "FROM", "TO", "WHY")]
    for move in job.moves:
        why = f"{move.why}; {move.waits}" if move.waits else move.why
        rows += [
            (local_time(move.at), name, before, after or "waits", why) for name, before, after in move.workers
        ]
        rows += [(local_time(move.at), f"and {move.more} more", "", "", why)] * bool(move.more)
    lines.append(_section(fitted(rows, room, spare=("WHEN",), words=True)))
    return "".join(lines)


def _instances_section(job: JobView, paint: Paint | None, room: int | None) -> str:
    if not job.instances:
        return "\nInstances:\n  none\n"
    reasons = [_reason(instance) for instance in job.instances]
    # A gang waits for one thing, which is said once.
    shared = reasons[0] if len(reasons) > 1 and len(set(reasons)) == 1 else ""
    rows = [(*_INSTANCE_HEADINGS, "REASON")]
    rows += [(*instance_row(one), reason) for one, reason in zip(job.instances, reasons, strict=True)]
    # Where no instance has one, a column for reasons takes room from others.
    if shared or (room is not None and not any(reasons)):
        rows = [row[:-1] for row in rows]
    table = fitted(rows, room, spare=(*_INSTANCE_SPARE, "NODE"), words=rows[0][-1] == "REASON")
    each = f"  (each of them: {printable(shared)})\n" if shared else ""
    return "\nInstances:\n" + _section(table, paint) + each


def _reason(instance: Instance) -> str:
    """Return what the reason of *instance* says beyond its status."""
    reason = instance.reason.removeprefix(instance.status)
    return instance.reason if reason == instance.reason else reason.removeprefix(": ")


def _section(table: Fitted, paint: Paint | None = None) -> str:
    """Return *table* below its heading, and what of it is hidden."""
    # Without a reason the line ends with its node.
    lines = [line.rstrip() for line in tabulate(table.rows, paint=paint).splitlines()]
    note = table.note()
    return "".join(f"  {line}\n" for line in (*lines, *([f"({note})"] if note else [])))
