"""The four tables of the live view as values: what each row says and is about, and which columns matter.

::

    cluster   zone hall-1            40/64 free
                rack rack-1           8/32 free  ■■■□      a mark for each node: how much of it is used
    jobs      vgg16  RUNNING  2/2  16  3m   rack rack-1  nvlink+rdma 171 GB/s
    queue     gpt    PENDING  128  2m   no 16 nodes have 8 free GPUs
    links     uplink rack rack-1   vgg16, gpt            97.2 GB/s
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.job_view import JobStatus, JobView
from arena_topo.model.plan import Prediction, Transport
from arena_topo.model.reports import JobKey, LinkUse, Overview
from arena_topo.model.text.quantity import short_duration
from arena_topo.model.text.words import last_part, natural_sort_key, plural
from arena_topo.output.job import ready_text
from arena_topo.output.text import Line, Span
from arena_topo.output.topology import Domain, available, cluster_domains, remarks, state_marks

_MOST_LISTED = 32
"""Nodes of a cluster that are listed below their racks without being asked for."""

_MOST_ROWS = 2000
"""Rows of a table; a filter finds the others."""

_BETWEEN_NODES = ("uplink", "NICs")

_LEAST_WORDS = 12
"""Columns of a terminal that words which are cut still get."""

_USED = "□▁▂▃▄▅▆▇■"
"""A node by the share of its GPUs in use, by eighths: empty, some, all."""

_STATUS_STYLES = {
    JobStatus.RUNNING: "green",
    JobStatus.SUCCEEDED: "cyan",
    JobStatus.FAILED: "red",
    JobStatus.PENDING: "yellow",
    JobStatus.QUEUING: "yellow",
    JobStatus.SUSPENDED: "yellow",
}
_MARKS = {"used": ("■", "blue"), "free": ("□", "green"), "bad": ("!", "red")}

Zoom = tuple[str, ...]
"""The names of the domains, coarse to fine, into which the user has looked."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, and its rank in leaving a narrow table, highest first; 0 always stays."""

    heading: str
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A row: what it is about, its cells, and what each way of sorting compares, the usual one first."""

    about: tuple[str, ...]
    cells: tuple[Line, ...]
    sorts: tuple[object, ...] = ()

    @property
    def text(self) -> str:
        """All that the row says, for a filter."""
        return " ".join(span.text for cell in self.cells for span in cell)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the view: its title, its columns and rows, and the names of the ways to sort it."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    orders: tuple[str, ...] = ("",)


def summary(overview: Overview) -> Line:
    """Return the line that sums up the cluster and its jobs."""
    root = cluster_domains(overview.snapshot)
    nodes = sum(1 for _ in root.all_nodes)
    counts = [
        (status, sum(1 for job in overview.jobs if job.status is status))
        for status in (JobStatus.RUNNING, JobStatus.PENDING, JobStatus.QUEUING, JobStatus.FAILED)
    ]
    line = [Span(f"{plural(nodes, 'node')}, {root.free:,} of {root.total:,} GPUs free", "bold")]
    for status, count in counts:
        if count:
            line += [Span("  ", ""), Span(f"{count} {status.value.lower()}", _STATUS_STYLES[status])]
    return line


def cluster_table(overview: Overview, zoom: Zoom = ()) -> Table:
    """Return the domains below the one at *zoom*, or its nodes, each with its free GPUs and marks."""
    root = cluster_domains(overview.snapshot)
    domain, seen = root, list[str]()
    for name in zoom:
        # A domain may vanish while somebody looks at it.
        below = next((each for each in domain.domains if each.name == name), None)
        if below is None:
            break
        domain = below
        seen.append(name)
    few = sum(1 for _ in domain.all_nodes) <= _MOST_LISTED
    jobs = _jobs_by_node(overview)
    rows = list(_domain_rows(domain, tuple(seen), 0, jobs, with_nodes=few or bool(domain.nodes)))
    title = " / ".join(["cluster", *seen])
    if not overview.snapshot.fabric.tiers:
        title += " (no fabric is published)"
    return Table(
        title=title,
        columns=(Column("WHERE"), Column("FREE"), Column("GPUS USED", 1), Column("JOBS", 2)),
        rows=tuple(rows[:_MOST_ROWS]),
    )


def _domain_rows(
    domain: Domain, path: Zoom, depth: int, jobs: dict[str, list[str]], *, with_nodes: bool
) -> Iterator[Row]:
    indent = Span("  " * depth, "")
    for below in domain.domains:
        tier = last_part(below.tier)
        nodes = list(below.all_nodes)
        inside = dict.fromkeys(name for node in nodes for name in jobs.get(node.name, ()))
        marks = [] if below.domains else [_node_mark(node) for node in nodes]
        yield Row(
            ("domain", *path, below.name),
            (
                [indent, Span(f"{tier} {below.name}" if below.name else f"in no {tier}", "bold")],
                [Span(f"{below.free:,}/{below.total:,}", "")],
                marks or [Span(plural(len(nodes), "node"), "dim")],
                [Span(", ".join(inside), "")],
            ),
        )
        yield from _domain_rows(below, (*path, below.name), depth + 1, jobs, with_nodes=with_nodes)
    for node in domain.nodes if with_nodes else ():
        names, notes = jobs.get(node.name, []), remarks(node)
        yield Row(
            ("node", node.name),
            (
                [indent, Span(node.name, "")],
                [Span(f"{available(node):,}/{node.gpu_total:,}", "")],
                [Span(*_MARKS[state]) for state in state_marks(node)],
                [Span(", ".join(names), ""), Span(f" ({', '.join(notes)})" if notes else "", "dim")],
            ),
        )


def _node_mark(node: GpuNode) -> Span:
    """Return one character for *node*: how much of it is used, or that it takes no pods."""
    if not node.ready:
        return Span("!", "red")
    if node.unschedulable:
        return Span("x", "yellow")
    if not node.gpu_total:
        return Span("!", "red")
    used = node.gpu_total - node.gpu_free
    # Neither an empty node nor a full one looks like one in between.
    eighths = 8 if used >= node.gpu_total else min(max(8 * used // node.gpu_total, 1), 7) if used else 0
    return Span(_USED[eighths], "green" if not eighths else "blue" if eighths == 8 else "cyan")


def _jobs_by_node(overview: Overview) -> dict[str, list[str]]:
    by_node: dict[str, list[str]] = {}
    for use in overview.uses:
        for node in use.workers:
            by_node.setdefault(node, []).append(use.job[1])
    return by_node


def jobs_table(overview: Overview) -> Table:
    """Return the jobs: those that run and wait first, then those that have ended."""
    uses = {use.job: use for use in overview.uses}
    # One namespace needs no column, and neither does one kind.
    everywhere = len({job.namespace for job in overview.jobs}) > 1
    of_kinds = len({job.kind for job in overview.jobs}) > 1
    columns = (
        *((Column("NAMESPACE", 2),) if everywhere else ()),
        Column("NAME"),
        *((Column("KIND", 6),) if of_kinds else ()),
        Column("STATUS"),
        Column("READY", 1),
        Column("GPUS", 3),
        Column("AGE", 6),
        Column("WHERE", 4),
        Column("LINKS", 7),
        Column("BUSBW", 5),
    )
    rows = [
        _job_row(job, uses.get(_key(job)), overview.snapshot, everywhere=everywhere, of_kinds=of_kinds)
        for job in overview.jobs
    ]
    return Table("jobs", columns, tuple(rows[:_MOST_ROWS]), ("state", "name", "GPUs", "age"))


def _key(job: JobView) -> JobKey:
    return job.namespace, job.name


def _job_row(
    job: JobView, use: LinkUse | None, snapshot: Snapshot, *, everywhere: bool, of_kinds: bool
) -> Row:
    prediction = use.prediction if use else None
    cells: list[Line] = [
        *([[Span(job.namespace, "")]] if everywhere else []),
        [Span(job.name, "bold")],
        *([[Span(job.kind, "dim")]] if of_kinds else []),
        [Span(job.status.value, _STATUS_STYLES[job.status])],
        [Span(ready_text(job), "")],
        [Span(str(job.requested_gpus), "")],
        [Span(short_duration(job.duration), "")],
        [Span(_where(use, snapshot), "")],
        [Span(_transports(prediction), "")],
        [Span(_busbw(prediction), "")],
    ]
    name = natural_sort_key(job.name)
    return Row(
        ("job", *_key(job)),
        tuple(cells),
        ((job.status.is_final, -job.created.timestamp()), name, -job.requested_gpus, job.duration),
    )


def _where(use: LinkUse | None, snapshot: Snapshot) -> str:
    """Return the closest domain that holds the job: ``dgx-1``, ``rack rack-1``, ``4 nodes``."""
    if use is None:
        return ""
    names = list(use.workers)
    if len(names) == 1:
        return names[0]
    paths = [snapshot.fabric.paths.get(name, ()) for name in names]
    for depth in range(len(snapshot.fabric.tiers), 0, -1):
        around = {path[:depth] for path in paths}
        if len(around) == 1 and (path := around.pop()) and path[-1]:
            return f"{last_part(snapshot.fabric.tiers[depth - 1])} {path[-1]}"
    return plural(len(names), "node")


def _transports(prediction: Prediction | None) -> str:
    if prediction is None:
        return ""
    used = [each for each in (prediction.inside, prediction.across) if each and each is not Transport.NONE]
    return " + ".join(transport.value for transport in used)


def _busbw(prediction: Prediction | None) -> str:
    return f"{prediction.busbw.likely:.3g} GB/s" if prediction and prediction.busbw.likely else ""


def queue_table(overview: Overview) -> Table:
    """Return the jobs that wait, the one that has waited longest first, and why."""
    waiting = [
        job
        for job in overview.jobs
        if job.status in (JobStatus.PENDING, JobStatus.QUEUING, JobStatus.SUSPENDED)
    ]
    columns = (Column("NAME"), Column("STATUS", 2), Column("GPUS", 1), Column("WAITS", 3), Column("WHY"))
    rows = [
        Row(
            ("job", *_key(job)),
            (
                [Span(job.name, "bold")],
                [Span(job.status.value, _STATUS_STYLES[job.status])],
                [Span(str(job.requested_gpus), "")],
                [Span(short_duration(job.duration), "")],
                [Span(_why_it_waits(job), "")],
            ),
            (-job.duration, -job.requested_gpus, natural_sort_key(job.name)),
        )
        for job in waiting
    ]
    return Table("queue", columns, tuple(rows[:_MOST_ROWS]), ("time", "GPUs", "name"))


def _why_it_waits(job: JobView) -> str:
    """Return in words why *job* does not run."""
    plan = job.plan.message if job.plan and job.plan.stage != "confirmed" else ""
    if plan or job.message:
        return (plan or job.message).removeprefix("waits for a placement: ")
    if job.status is JobStatus.QUEUING:
        return "its queue has not admitted it"
    return "it is suspended" if job.status is JobStatus.SUSPENDED else "its pods start"


def links_table(overview: Overview) -> Table:
    """Return the links that jobs use: shared ones first, then uplinks, then the links inside nodes."""
    by_link: dict[tuple[str, str, str], list[LinkUse]] = {}
    for use in overview.uses:
        for link in _links(use, overview.snapshot):
            by_link.setdefault(link, []).append(use)
    rows = [_link_row(link, uses) for link, uses in by_link.items()]
    columns = (Column("LINK"), Column("USED BY"), Column("PREDICTED BUSBW", 1))
    return Table("links in use", columns, tuple(rows[:_MOST_ROWS]), ("sharing", "name"))


def _links(use: LinkUse, snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield the links of one job: what they are called, the tier or nothing, and where they are."""
    for tier, domain in use.uplinks(snapshot.fabric):
        yield "uplink", tier, domain
    inside = use.prediction.inside if use.prediction else Transport.NONE
    for node in use.workers:
        if inside is not Transport.NONE:
            yield {Transport.NVLINK: "NVLink", Transport.PCIE: "PCIe"}.get(inside, "links"), "", node
        if len(use.workers) > 1:
            yield "NICs", "", node


def _link_row(link: tuple[str, str, str], uses: Sequence[LinkUse]) -> Row:
    kind, tier, place = link
    rates = [_rate(use, kind) or "not known" for use in uses]
    shared = len(uses) > 1
    where = f"{last_part(tier)} {place}" if tier else place
    return Row(
        ("link", kind, tier, place, *(part for use in uses for part in use.job)),
        (
            [Span(f"{kind} ", "dim"), Span(where, "bold")],
            [Span(", ".join(use.job[1] for use in uses), "yellow" if shared else "")],
            [Span(", ".join(rates), "")],
        ),
        (
            (-len(uses), kind != "uplink", natural_sort_key(where), kind),
            (natural_sort_key(where), kind),
        ),
    )


def _rate(use: LinkUse, kind: str) -> str:
    """Return how fast the ranks of a job are over links of a *kind*: between its nodes, or inside of them."""
    prediction = use.prediction
    if prediction is None:
        return ""
    busbw = prediction.across_busbw if kind in _BETWEEN_NODES else prediction.inside_busbw
    return f"{busbw.likely:.3g} GB/s" if busbw else ""


TABLES: dict[str, Callable[[Overview, Zoom], Table]] = {
    "cluster": cluster_table,
    "jobs": lambda overview, _: jobs_table(overview),
    "queue": lambda overview, _: queue_table(overview),
    "links": lambda overview, _: links_table(overview),
}
"""The tables by the names under which users ask for them, in their order on the screen."""


def chosen_rows(table: Table, *, order: int = 0, wanted: str = "") -> list[Row]:
    """Return the rows of *table* that have the text *wanted*, in one of its orders."""
    rows = [row for row in table.rows if wanted.casefold() in row.text.casefold()]
    # Rows without anything to sort by, as those of a tree, stay as they are.
    if not all(len(row.sorts) > order for row in rows):
        return rows
    key: Callable[[Row], object] = partial(_sorted_by, order)
    return sorted(rows, key=key)  # type: ignore[arg-type]  # the keys of one order are alike


def _sorted_by(order: int, row: Row) -> object:
    return row.sorts[order]


def fitting_columns(table: Table, rows: Sequence[Row], width: int, *, gap: int = 2) -> list[tuple[int, int]]:
    """Return the positions and the widths of the columns that fit *width*; the least important go first.

    The last column that stays has the rest of the room, as it is the one with words: they may be cut.
    """
    widths = [
        max([len(column.heading), *(sum(len(span.text) for span in row.cells[place]) for row in rows)])
        for place, column in enumerate(table.columns)
    ]
    shown = list(range(len(table.columns)))
    # Words that are cut say something anyway.
    least = {shown[-1]: min(widths[-1], _LEAST_WORDS)}
    while sum(least.get(place, widths[place]) + gap for place in shown) > width:
        spare = max(shown, key=lambda place: table.columns[place].spare)
        if not table.columns[spare].spare:
            break
        shown.remove(spare)
    rest = width - sum(widths[place] + gap for place in shown[:-1]) - gap
    return [
        *((place, widths[place]) for place in shown[:-1]),
        (shown[-1], max(rest, min(widths[shown[-1]], _LEAST_WORDS))),
    ]


def narrowed(overview: Overview, namespace: str) -> Overview:
    """Return *overview* with only the jobs of *namespace*, empty for all."""
    if not namespace:
        return overview
    return replace(
        overview,
        jobs=tuple(job for job in overview.jobs if job.namespace == namespace),
        uses=tuple(use for use in overview.uses if use.job[0] == namespace),
    )
