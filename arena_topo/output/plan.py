"""Plans in every form: a placement or a refusal, when a job starts, reservations, and effects of scaling."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from arena_topo.errors import UsageError
from arena_topo.kinds.mpijob import worker_name
from arena_topo.model.cluster import GpuNode, Holder, Snapshot
from arena_topo.model.plan import (
    GangFigures,
    GroupPlaces,
    GroupSpread,
    Growth,
    Infeasible,
    NodeAlignment,
    NodeShare,
    Placement,
    Prediction,
    Range,
    Scaling,
    Shrinkage,
    Step,
    StepTraffic,
    Verdict,
    WorkerPlace,
)
from arena_topo.model.plan_record import PlanRecord, StartEstimate, placed_text, spares_text
from arena_topo.model.reports import Finding, State
from arena_topo.model.text.words import (
    counted_role,
    last_part,
    placed_words,
    plural,
    printable,
    runs,
    written_amount,
    written_duration,
    written_rate,
)
from arena_topo.output.text import Line, Span, fitted, rendered, table_lines
from arena_topo.planner.reservations import OtherPlan, requested

if TYPE_CHECKING:
    from arena_topo.output.svg import Headline


# On which NUMA nodes the workers of a plan are, as a table and in one sentence.

_MOST_ROWS = 40
_FEW_ROWS, _MANY_ROWS = 8, 10
"""Rows of the table of a plan without ``--why``, if it has more than the second number."""
_MOST_TOLD = 4
"""Places of workers that are named one by one in a sentence."""
_HEADER = ("NODE", "WORKERS", "NUMA", "CPUS", "SWITCHES", "NICS", "HELD")


def alignment_lines(shares: Sequence[NodeShare]) -> Iterator[Line]:
    """Yield the table of each worker's NUMA nodes, switches and NICs, and what holds it there, if known."""
    rows = list(_rows(shares))
    if not rows:
        return
    # Columns in which no node has anything would only push the others apart.
    filled = [column for column in range(len(_HEADER)) if any(row[column] for row in rows)]
    shown = [tuple(row[column] or "-" for column in filled) for row in rows[:_MOST_ROWS]]
    yield from table_lines([tuple(_HEADER[column] for column in filled), *shown])
    if len(rows) > _MOST_ROWS:
        more = f"and {plural(len(rows) - _MOST_ROWS, 'more row')}; -o json lists all {len(rows)}"
        yield [Span(more, "dim")]
    yield from ([Span(text, "dim")] for text in _legend(rows, shares))


def alignment_text(shares: Sequence[NodeShare]) -> str:
    """Return in one sentence the workers' NUMA nodes and whether they are enforced; empty if unknown.

    Of a gang on one node it says so of each worker.
    """
    known = [share.alignment for share in shares if share.alignment]
    if not known:
        return ""
    places = _by_place(shares[0]) if len(shares) == 1 else {}
    if 0 < len(places) <= _MOST_TOLD:
        where = "; ".join(_place_text(place, workers) for place, workers in places.items())
    else:
        counts = {len(place.numa) for alignment in known for place in alignment.workers}
        who = "each worker on" if len(counts) == 1 else "workers on up to"
        where = f"{who} {_nodes_text(max(counts))}"
    return f"{where}; {_held(known)}"


def _nodes_text(count: int) -> str:
    return "one NUMA node" if count == 1 else f"{count} NUMA nodes"


def _place_text(place: WorkerPlace, workers: Sequence[int]) -> str:
    who = f"worker {runs(workers)}" if len(workers) == 1 else f"workers {runs(workers)}"
    noun = "NUMA node" if len(place.numa) == 1 else "NUMA nodes"
    near = ", ".join((*place.switches, *place.nics))
    return f"{who} on {noun} {runs(place.numa)}" + (f" ({near})" if near else "")


def _held(known: Sequence[NodeAlignment]) -> str:
    enforced = sum(alignment.enforced for alignment in known)
    if enforced == len(known):
        return "enforced by the kubelet"
    return "predicted" if not enforced else f"enforced on {enforced} of {plural(len(known), 'node')}"


def _rows(shares: Sequence[NodeShare]) -> Iterator[tuple[str, ...]]:
    for share in shares:
        if share.alignment is None:
            continue
        held = "enforced" if share.alignment.enforced else "predicted"
        for place, workers in _by_place(share).items():
            yield (
                share.node,
                runs(workers),
                runs(place.numa),
                runs(place.cpus),
                ",".join(place.switches),
                ",".join(place.nics),
                held,
            )


def _by_place(share: NodeShare) -> dict[WorkerPlace, list[int]]:
    by_place: dict[WorkerPlace, list[int]] = {}
    if share.alignment:
        for worker, place in zip(share.workers, share.alignment.workers, strict=True):
            by_place.setdefault(place, []).append(worker)
    return by_place


def _legend(rows: Sequence[Sequence[str]], shares: Sequence[NodeShare]) -> Iterator[str]:
    cpus = (
        ", CPUS: those of its cores, if the kubelet's CPU manager is static"
        if any(row[3] for row in rows)
        else ""
    )
    yield f"NUMA: the NUMA nodes of a worker's GPUs{cpus}"
    policies = {
        share.alignment.policy.value
        for share in shares
        if share.alignment and share.alignment.enforced and share.alignment.policy
    }
    if policies:
        yield (
            f"enforced: by the kubelet ({', '.join(sorted(policies))}), which fails a worker that needs more NUMA nodes; "
            "which it takes is predicted"
        )


# Where the groups of ranks of a gang lie, as a table.


def _group_lines(groups: Sequence[GroupPlaces]) -> Iterator[Line]:
    """Yield the table of *groups*, those that exchange most first."""
    rows = [
        (
            places.axis,
            str(places.size),
            str(places.count),
            last_part(places.within),
            *map(_spread_text, (places.spread, places.first_fit, places.kueue)),
        )
        for places in groups
    ]
    yield from table_lines([("GROUPS", "RANKS", "COUNT", "WITHIN", "SPREAD", "FIRST FIT", "KUEUE"), *rows])


def _group_legend(groups: Sequence[GroupPlaces]) -> Iterator[Line]:
    """Yield what the figures of the table of *groups* are."""
    yield [Span("WITHIN: the closest level that holds each group", "dim")]
    yield [
        Span(
            f"SPREAD: how many {last_part(groups[0].level)}s a group touches: the most, and the mean where it is less",
            "dim",
        )
    ]
    yield [Span("FIRST FIT, KUEUE: the spread by these rules, Kueue's with slices for tp, cp and ep", "dim")]


def _spread_text(spread: GroupSpread | None) -> str:
    """Return the most domains that a group touches, and the mean where it is less."""
    if spread is None:
        return "-"
    return str(spread.most) if spread.mean == spread.most else f"{spread.most} ({spread.mean:.2g})"


def spreads_text(groups: Sequence[GroupPlaces], spreads: Sequence[GroupSpread | None] = ()) -> str:
    """Return the spread of every axis, such as ``tp 1, pp 1, dp 3 racks``; *spreads* replace the plan's."""
    if not groups:
        return "-"
    figures = spreads or [places.spread for places in groups]
    texts = [
        f"{places.axis} {spread.most if spread else '-'}"
        for places, spread in zip(groups, figures, strict=True)
    ]
    return f"{', '.join(texts)} {last_part(groups[0].level)}s"


# When a job will probably start, as lines of text and as a document.

_MOST_NAMED = 3
_MINUTE = 60


def estimate_lines(estimate: StartEstimate, now: datetime) -> Iterator[Line]:
    """Yield when a job starts, after which jobs, and what that rests on."""
    text = estimate_text(estimate, now)
    yield [Span(text if estimate.unknown else f"starts {text}", "")]
    for name, basis in list(zip(estimate.after, estimate.basis, strict=True))[:_MOST_NAMED]:
        yield [Span(f"  after {name} has ended", ""), Span(f", by {basis}", "dim")]
    if more := max(len(estimate.after) - _MOST_NAMED, 0) + estimate.more:
        yield [Span(f"  and {plural(more, 'other job')}", "")]


def estimate_text(estimate: StartEstimate, now: datetime) -> str:
    """Return when a job starts, seen from *now*: ``in about 40m (25m to 1h10m)``."""
    if estimate.earliest is None or estimate.likely is None or estimate.latest is None:
        return f"no estimate: {estimate.unknown}"
    if estimate.latest <= now:
        return "now"
    earliest, likely, latest = (
        _rough(at, now) for at in (estimate.earliest, estimate.likely, estimate.latest)
    )
    return f"in about {likely} ({earliest} to {latest})"


def waiting_text(estimate: StartEstimate, now: datetime) -> str:
    """Return when a job that still waits at *now* starts; an old estimate may not have come true."""
    if estimate.likely is None or estimate.latest is None or estimate.likely > now:
        return estimate_text(estimate, now)
    if estimate.latest <= now:
        return f"overdue for {_rough(now, estimate.latest)}: what it awaits takes longer than expected"
    return f"any moment, in {_rough(estimate.latest, now)} at the latest"


def after_text(estimate: StartEstimate) -> str:
    """Return what has to end first: ``after default/a (its deadline) and 2 other jobs``; empty if unknown."""
    named = [
        f"{name} ({basis})"
        for name, basis in list(zip(estimate.after, estimate.basis, strict=True))[:_MOST_NAMED]
    ]
    more = max(len(estimate.after) - _MOST_NAMED, 0) + estimate.more
    *first, last = [*named, *([plural(more, "other job")] if more else [])] or [""]
    return f"after {', '.join(first)} and {last}" if first else last and f"after {last}"


def estimate_document(estimate: StartEstimate) -> dict[str, Any]:
    """Return *estimate* as a document; instants are RFC 3339, null where there is no estimate."""
    return {
        "earliest": _instant(estimate.earliest),
        "likely": _instant(estimate.likely),
        "latest": _instant(estimate.latest),
        "after": list(estimate.after),
        "basis": list(estimate.basis),
        "more": estimate.more,
        "unknown": estimate.unknown,
    }


def _instant(at: datetime | None) -> str | None:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


def _rough(at: datetime, now: datetime) -> str:
    """Return the time from *now* to *at*, without seconds after some minutes: they would only look exact."""
    seconds = max((at - now).total_seconds(), 0.0)
    return written_duration(round(seconds / _MINUTE) * _MINUTE if seconds >= 10 * _MINUTE else round(seconds))


# A planned placement, or why there is none, in every form in which it can be printed.

_MOST_LINES = 3
"""Lines of reasons above a drawing."""


def render_plan(
    name: str,
    verdict: Verdict,
    snapshot: Snapshot,
    form: str = "text",
    *,
    colour: bool = False,
    width: int | None = None,
    starts: tuple[StartEstimate, datetime] | None = None,
    why: bool = False,
    submit: str = "",
) -> str:
    """Return the plan of the job *name* as ``text``, ``json``, ``yaml``, ``svg`` or ``html``.

    In text, *why* adds reasons, assumptions and NUMA nodes to the answer, and *submit* is the command that
    creates the job, empty where none would. Columns for which *width* has no room are left out; None is room
    for all. *starts* is when the job would start, and the instant at which that was estimated; no drawing
    shows it. Raises ``UsageError`` for a drawing of roles.
    """
    match form:
        case "json" | "yaml":
            from arena_topo.output.text import document

            return document(plan_document(name, verdict, starts[0] if starts else None), form)
        case "svg" | "html":
            if verdict.by_role:
                raise UsageError(
                    f"-o {form} draws jobs whose pods are all alike, and those of {name} differ by role",
                    hint="print the plan as text, json or yaml",
                )
            return _picture(name, verdict, snapshot, form)
        case _:
            lines = list(
                _why_page(name, verdict, width) if why else _answer_lines(name, verdict, width, submit)
            )
            # Anyone who asks when, and not why, gets only that.
            if starts:
                lines = [*(lines if why else lines[:1]), *([[]] if why else []), *estimate_lines(*starts)]
            return rendered(lines, colour=colour)


_KEYS = {
    (
        Placement,
        False,
    ): "slots shares level domain workers gpus coalesced prediction why notes warnings products",
    (Placement, True): "roles level domain why notes traffic",
    (Infeasible, False): "summary reasons levels remedies nodes",
    (Infeasible, True): "summary roles remedies proven",
}
"""The keys of an answer's document, which programs read, by whether the pods differ by role."""


def plan_document(name: str, verdict: Verdict, start: StartEstimate | None = None) -> dict[str, Any]:
    """Return the plan of the job *name* as JSON and YAML have it, with its *start* where that is known."""
    from arena_topo.topology.files import API_VERSION

    kind = "GangPlan" if verdict.by_role else "Plan"
    fits = isinstance(verdict, Placement)
    body = {"apiVersion": API_VERSION, "kind": kind, "name": name, "fits": fits, **_document(verdict)}
    if start:
        body["when"] = estimate_document(start)
    return body


def _document(verdict: Verdict) -> dict[str, Any]:
    from arena_topo.output.text import plain

    body = {key: plain(getattr(verdict, key)) for key in _KEYS[type(verdict), verdict.by_role].split()}
    # Only a job with --parallel has groups.
    if isinstance(verdict, Placement) and verdict.groups:
        body["groups"] = plain(verdict.groups)
    # Only where ranks do not follow the numbers of the pods.
    if isinstance(verdict, Placement) and verdict.ranks:
        body["ranks"] = list(verdict.ranks)
    # Only a job with --spares has some.
    if isinstance(verdict, Placement) and verdict.spares:
        body["spares"] = list(dict.fromkeys(slot.node for slot in verdict.spares))
    if isinstance(verdict, Infeasible) and verdict.by_role:
        body["roles"] = [
            {"role": role.role, "answer": _document(role.answer) if role.answer else None}
            for role in verdict.roles
        ]
    return body


def _answer_lines(name: str, verdict: Verdict, width: int | None, submit: str) -> Iterator[Line]:
    """Yield where the gang goes, how fast it will be, what else matters most, and what to type next."""
    if isinstance(verdict, Infeasible):
        yield from _refusal_lines(name, verdict)
        return
    yield _summary_line(name, verdict)
    yield from _warning_lines(verdict)
    yield []
    few = _FEW_ROWS if len(verdict.shares) > _MANY_ROWS else _MANY_ROWS
    table = fitted(_share_rows(verdict, few, rates=False), None if verdict.by_role else width, spare=_SPARE)
    yield from table_lines(table.rows)
    if (more := len(verdict.shares) - few) > 0:
        yield [Span(f"and {plural(more, 'more row' if verdict.by_role else 'more node')}", "dim")]
    if verdict.groups:
        yield []
        yield from _group_lines(verdict.groups)
    if verdict.groups or verdict.by_role:
        yield []
    if verdict.prediction:
        yield [Span(_forecast_text(verdict.prediction), "")]
    if verdict.traffic:
        yield [Span(_traffic_text(verdict.traffic), "")]
    if verdict.spares:
        yield [Span(spares_text(verdict.spares, verdict.gpus), "")]
    if verdict.ranks:
        yield [Span(_RANKS_BY_NAME, "")]
    # One of them is read: the others wait for those who ask.
    shown = 0 if verdict.warnings else 1
    yield from ([Span(f"note: {note}", "yellow")] for note in verdict.notes[:shown])
    left = len(verdict.notes) - shown
    more_notes = f" and {plural(left, 'more note' if shown else 'note')}" if left > 0 else ""
    following = f"next: {submit}; " if submit else ""
    yield [Span(f"{following}reasons, assumptions{more_notes}: --why", "dim")]


_RANKS_BY_NAME = "ranks follow the pods' names, as torch sorts them: 10 comes before 2"


def _why_page(name: str, verdict: Verdict, width: int | None) -> Iterator[Line]:
    """Yield all that is known of *verdict*, on a terminal of *width* columns, or in full."""
    if isinstance(verdict, Infeasible):
        yield from _refusal_lines(name, verdict)
        return
    yield _summary_line(name, verdict)
    yield from _warning_lines(verdict)
    yield []
    table = fitted(_share_rows(verdict), None if verdict.by_role else width, spare=_SPARE)
    yield from table_lines(table.rows)
    yield from ([Span(line, "dim")] for line in _table_notes(verdict, table.rows[0]))
    if note := table.note():
        yield [Span(note, "dim")]
    if verdict.groups:
        yield []
        yield from _group_lines(verdict.groups)
        yield from _group_legend(verdict.groups)
    # What a kubelet may enforce is shown node by node, a prediction in one line.
    if any(alignment.policy for alignment in _told_alignments(verdict)):
        yield []
        yield from alignment_lines(verdict.shares)
    if verdict.prediction:
        yield []
        yield from _prediction_lines(verdict.prediction)
    if verdict.traffic:
        yield []
        yield from _traffic_lines(verdict.traffic)
    if verdict.spares:
        names = ", ".join(dict.fromkeys(slot.node for slot in verdict.spares))
        yield []
        yield [Span(f"{spares_text(verdict.spares, verdict.gpus)}, on {names}", "")]
    yield []
    yield [Span("Why", "bold")]
    yield from _why_lines(verdict)
    yield from ([Span(f"note: {note}", "yellow")] for note in verdict.notes)


def _warning_lines(verdict: Placement) -> Iterator[Line]:
    """Yield what the user should know before anything else."""
    yield from ([Span(f"warning: {warning}", "yellow")] for warning in verdict.warnings)


def _summary_line(name: str, verdict: Placement) -> Line:
    """Return the shape of the gang and where it goes."""
    if verdict.by_role:
        shape = ", ".join(counted_role(len(role.slots), role.role) for role in verdict.roles)
        nodes = {slot.node for role in verdict.roles for slot in role.slots}
        where = placed_words(len(nodes), verdict.level, verdict.domain)
        return [Span(name, "bold"), Span(f"  {shape} on {where}", "")]
    shape = plural(verdict.workers, "worker") + (f" of {plural(verdict.gpus, 'GPU')}" if verdict.gpus else "")
    merged = ", coalesced" if verdict.coalesced else ""
    where = placed_words(len(verdict.shares), verdict.level, verdict.domain)
    return [Span(name, "bold"), Span(f"  {shape}{merged} on {where}", "")]


_SPARE = ("BEST", "DOMAIN", "LINKS", "GPUS")
"""The columns that a narrow terminal drops, in this order: the prediction and *Why* repeat most of them."""


def _share_rows(verdict: Placement, most: int = _MOST_ROWS, *, rates: bool = True) -> list[Sequence[str]]:
    """Return the table of what the gang gets of each of *most* nodes, with the *rates* of its links."""
    pods = "PODS" if verdict.by_role else "WORKERS"
    rows = (
        {
            "ROLE": role.role,
            "NODE": share.node,
            pods: runs(share.workers),
            "GPUS": _gpus_text(share, role.gpus),
            "LINKS": written_rate(share.busbw),
            "BEST": written_rate(share.best),
            "DOMAIN": "/".join(share.domain) or "-",
        }
        for role in verdict.roles
        for share in role.shares
    )
    # Pods that are all alike have no role to name, and roles leave each other less than the best of a node.
    hidden = {"BEST" if verdict.by_role else "ROLE", *(() if rates else ("LINKS", "BEST"))}
    shown = [
        {heading: cell for heading, cell in row.items() if heading not in hidden}
        for row in islice(rows, most)
    ]
    return [tuple(shown[0]), *(tuple(row.values()) for row in shown)]


def _table_notes(verdict: Placement, headings: Sequence[str]) -> Iterator[str]:
    """Yield what the table leaves out, and what its figures are in columns with *headings*."""
    shares = verdict.shares
    row, whose = ("row", "the role's") if verdict.by_role else ("node", "its")
    if (more := len(shares) - _MOST_ROWS) > 0:
        yield f"and {plural(more, f'more {row}')}; -o json lists all {len(shares)}"
    if any(share.busbw is not None for share in shares):
        if "LINKS" in headings:
            yield f"LINKS: GB/s that the links between {whose} GPUs on the node can carry"
        if "BEST" in headings:
            yield "BEST: the highest LINKS of as many GPUs of the node"
    if any(alignment.policy is None for alignment in _told_alignments(verdict)):
        yield f"NUMA: {alignment_text(shares)}"


def _told_alignments(verdict: Placement) -> list[NodeAlignment]:
    """Return where devices are on the nodes of *verdict*; none of roles, whose pods have the same numbers."""
    return [] if verdict.by_role else [share.alignment for share in verdict.shares if share.alignment]


def _gpus_text(share: NodeShare, gpus_per_pod: int) -> str:
    if not gpus_per_pod:
        return "-"
    # The node does not say which of its GPUs are free, so the plan only counts them.
    if share.gpus is None:
        return f"any {len(share.workers) * gpus_per_pod}"
    return ",".join(map(str, share.gpus))


def _forecast_text(prediction: Prediction) -> str:
    """Return what the whole gang will probably see: ``92 GB/s (12 to 96): rdma across nodes``."""
    over = [f"{prediction.across.value} across nodes"] if prediction.across else []
    # A rank by itself exchanges nothing inside its node.
    over += [f"{prediction.inside.value} inside"] if prediction.inside_busbw else []
    return f"predicted busbw {_range_text(prediction.busbw)}" + (f": {', '.join(over)}" if over else "")


def _prediction_lines(prediction: Prediction) -> Iterator[Line]:
    yield [Span("Predicted busbw", "bold")]
    yield from _rate_lines(prediction)
    yield from ([Span(f"  - {assumption}", "dim")] for assumption in prediction.assumptions)


def _rate_lines(prediction: Prediction) -> Iterator[Line]:
    """Yield the predicted busbw of the whole gang, inside its nodes and across them."""
    yield [Span(f"  whole gang     {_range_text(prediction.busbw)}", "")]
    # A rank by itself exchanges nothing inside its node.
    if prediction.inside_busbw:
        yield [
            Span(f"  inside a node  {_range_text(prediction.inside_busbw)}, {prediction.inside.value}", "")
        ]
    if prediction.across_busbw and prediction.across:
        yield [
            Span(f"  across nodes   {_range_text(prediction.across_busbw)}, {prediction.across.value}", "")
        ]


def _range_text(rate: Range) -> str:
    bounds = f" ({rate.low:.3g} to {rate.high:.3g})" if rate.low != rate.high else ""
    return f"{rate.likely:.3g} GB/s{bounds}"


def _step_lines(steps: Sequence[Step]) -> Iterator[Line]:
    """Yield what each of *steps* chose, with its proof and the next best below it."""
    # Only what pods will probably see is called busbw on a page; this is what the links could carry.
    titles = ["links" if step.criterion == "busbw" else step.criterion for step in steps]
    width = max(map(len, titles), default=0)
    for step, title in zip(steps, titles, strict=True):
        yield [Span(f"  {title:<{width}}  ", "dim"), Span(step.chosen, "")]
        # A step that the search could not prove says so: its result may not be the best one.
        proof = step.bound if step.proven else f"heuristic{': ' if step.bound else ''}{step.bound}"
        for text in (proof, f"next: {step.runner_up}" if step.runner_up else ""):
            if text:
                yield [Span(f"  {'':<{width}}    {text}", "dim")]


def _why_lines(verdict: Placement) -> Iterator[Line]:
    if not verdict.by_role:
        yield from _step_lines(verdict.why)
        return
    for title, steps in (("gang", verdict.why), *((role.role, role.why) for role in verdict.roles)):
        yield [Span(f"  {title}", "")]
        yield from ([Span("  ", ""), *line] for line in _step_lines(steps))


def _refusal_lines(name: str, verdict: Infeasible) -> Iterator[Line]:
    yield [Span(name, "bold"), Span("  does not fit: ", "red"), Span(verdict.summary, "")]
    if not verdict.proven:
        yield [Span("  (heuristic: a place may have been overlooked)", "dim")]
    for role in verdict.roles:
        yield []
        yield [Span(role.role, "bold"), Span("" if role.answer else "  fits by itself", "")]
        if role.answer:
            facts = [reason.text for reason in role.answer.reasons]
            for line in (*facts, *role.answer.levels, *role.answer.remedies):
                yield [Span(f"  {line}", "")]
    for title, lines in (
        ("Nodes", [reason.text for reason in verdict.reasons]),
        ("Levels", verdict.levels),
        ("What would help", verdict.remedies),
    ):
        if lines:
            yield []
            yield [Span(title, "bold")]
            yield from ([Span(f"  {line}", "")] for line in lines)


def _picture(name: str, verdict: Verdict, snapshot: Snapshot, form: str) -> str:
    shown, headline = _drawn(name, verdict, snapshot)
    if form == "html":
        from arena_topo.output.svg import topology_page

        return topology_page(shown, headline)
    from arena_topo.output.svg import cluster_picture

    # Of a gang on one node, its links there are what matters.
    chosen = [share.node for share in verdict.shares] if isinstance(verdict, Placement) else []
    detail = next((node for node in shown.nodes if [node.name] == chosen), None)
    return cluster_picture(shown, headline=headline, detail=detail) + "\n"


def _drawn(name: str, verdict: Verdict, snapshot: Snapshot) -> "tuple[Snapshot, Headline]":
    """Return what a drawing of *verdict* shows: the cluster with the workers, and the headline."""
    from arena_topo.output.svg import Headline

    if isinstance(verdict, Placement):
        return _with_workers(name, verdict, snapshot), Headline(*_headline(name, verdict))
    reasons = [reason.text for reason in verdict.reasons[:_MOST_LINES]]
    remedies = [f"what would help: {remedy}" for remedy in verdict.remedies[:1]]
    rooms = {room.node: room for room in verdict.nodes}
    return snapshot, Headline(f"{name} does not fit", (verdict.summary, *reasons, *remedies), rooms)


def _headline(name: str, verdict: Placement) -> tuple[str, tuple[str, ...]]:
    """Return the headline over a drawing of *verdict*: what goes where, how fast, and what to know first."""
    title = " ".join(rendered([_summary_line("", verdict)], colour=False).split())
    forecast = [_forecast_text(verdict.prediction)] if verdict.prediction else []
    return f"{name}: {title}", (*forecast, *(f"warning: {warning}" for warning in verdict.warnings))


def _with_workers(name: str, verdict: Placement, snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* with the workers of *verdict* as holders of their GPUs."""
    shares = {share.node: share for share in verdict.shares}
    nodes = [
        _with_share(node, name, shares[node.name], verdict) if node.name in shares else node
        for node in snapshot.nodes
    ]
    return replace(snapshot, nodes=tuple(nodes))


def _with_share(node: GpuNode, name: str, share: NodeShare, verdict: Placement) -> GpuNode:
    count = len(share.workers) * verdict.gpus
    holders = tuple(
        Holder(
            "plan", worker_name(name, worker), name, verdict.gpus, verdict.slots[worker].gpus, is_planned=True
        )
        for worker in share.workers
    )
    # Where it is not known which GPUs are in use, or which ones the gang gets, the picture does not claim to
    # know.
    used = node.used | frozenset(share.gpus) if node.used is not None and share.gpus is not None else None
    requested = {**node.requested, node.gpu_resource: node.requested.get(node.gpu_resource, 0) + count}
    return replace(node, holders=(*node.holders, *holders), used=used, requested=requested)


# What the parameter servers of a gang cost.


def _traffic_lines(traffic: StepTraffic) -> Iterator[Line]:
    yield [Span("Exchange of a step, for each GB of parameters", "bold")]
    if not (traffic.servers or traffic.all_reduce):
        yield [Span("  stays on one node: no NIC carries any of it", "")]
        return
    ways = [
        ("parameter servers", traffic.servers),
        ("all-reduce on the workers' nodes", traffic.all_reduce),
    ]
    ways += [(_summing(count), seconds) for count, seconds in traffic.with_cpu_nodes]
    width = max(len(way) for way, _ in ways)
    for way, seconds in ways:
        yield [Span(f"  {way:<{width}}  {seconds:.3g} s{_against(seconds, traffic.servers)}", "")]
    yield [Span(f"  - {_faster(traffic)}", "")]
    if brought := _brought(traffic.with_cpu_nodes):
        yield [Span(f"  - {brought}", "")]
    yield [Span(f"  - {_room(traffic.available)}", "dim")]
    yield [Span("  - only the time of the slowest NIC; summing on other nodes as BytePS does it", "dim")]
    if traffic.assumed:
        yield [
            Span(
                "  - some nodes do not publish the rate of their NICs: the lowest that is known is assumed",
                "dim",
            )
        ]


def _traffic_text(traffic: StepTraffic) -> str:
    """Return what a step's exchange takes, in one sentence."""
    if not (traffic.servers or traffic.all_reduce):
        return "the exchange of a step stays on one node: no NIC carries any of it"
    return f"exchange of a step: {traffic.servers:.3g} s for each GB of parameters; {_faster(traffic)}"


def _faster(traffic: StepTraffic) -> str:
    servers, ring = traffic.servers, traffic.all_reduce
    if _alike(servers, ring):
        return "parameter servers and all-reduce are as fast on these nodes"
    if ring < servers:
        return "all-reduce is faster on these nodes than parameter servers"
    return "parameter servers are faster on these nodes than all-reduce"


def _summing(cpu_nodes: int) -> str:
    if not cpu_nodes:
        return "the same, summed inside each node first"
    return f"that with {plural(cpu_nodes, 'node')} without GPUs to sum"


def _brought(with_cpu_nodes: Sequence[tuple[int, float]]) -> str:
    """Return what nodes that only sum would bring, empty where the workers are on one node."""
    if not with_cpu_nodes:
        return ""
    (_, without), *_, (most, least) = with_cpu_nodes
    if _alike(least, without):
        return "nodes without GPUs to sum would bring nothing: each worker's node still sends all it has"
    return f"{plural(most, 'node')} without GPUs to sum would make a step's exchange {1 - least / without:.0%} shorter"


def _alike(seconds: float, others: float) -> bool:
    return abs(seconds - others) < others / 200


def _room(available: int) -> str:
    if not available:
        return "no node without GPUs has room for a parameter server now"
    have = "has" if available == 1 else "have"
    return f"{plural(available, 'node')} without GPUs {have} room for a parameter server now"


def _against(seconds: float, servers: float) -> str:
    """Return how a way compares with parameter servers, empty where it is as fast."""
    if not servers or not seconds or _alike(seconds, servers):
        return ""
    change = seconds / servers - 1
    return f", {abs(change):.0%} {'longer' if change > 0 else 'shorter'}"


# Who has reserved what, and since when: for ``top node`` and ``doctor``.

_MOST_PLANS = 20
_MOST_NODES = 4


def reservation_lines(plans: Sequence[OtherPlan], nodes: Collection[str]) -> Iterator[str]:
    """Yield a line for each of *plans* that reserves something on *nodes*."""
    concerned = [plan for plan in plans if any(slot.node in nodes for slot in plan.reserved)]
    for plan in concerned[:_MOST_PLANS]:
        yield f"reserved for {_words(plan)}"
    if len(concerned) > _MOST_PLANS:
        yield f"and {len(concerned) - _MOST_PLANS} more jobs have reservations; arena-topo doctor sums them up"


def reservations_finding(plans: Sequence[OtherPlan] | None) -> Finding:
    """Return what *plans* reserve, as ``doctor`` reports it; None are plans that the user may not see."""
    looked_at = "the annotation arena-topo.dev/plan of jobs, their specs and their namespaces' quotas"
    if plans is None:
        return Finding(
            topic="Reservations",
            state=State.UNKNOWN,
            found="you cannot list MPIJobs, pods and nodes of all namespaces",
            evidence=looked_at,
            follows="plans may take what is reserved for others",
        )
    if not plans:
        return Finding(
            topic="Reservations",
            state=State.OK,
            found="none",
            evidence=looked_at,
            follows="every GPU that no pod requests can be planned with",
        )
    workers = sum(len(plan.reserved) for plan in plans)
    shown = "; ".join(map(_words, plans[:_MOST_PLANS]))
    more = f"; and {len(plans) - _MOST_PLANS} more" if len(plans) > _MOST_PLANS else ""
    oldest = plans[0]
    return Finding(
        topic="Reservations",
        state=State.OK,
        found=f"{plural(len(plans), 'job')} reserve{'s' if len(plans) == 1 else ''} places for "
        f"{plural(workers, 'worker')} without a node",
        evidence=f"{shown}{more}",
        follows="plans leave these places out until the pods run or the jobs end",
        command=printable(f"arena-topo get -n {oldest.namespace} {oldest.name}"),
    )


def _words(plan: OtherPlan) -> str:
    """Return ``team/train: 8 nvidia.com/gpu on gpu-1, gpu-2, confirmed, since 2026-11-21T08:00:00Z``."""
    reserved = plan.reserved
    nodes = list(dict.fromkeys(slot.node for slot in reserved))
    where = ", ".join(nodes[:_MOST_NODES]) + (
        f" and {len(nodes) - _MOST_NODES} more" * (len(nodes) > _MOST_NODES)
    )
    total = requested(plan.record, reserved)
    gpus = {name: amount for name, amount in total.items() if "gpu" in name and amount}
    amounts = [written_amount(name, amount) for name, amount in sorted(gpus.items())]
    what = ", ".join(amounts) or plural(len(reserved), "worker")
    # Names are whatever somebody else's objects say.
    return printable(
        f"{plan.namespace}/{plan.name}: {what} on {where}, {plan.record.stage.value}, since {plan.since}"
    )


# What happens to a job whose size changes, as text and as a document: where it is before and after, and why.

_MOST_PODS = 40


def render_scaling(scaling: Scaling, form: str = "text", *, steps: bool = False, colour: bool = False) -> str:
    """Return *scaling* as ``text``, ``json`` or ``yaml``; in text *steps* says why these places."""
    if form in ("json", "yaml"):
        from arena_topo.output.text import document

        return document(scaling_document(scaling), form)
    return rendered(_change_lines(scaling, steps=steps), colour=colour)


def scaling_document(scaling: Scaling) -> dict[str, Any]:
    """Return *scaling* as JSON and YAML have it."""
    from arena_topo.output.text import plain
    from arena_topo.topology.files import API_VERSION

    return {"apiVersion": API_VERSION, "kind": "Scaling", **plain(scaling)}


def _change_lines(scaling: Scaling, *, steps: bool) -> Iterator[Line]:
    change = scaling.change
    yield [
        Span(scaling.name, "bold"),
        Span(f"  {scaling.before} to {plural(scaling.after, 'worker')}", ""),
    ]
    if change is None:
        yield [Span(_unplanned(scaling), "dim")]
        return
    yield []
    yield from table_lines(
        [("", "WORKERS", "NODES", "LEVEL", "DOMAIN", "BUSBW"), *_change_rows(scaling, change)]
    )
    yield [Span("BUSBW: predicted for the whole gang, GB/s", "dim")]
    yield []
    yield from table_lines(_pod_rows(scaling, change))
    if len(scaling.pods) > _MOST_PODS:
        yield [Span(f"and {plural(len(scaling.pods) - _MOST_PODS, 'more pod')}; -o json lists all", "dim")]
    if isinstance(change, Shrinkage) and change.cheapest != tuple(slot.worker for slot in change.leaving):
        yield []
        yield [
            Span(
                f"note: the operator takes the highest indices; without {runs(change.cheapest)} it would keep more",
                "yellow",
            )
        ]
    if steps:
        yield []
        yield [Span("Why", "bold")]
        yield from _step_lines(change.why)


def _unplanned(scaling: Scaling) -> str:
    if scaling.before == scaling.after:
        return "it has that size already"
    return "the job has no plan: its scheduler places new workers anywhere, and the highest indices leave"


def _change_rows(scaling: Scaling, change: Growth | Shrinkage) -> Iterator[Sequence[str]]:
    yield _row("before", scaling.before, change.before)
    yield _row("after", scaling.after, change.after)
    if isinstance(change, Shrinkage) and change.if_cheapest != change.after:
        yield _row("at best", scaling.after, change.if_cheapest)


def _row(word: str, workers: int, gang: GangFigures) -> Sequence[str]:
    domain = gang.domain if gang.level != "cluster" else "-"
    return (word, str(workers), str(gang.nodes), last_part(gang.level), domain, written_rate(gang.busbw))


def _pod_rows(scaling: Scaling, change: Growth | Shrinkage) -> Iterator[Sequence[str]]:
    slots = change.slots if isinstance(change, Growth) else change.leaving
    yield ("COMES" if isinstance(change, Growth) else "LEAVES", "NODE", "GPUS")
    for pod, slot in list(zip(scaling.pods, slots, strict=True))[:_MOST_PODS]:
        gpus = "-" if slot.gpus is None else ",".join(map(str, slot.gpus)) or "-"
        yield (pod, slot.node, gpus)


def submitted_lines(
    name: str,
    verdict: Verdict | None,
    record: PlanRecord,
    *,
    suspended: bool,
    unenforced: str,
    queued: bool = False,
) -> Iterator[str]:
    """Yield what submit reports: where the job goes and how fast, or what it waits for.

    *queued*: a controller places the job, and starts it. *unenforced*: why nothing holds the plan, empty
    where something does, which ``describe`` explains.
    """
    if isinstance(verdict, Placement):
        summary = rendered([_summary_line(name, verdict)], colour=False).rstrip()
        facts = [_forecast_text(verdict.prediction)] if verdict.prediction else []
        facts += [_traffic_text(verdict.traffic)] if verdict.traffic and verdict.traffic.servers else []
        facts += [spares_text(verdict.spares, verdict.gpus)] if verdict.spares else []
        yield from (f"warning: {warning}" for warning in verdict.warnings)
        yield "; ".join((summary, *facts))
        yield from (
            f"note: {note}" for note in (*([_RANKS_BY_NAME] if verdict.ranks else []), *verdict.notes)
        )
    elif record.waiting_reason:
        yield f"{name} waits for a placement: {record.waiting_reason}"
        if queued:
            number = f"number {record.position} in the queue: " if record.position else ""
            yield f"{number}the controller starts it; this terminal may close. Give up: arena-topo delete {name}"
        elif suspended:
            yield f"nothing of it runs. Retry: arena-topo resume {name}; give up: arena-topo delete {name}"
        else:
            yield "it is not pinned: the cluster's scheduler starts it on any nodes once it fits"
        return
    elif queued:
        yield f"{name} is placed by the controller: {placed_text(record)}"
    if unenforced:
        yield f"enforced: {unenforced}"
