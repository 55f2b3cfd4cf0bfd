"""What Arena's ``get -e`` and ``get -g`` add to a job's table: its events, and how busy its GPUs are.

Source: kubeflow/arena 0.15.5, ``printEvents`` and ``displayGPUUsage`` in pkg/training/get.go.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby

from arena_topo.model.job.job_view import Instance, JobView
from arena_topo.model.notation.durations import short_duration
from arena_topo.model.notation.printable import printable
from arena_topo.output.lines import fitted, tabulate

_NONE = "N/A"
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

    Where *width* has no room for that, they are one table, whose messages go on below themselves.
    """
    if not events:
        return "\nEvents:\n  No events for resources\n"
    headers = ("SOURCE", "TYPE", "AGE", "MESSAGE")
    rows: list[tuple[str, ...]] = [headers, tuple("-" * len(header) for header in headers)]
    for _, about in groupby(events, key=lambda event: event[0]):
        for source, kind, seen, message in about:
            age = short_duration((now - seen).total_seconds())
            rows.append((printable(source), printable(kind), age, printable(message)))
        rows.append(())
    text = tabulate(("  " + row[0], *row[1:]) if row else ("",) for row in rows)
    if width and max(map(len, text.splitlines())) > width:
        table = fitted(
            [("  " + row[0], *row[1:]) for row in rows if row], width, spare=("TYPE", "AGE"), words=True
        )
        text = table.text()
    return f"\nEvents:\n{text}"


def gpus_text(job: JobView, uses: Mapping[str, Mapping[str, UseRow]], *, width: int | None = None) -> str:
    """Return the GPUs of each instance, by index; what nobody measured is the index that was planned, or N/A.

    Columns for which *width* has no room are left out.
    """
    planned = {worker.name: worker.gpus for worker in job.plan.workers} if job.plan else {}
    rows: list[tuple[str, ...]] = [_GPU_HEADERS, tuple("-" * len(header) for header in _GPU_HEADERS)]
    for instance in job.instances:
        rows += _gpu_rows(instance, uses.get(instance.name, {}), planned.get(instance.name))
    table = fitted([("  " + row[0], *row[1:]) for row in rows], width, spare=_GPU_SPARE)
    total = f"  Allocated/Requested GPUs of Job: {job.allocated_gpus}/{job.requested_gpus}\n"
    return f"\nGPUs:\n{table.text()}\n{total}"


def _gpu_rows(
    instance: Instance, uses: Mapping[str, UseRow], planned: Sequence[int] | None
) -> list[tuple[str, ...]]:
    head = (instance.name, instance.node_ip or _NONE, str(instance.gpus))
    if not uses:
        return [(*head, ",".join(map(str, planned)) if planned else _NONE, _NONE, _NONE)]
    # Arena names the instance on the first of its lines alone.
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
    """Return the GPUs of each of *nodes* that anything was measured of, without columns for which *width* has no room."""
    headers = ("NODE", "INDEX", "MEMORY(Used)", "MEMORY(Total)", "DUTY_CYCLE")
    rows: list[tuple[str, ...]] = [headers]
    for node in nodes:
        rows += [
            (node, printable(index), f"{used / _GIB:.1f} GiB", f"{total / _GIB:.1f} GiB", f"{duty:.1f}%")
            for index, (duty, used, total) in uses.get(node, {}).items()
        ]
    if len(rows) == 1:
        return ""
    table = fitted([("  " + row[0], *row[1:]) for row in rows], width, spare=("MEMORY(Total)",))
    return f"\nGPUs:\n{table.text()}"
