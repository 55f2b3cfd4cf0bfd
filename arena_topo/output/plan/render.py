"""A planned placement, or why there is none, in every form in which it can be printed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from arena_topo.kinds.mpijob import worker_name
from arena_topo.model.cluster.snapshot import GpuNode, Holder, Snapshot
from arena_topo.model.job.start_estimate import StartEstimate
from arena_topo.model.notation.words import placed_words, plural, runs, written_rate
from arena_topo.model.plan.placement import Infeasible, NodeShare, Placement, Prediction, Range, Step, Verdict
from arena_topo.output.lines import Line, Span, fitted, rendered, table_lines
from arena_topo.output.plan.alignment import alignment_lines, alignment_text
from arena_topo.output.plan.groups import group_lines
from arena_topo.output.plan.start_estimate import estimate_document, estimate_lines

if TYPE_CHECKING:
    from arena_topo.output.topology.svg.elements import Headline

_MOST_NODES_IN_TABLE = 40
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
) -> str:
    """Return the plan of the job *name* as ``text``, ``json``, ``yaml``, ``svg`` or ``html``.

    In text, columns for which *width* has no room are left out; None is room for all. *starts* is when the job would start,
    and the instant at which that was estimated; no drawing shows it.
    """
    match form:
        case "json" | "yaml":
            from arena_topo.output.documents import document, plain
            from arena_topo.topology.snapshot_file import API_VERSION

            fits = isinstance(verdict, Placement)
            head = {"apiVersion": API_VERSION, "kind": "Plan", "name": name, "fits": fits}
            body = plain(verdict)
            # Only a job with --parallel has groups.
            if not body.get("groups"):
                body.pop("groups", None)
            if starts:
                body["when"] = estimate_document(starts[0])
            return document({**head, **body}, form)
        case "svg" | "html":
            return _picture(name, verdict, snapshot, form)
        case _:
            lines = list(plan_lines(name, verdict, width))
            if starts:
                lines += [[], *estimate_lines(*starts)]
            return rendered(lines, colour=colour)


def plan_lines(name: str, verdict: Verdict, width: int | None = None) -> Iterator[Line]:
    """Yield the whole of *verdict* as ``arena-topo plan`` prints it on a terminal of *width* columns, or in full."""
    if isinstance(verdict, Infeasible):
        yield from _refusal_lines(name, verdict)
        return
    yield from summary_lines(name, verdict)
    yield []
    table = fitted(_share_rows(verdict), width, spare=_SPARE)
    yield from table_lines(table.rows)
    yield from ([Span(line, "dim")] for line in _table_notes(verdict, table.hidden))
    if note := table.note():
        yield [Span(note, "dim")]
    if verdict.groups:
        yield []
        yield from group_lines(verdict.groups)
    # What a kubelet may enforce is shown node by node, a prediction in one line.
    if any(share.alignment and share.alignment.policy for share in verdict.shares):
        yield []
        yield from alignment_lines(verdict.shares)
    if verdict.prediction:
        yield []
        yield from _prediction_lines(verdict.prediction)
    yield []
    yield [Span("Why", "bold")]
    yield from step_lines(verdict.why)
    yield from ([Span(f"note: {note}", "yellow")] for note in verdict.notes)


def summary_lines(name: str, verdict: Placement) -> Iterator[Line]:
    """Yield the shape of the gang and where it goes, on one line."""
    shape = plural(verdict.workers, "worker") + (f" of {plural(verdict.gpus, 'GPU')}" if verdict.gpus else "")
    merged = ", coalesced" if verdict.coalesced else ""
    where = placed_words(len(verdict.shares), verdict.level, verdict.domain)
    yield [Span(name, "bold"), Span(f"  {shape}{merged} on {where}", "")]


_SPARE = ("BEST", "DOMAIN", "INSIDE", "GPUS")
"""The columns that a narrow terminal can do without, the first first: the prediction and *Why* repeat most of them."""
_FIGURES = {
    "INSIDE": "busbw in GB/s of the links between its GPUs on the node",
    "BEST": "the highest INSIDE of as many GPUs of the node",
}


def _share_rows(verdict: Placement) -> list[Sequence[str]]:
    rows = (
        (
            share.node,
            runs(share.workers),
            _gpus_text(share, verdict.gpus),
            written_rate(share.busbw),
            written_rate(share.best),
            "/".join(share.domain) or "-",
        )
        for share in verdict.shares[:_MOST_NODES_IN_TABLE]
    )
    return [("NODE", "WORKERS", "GPUS", "INSIDE", "BEST", "DOMAIN"), *rows]


def _table_notes(verdict: Placement, hidden: Sequence[str]) -> Iterator[str]:
    """Yield what the table leaves out, and what its figures are in columns that are not *hidden*."""
    more = len(verdict.shares) - _MOST_NODES_IN_TABLE
    if more > 0:
        yield f"and {plural(more, 'more node')}; -o json lists all {len(verdict.shares)}"
    if any(share.busbw is not None for share in verdict.shares):
        yield from (f"{heading}: {meaning}" for heading, meaning in _FIGURES.items() if heading not in hidden)
    if any(share.alignment and share.alignment.policy is None for share in verdict.shares):
        yield f"NUMA: {alignment_text(verdict.shares)}"


def _gpus_text(share: NodeShare, gpus_per_worker: int) -> str:
    # The node does not say which of its GPUs are free, so the plan only counts them.
    if share.gpus is None:
        return f"any {len(share.workers) * gpus_per_worker}" if gpus_per_worker else "-"
    return ",".join(map(str, share.gpus))


def _prediction_lines(prediction: Prediction) -> Iterator[Line]:
    yield [Span("Predicted busbw", "bold")]
    yield from rate_lines(prediction)
    yield from ([Span(f"  - {assumption}", "dim")] for assumption in prediction.assumptions)


def rate_lines(prediction: Prediction) -> Iterator[Line]:
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


def step_lines(steps: Sequence[Step]) -> Iterator[Line]:
    """Yield what each of *steps* chose, with its proof and the next best below it."""
    width = max((len(step.criterion) for step in steps), default=0)
    for step in steps:
        yield [Span(f"  {step.criterion:<{width}}  ", "dim"), Span(step.chosen, "")]
        # A step that the search could not prove says so: its result may not be the best one.
        proof = step.bound if step.proven else f"heuristic{': ' if step.bound else ''}{step.bound}"
        for text in (proof, f"next: {step.runner_up}" if step.runner_up else ""):
            if text:
                yield [Span(f"  {'':<{width}}    {text}", "dim")]


def _refusal_lines(name: str, verdict: Infeasible) -> Iterator[Line]:
    yield [Span(name, "bold"), Span("  does not fit: ", "red"), Span(verdict.summary, "")]
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
    shown, headline = drawn_plan(name, verdict, snapshot)
    if form == "html":
        from arena_topo.output.topology.page import topology_page

        return topology_page(shown, headline)
    from arena_topo.output.topology.svg.cluster import cluster_picture

    # Of a gang on one node, its links there are what matters.
    chosen = [share.node for share in verdict.shares] if isinstance(verdict, Placement) else []
    detail = next((node for node in shown.nodes if [node.name] == chosen), None)
    return cluster_picture(shown, headline=headline, detail=detail) + "\n"


def drawn_plan(name: str, verdict: Verdict, snapshot: Snapshot) -> "tuple[Snapshot, Headline]":
    """Return what a drawing of *verdict* shows: the cluster with the workers in it, and what stands above it."""
    from arena_topo.output.topology.svg.elements import Headline

    if isinstance(verdict, Placement):
        return _with_workers(name, verdict, snapshot), Headline(*_headline(name, verdict))
    reasons = [reason.text for reason in verdict.reasons[:_MOST_LINES]]
    remedies = [f"what would help: {remedy}" for remedy in verdict.remedies[:1]]
    rooms = {room.node: room for room in verdict.nodes}
    return snapshot, Headline(f"{name} does not fit", (verdict.summary, *reasons, *remedies), rooms)


def _headline(name: str, verdict: Placement) -> tuple[str, tuple[str, ...]]:
    """Return what stands above a drawing of *verdict*: what goes where, each busbw by its name, and why."""
    title = " ".join(rendered(summary_lines("", verdict), colour=False).split())
    rates = (
        [rendered([line], colour=False).split() for line in rate_lines(verdict.prediction)]
        if verdict.prediction
        else []
    )
    busbw = [f"predicted busbw: {';  '.join(map(' '.join, rates))}"] if rates else []
    # The criteria that tell places apart come after the one that every place meets.
    why = [
        f"{step.criterion}: {step.chosen}" + (f", as {step.bound}" if step.bound and step.proven else "")
        for step in verdict.why[1 : 1 + _MOST_LINES]
    ]
    # Over several nodes a prediction for each worker would be no more than how many NUMA nodes a machine has.
    is_told = len(verdict.shares) == 1 or any(
        share.alignment and share.alignment.policy for share in verdict.shares
    )
    places = [text] if is_told and (text := alignment_text(verdict.shares)) else []
    return f"{name}: {title}", (*busbw, *why, *places)


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
    # Where it is not known which GPUs are in use, or which ones the gang gets, the picture does not claim to know.
    used = node.used | frozenset(share.gpus) if node.used is not None and share.gpus is not None else None
    requested = {**node.requested, node.gpu_resource: node.requested.get(node.gpu_resource, 0) + count}
    return replace(node, holders=(*node.holders, *holders), used=used, requested=requested)
